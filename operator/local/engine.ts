/** A container engine through its own command line (docker, podman), and what one process has made in it. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { lstatSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';

/** Options of every proxy container: what Pod Security "restricted" demands. */
export const RESTRICTED = ['--read-only', '--cap-drop', 'ALL', '--security-opt', 'no-new-privileges'];

/** Of one command; a page of metrics has 0.5 MB, a profile some. */
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;
/** A container that is being started is waited for so long before everything is removed. */
const STARTING_MS = 5_000;
const REMOVE_TRIES = 5;
const REMOVE_AGAIN_MS = 500;

export interface EngineOptions {
  /** Which program is called. */
  command: string;
  /** Begins the names of networks and folders, and is the label: its value begins with who owns the container. */
  prefix: string;
  /** Added to the environment of the program. */
  env?: Record<string, string>;
  /** Further options of every container. */
  options?: string[];
}

/** A command of the engine has failed; the message has what it wrote to standard error. */
class EngineError extends Error {
  /** Exit code; undefined where the program could not be started, or was killed. */
  readonly code: number | undefined;
  readonly stdout: string;
  readonly stderr: string;

  constructor(
    message: string,
    { code, stdout = '', stderr = '' }: { code?: number; stdout?: string; stderr?: string } = {},
  ) {
    super(message);
    this.code = code;
    this.stdout = stdout;
    this.stderr = stderr;
  }
}

/** Containers, networks and folders of this process, told from those of others by a label. */
export class Engine {
  readonly command: string;
  readonly env: Record<string, string>;
  /** Label of all containers and networks. */
  readonly label: string;
  /** Its value: host, process id, and a random end for two runs in one process. */
  readonly owner = `${hostname()}.${process.pid}-${randomBytes(3).toString('hex')}`;
  /** What is being made at the moment: it could not be removed yet. */
  readonly #starting = new Set<Promise<unknown>>();
  readonly #programs = new Set<ChildProcess>();
  readonly #options: string[];
  #isClosed = false;

  constructor({ command, prefix, env = {}, options = [] }: EngineOptions) {
    this.command = command;
    this.label = prefix;
    this.env = env;
    this.#options = options;
  }

  /**
   * Runs the program and gives its standard output. In a session of its own: Ctrl-C in a terminal is for this process,
   * which would not be able to remove anything if it ended the engine's program as well.
   * @throws EngineError
   */
  async run(...args: string[]): Promise<string> {
    const { stdout } = await this.output(args);
    return stdout.trim();
  }

  /** Standard output and error of a container, as far as written. */
  async logs(container: string): Promise<string> {
    const { stdout, stderr } = await this.output(['logs', container]);
    return stdout + stderr;
  }

  private output(args: string[]): Promise<{ stdout: string; stderr: string }> {
    return new Promise((resolve, reject) => {
      const child = this.spawn(args);
      this.#programs.add(child);
      const chunks: { stdout: Buffer[]; stderr: Buffer[] } = { stdout: [], stderr: [] };
      let bytes = 0;
      for (const name of ['stdout', 'stderr'] as const)
        child[name].on('data', (chunk: Buffer) => {
          bytes += chunk.length;
          if (bytes > OUTPUT_BYTES_MAX) child.kill('SIGKILL');
          else chunks[name].push(chunk);
        });
      const text = (name: 'stdout' | 'stderr') => Buffer.concat(chunks[name]).toString();
      child.once('error', (error) => reject(new EngineError(`${this.command}: ${error.message}`)));
      child.once('close', (code) => {
        this.#programs.delete(child);
        const output = { stdout: text('stdout'), stderr: text('stderr') };
        if (code === 0) return resolve(output);
        const said = output.stderr.trim() || `ended with code ${code}`;
        // Not its arguments: there are variables of the user among them.
        const message = `${this.command} ${args[0]}: ${said}`;
        reject(new EngineError(message, { code: code ?? undefined, ...output }));
      });
    });
  }

