/**
 * Credentials from a program or a file that the kubeconfig names. A failure is an error of the calls that need them;
 * later calls ask again. The library instead keeps an answer without credentials for ever, waits without end for a
 * program that hangs, and sends requests without a token where the token file is empty.
 */
import { type ChildProcess, type ExecFileException, execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import type { Cluster, User } from '@kubernetes/client-node';

const run = promisify(execFile);

/** Longest time for a program. A person may have to log in, so it is longer than any call waits. */
const COMMAND_MS_MAX = 60_000;
const OUTPUT_BYTES_MAX = 1024 ** 2;
/** Shortest time between two starts of the program: after a failure, hundreds of watches need credentials at once. */
const REPEAT_MS = 1_000;
/** As client-go does: kubelet replaces the file long before the token in it expires. */
const FILE_MS = 60_000;

/** Options of a request, as the library hands them over. */
interface Target {
  headers?: Record<string, unknown>;
  cert?: unknown;
  key?: unknown;
}

/** An authenticator of the library, which does not export its type. */
export interface Credentials {
  isAuthProvider(user: User): boolean;
  /** Adds the credentials of `user` to `target`. @throws Error that says why there are none */
  applyAuthentication(user: User, target: Target): Promise<void>;
  /** Asks anew before the next call: these credentials were refused, or are of no use. */
  forget(): void;
}

/** How the kubeconfig says that a program is to be started. */
interface Exec {
  apiVersion?: string;
  command?: string;
  args?: string[] | null;
  env?: { name: string; value: string }[] | null;
  provideClusterInfo?: boolean;
}

export interface ExecOptions {
  /** Longest time for the program. */
  timeoutMs?: number;
  /** Shortest time between two starts. */
  repeatMs?: number;
  /** Told to a program whose `provideClusterInfo` is set. */
  cluster?: () => Cluster | null;
}

/** `status` of an ExecCredential. */
interface Credential {
  token?: string;
  clientCertificateData?: string;
  clientKeyData?: string;
  expirationTimestamp?: string;
}

/** The last run of the program, which may still be under way. */
interface Run {
  credential: Promise<Credential>;
  /** The program is started anew from then on. */
  untilMs: number;
  /** The earliest time for that, once the credentials are to be forgotten. */
  soonestMs: number;
}

/** Credentials from a program (`users[].user.exec`). */
export class ExecCredentials implements Credentials {
  readonly #timeoutMs: number;
  readonly #repeatMs: number;
  readonly #cluster: () => Cluster | null;
  #last: Run | undefined;
  #child: ChildProcess | undefined;

  constructor({ timeoutMs = COMMAND_MS_MAX, repeatMs = REPEAT_MS, cluster = () => null }: ExecOptions = {}) {
    this.#timeoutMs = timeoutMs;
    this.#repeatMs = repeatMs;
    this.#cluster = cluster;
  }

  isAuthProvider({ exec }: User): boolean {
    return Boolean(exec);
  }

  async applyAuthentication(user: User, target: Target): Promise<void> {
    if (!this.#last || performance.now() >= this.#last.untilMs) this.#last = this.#start(user.exec);
    const { token, clientCertificateData, clientKeyData } = await this.#last.credential;
    if (clientCertificateData) Object.assign(target, { cert: clientCertificateData, key: clientKeyData });
    if (token) target.headers = { ...target.headers, Authorization: `Bearer ${token}` };
  }

  forget(): void {
    if (this.#last) this.#last.untilMs = Math.min(this.#last.untilMs, this.#last.soonestMs);
  }

  /** Ends the program if it is running: it would keep the process. */
  stop(): void {
    this.#child?.kill('SIGKILL');
    // What the program has started may have its output still.
    this.#child?.stdout?.destroy();
    this.#child?.stderr?.destroy();
  }

  #start(exec: Exec): Run {
    const started: Run = { credential: this.#run(exec), untilMs: Infinity, soonestMs: Infinity };
    const keep = (durationMs: number) => {
      started.soonestMs = performance.now() + this.#repeatMs;
      started.untilMs = performance.now() + Math.max(this.#repeatMs, durationMs);
    };
    started.credential.then(
      ({ expirationTimestamp }) =>
        keep(expirationTimestamp ? Date.parse(expirationTimestamp) - Date.now() : Number.POSITIVE_INFINITY),
      () => keep(0),
    );
    return started;
  }

  async #run(exec: Exec): Promise<Credential> {
    const { command, args, env } = exec;
    if (!command) throw new Error('"exec" names no command');
    const info = await infoFor(exec, this.#cluster());
    try {
      const running = run(command, args ?? [], {
        env: {
          ...process.env,
          ...Object.fromEntries((env ?? []).map(({ name, value }) => [name, value])),
          KUBERNETES_EXEC_INFO: JSON.stringify(info),
        },
        timeout: this.#timeoutMs,
        killSignal: 'SIGKILL',
        maxBuffer: OUTPUT_BYTES_MAX,
      });
      this.#child = running.child;
      // A program that asks a question gets the end of its input for an answer.
      running.child.stdin?.end();
      return credentialOf((await running).stdout);
    } catch (error) {
      throw failureOf(error as ExecFileException, this.#timeoutMs);
    } finally {
      this.#child = undefined;
    }
  }
}

/** KUBERNETES_EXEC_INFO as client-go sets it: many programs answer in the version that it names. */
async function infoFor({ apiVersion, provideClusterInfo }: Exec, cluster: Cluster | null): Promise<object> {
  const spec = { interactive: false, ...(provideClusterInfo && cluster && { cluster: await clusterInfoOf(cluster) }) };
  return { apiVersion, kind: 'ExecCredential', spec };
}

async function clusterInfoOf({ server, caFile, caData, skipTLSVerify, tlsServerName, proxyUrl }: Cluster) {
  return {
    server,
    'tls-server-name': tlsServerName,
    'insecure-skip-tls-verify': skipTLSVerify || undefined,
    'certificate-authority-data': caFile ? await readFile(caFile, 'base64') : caData,
    'proxy-url': proxyUrl,
  };
}

/** An error without the program's output, in which a token may stand. */
function failureOf(error: ExecFileException, timeoutMs: number): Error {
  const { code, killed, signal, stderr = '' } = error;
  if (code === 'ERR_CHILD_PROCESS_STDIO_MAXBUFFER') return new Error(`it prints more than ${OUTPUT_BYTES_MAX} bytes`);
  if (killed) return new Error(`it did not end within ${timeoutMs / 1000} s`);
  // Ours, or the system's with the path in it, such as ENOENT.
  if (typeof code !== 'number' && !signal) return error;
  const end = signal ? `it was ended by ${signal}` : `it ended with exit code ${code}`;
  return new Error([end, stderr.trim()].filter(Boolean).join(': '));
}

/** @throws Error that says what the program's output lacks */
function credentialOf(output: string): Credential {
  const status = statusOf(output);
  const { token, clientCertificateData: certificate, clientKeyData: key, expirationTimestamp: end } = status;
  if (!token && !(certificate && key))
    throw new Error('the "status" of its output has neither a token nor a certificate with its key');
  if (end && Number.isNaN(Date.parse(end))) throw new Error('its expirationTimestamp is no time');
  return status;
}

function statusOf(output: string): Credential {
  let credential: { status?: Credential } | null;
  try {
    credential = JSON.parse(output);
  } catch {
    throw new Error('its output is not valid JSON');
  }
  const status = credential?.status;
  if (!status || typeof status !== 'object') throw new Error('its output is no ExecCredential with a "status"');
  return status;
}

/** A token from a file, as pods have it. */
export class FileCredentials implements Credentials {
  #read: { token: string; untilMs: number } | undefined;

  isAuthProvider(user: User): boolean {
    return tokenFileOf(user) !== undefined;
  }

  async applyAuthentication(user: User, target: Target): Promise<void> {
    target.headers = { ...target.headers, Authorization: `Bearer ${await this.#token(tokenFileOf(user) ?? '')}` };
  }

  forget(): void {
    this.#read = undefined;
  }

  async #token(path: string): Promise<string> {
    if (this.#read && performance.now() < this.#read.untilMs) return this.#read.token;
    const token = (await readFile(path, 'utf8')).trim();
    if (token === '') throw new Error('the file is empty');
    this.#read = { token, untilMs: performance.now() + FILE_MS };
    return token;
  }
}

/** Path of the file in which the token of `user` is. */
export function tokenFileOf({ authProvider }: User): string | undefined {
  return authProvider?.config?.tokenFile ?? undefined;
}