  /** Starts the program; its output is the caller's to read. */
  spawn(args: string[]) {
    const env = { ...process.env, ...this.env };
    return spawn(this.command, args, { env, detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  }

  /** Starts a labelled container and gives its id. */
  start(...args: string[]): Promise<string> {
    return this.#making(() => this.run('run', '--detach', ...this.#labelled(), ...this.#options, ...args));
  }

  /** Runs a labelled container to its end, and removes it; rejects when it fails, with what it has said. */
  runToEnd(...args: string[]): Promise<string> {
    return this.#making(() => this.run('run', '--rm', ...this.#labelled(), ...this.#options, ...args));
  }

  /** Runs a command in a container of the sidecar image; rejects when it fails. */
  runSidecar(image: string, mounts: string[], ...command: string[]): Promise<string> {
    const options = ['--rm', '--network', 'none', ...this.#labelled(), ...RESTRICTED];
    // Docker gives a tmpfs the mode that the folder has in the image, whatever is asked for. Podman knows no owner.
    const owner = this.command === 'podman' ? '' : ',uid=10001';
    const folders = ['--tmpfs', '/tmp:mode=1777', '--tmpfs', `/run/corelane:mode=1777${owner}`, ...mounts];
    return this.#making(() => this.run('run', ...options, ...folders, image, ...command));
  }

  /** Makes a network with an address range of its own (`ipv6`: one of either family), and gives its name. */
  async network({ ipv6 = false } = {}): Promise<string> {
    const id = randomBytes(3).toString('hex');
    const name = `${this.label.replace('.', '-')}-${this.owner}-${id}`;
    // A unique local prefix (RFC 4193), random as it asks for.
    const second = ipv6 ? ['--ipv6', '--subnet', `fd${id.slice(0, 2)}:${id.slice(2)}::/64`] : [];
    await this.#making(() => this.run('network', 'create', ...this.#labelled(), ...second, name));
    return name;
  }

  /** Makes a folder for folders that containers mount. Nobody else gets into it: programs and keys are in there. */
  folder(): string {
    if (this.#isClosed) throw new EngineError('it is being stopped');
    return mkdtempSync(join(tmpdir(), `${this.label}-${this.owner}-`));
  }

  /** Somebody else of this process may be removing one at the same moment, which is an error to the engine. */
  #removeContainers(): Promise<void> {
    const own = ['--quiet', '--filter', `label=${this.label}=${this.owner}`];
    return removing(async () => {
      const ids = await this.run('ps', '--all', ...own);
      if (ids) await this.run(...this.#rm(), ...ids.split('\n'));
      const networks = await this.run('network', 'ls', ...own);
      if (networks) await this.run('network', 'rm', ...networks.split('\n'));
    });
  }

  /** Removes containers by their whole ids, with their anonymous volumes. */
  remove(...containers: string[]): Promise<void> {
    let left = containers;
    return removing(async () => {
      try {
        await this.run(...this.#rm(), ...left);
      } catch (error) {
        // The others have gone, and would be an error the next time.
        const there = (await this.run('ps', '--all', '--quiet', '--no-trunc')).split('\n');
        left = left.filter((id) => there.includes(id));
        if (left.length > 0) throw error;
      }
    });
  }

  /** Podman refuses to remove a container while another one is in its network, and stops before it kills: 10 s each. */
  #rm(): string[] {
    return [
      'rm',
      '--force',
      '--volumes',
      ...(this.command === 'podman' ? ['--depend', '--ignore', '--time', '0'] : []),
    ];
  }

  #labelled(): string[] {
    return ['--label', `${this.label}=${this.owner}`];
  }

  /** Once `removeAll` has begun nothing more is made. */
  async #making<T>(make: () => Promise<T>): Promise<T> {
    if (this.#isClosed) throw new EngineError('it is being stopped');
    const made = make();
    this.#starting.add(made);
    try {
      return await made;
    } finally {
      this.#starting.delete(made);
    }
  }

  /** Removes what killed processes of this machine have left behind. */
  async removeStale(): Promise<void> {
    const format = `{{.ID}} {{.Label "${this.label}"}}`;
    for (const [list, remove] of [
      [['ps', '--all'], this.#rm()],
      [
        ['network', 'ls'],
        ['network', 'rm'],
      ],
    ] as [string[], string[]][]) {
      const lines = await this.run(...list, '--filter', `label=${this.label}`, '--format', format);
      const stale = lines.split('\n').filter((line) => isStale(line.split(' ')[1] ?? ''));
      // Another process that starts at the same moment may be faster.
      for (const line of stale) await this.run(...remove, line.split(' ')[0] ?? '').catch(() => {});
    }
    const start = `${this.label}-`;
    for (const name of readdirSync(tmpdir()).filter((name) => name.startsWith(start)))
      if (isStale(name.slice(start.length)) && isOwn(join(tmpdir(), name)))
        rmSync(join(tmpdir(), name), { recursive: true, force: true });
  }

  /** Removes everything that this object has made, and lets nothing more be made. */
  async removeAll(): Promise<void> {
    this.#isClosed = true;
    const isStarted = Promise.allSettled(this.#starting);
    let isLate = false;
    // An image that is being pulled may take minutes.
    const late = setTimeout(() => {
      isLate = true;
      for (const program of this.#programs) program.kill();
    }, STARTING_MS);
    await isStarted;
    clearTimeout(late);
    try {
      await this.#removeContainers();
      // The engine itself may have gone on with what its program was killed at.
      if (isLate) await this.#removeContainers();
    } finally {
      for (const name of readdirSync(tmpdir()).filter((name) => name.startsWith(`${this.label}-${this.owner}-`)))
        rmSync(join(tmpdir(), name), { recursive: true, force: true });
    }
  }
}

/**
 * Tries again what the engine has refused. Docker gives up a container whose first process has ended and is not reaped
 * yet ("is zombie and can not be killed"); a moment later it can be removed.
 */
async function removing(remove: () => Promise<void>): Promise<void> {
  for (let tries = REMOVE_TRIES; ; tries -= 1) {
    try {
      return await remove();
    } catch (error) {
      if (tries <= 1) throw error;
      await new Promise((resolve) => setTimeout(resolve, REMOVE_AGAIN_MS));
    }
  }
}

/** Waits for all, then fails if one has failed: what is still being started could not be removed. */
export async function together<T>(all: Promise<T>[]): Promise<T[]> {
  await Promise.allSettled(all);
  return Promise.all(all);
}

/** Whether an owner was a process of this machine that has ended; another machine may share the engine. */
export function isStale(owner: string): boolean {
  const [, host, pid] = /^(.+)\.([0-9]+)-[0-9a-f]{6}/.exec(owner) ?? [];
  return host === hostname() && !isAlive(Number(pid));
}

/** In /tmp anybody can make a folder of such a name, and put a link into it while it is being removed. */
function isOwn(folder: string): boolean {
  return process.getuid === undefined || lstatSync(folder, { throwIfNoEntry: false })?.uid === process.getuid();
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'; // another user's
  }
}
