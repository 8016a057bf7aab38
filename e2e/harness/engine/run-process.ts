/** `corelane run` as a user starts it, and what it has left behind. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { docker } from './docker.ts';
import { until } from './pod.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const LABEL = 'corelane.run';
/** Images may have to be looked for, and containers started, on a busy machine. */
const WAIT_MS = 120_000;

export class RunProcess {
  static readonly #all = new Set<RunProcess>();

  output = '';
  readonly #process: ChildProcess;
  readonly #code: Promise<number | null>;

  constructor(args: string[], env: Record<string, string | undefined> = {}) {
    const options = { cwd: ROOT, env: { ...process.env, NODE_OPTIONS: '', ...env } };
    this.#process = spawn(process.execPath, [join(ROOT, 'operator/bin/corelane.mjs'), 'run', ...args], options);
    for (const stream of [this.#process.stdout, this.#process.stderr])
      stream?.on('data', (chunk) => {
        this.output += chunk;
      });
    this.#code = new Promise((resolve) => this.#process.once('close', resolve));
    RunProcess.#all.add(this);
  }

  /** For afterEach: ends all that still run. */
  static async endAll(): Promise<void> {
    for (const run of RunProcess.#all) await run.end('SIGTERM');
    RunProcess.#all.clear();
  }

  /** Waits for a line, and gives it as the pattern has matched it. */
  async says(pattern: RegExp): Promise<RegExpExecArray> {
    let code: number | null | undefined;
    void this.#code.then((ended) => {
      code = ended;
    });
    try {
      return await until(
        String(pattern),
        () => {
          const found = pattern.exec(this.output);
          if (!found && code !== undefined) throw new Error(`it has ended with ${code}`);
          return found;
        },
        WAIT_MS,
      );
    } catch (error) {
      throw new Error(`${(error as Error).message}\n${this.output}`);
    }
  }

  /** Waits until it serves, and gives its address. */
  async url(): Promise<string> {
    const [, url = ''] = await this.says(/^(http:\S+) is ready/m);
    return url;
  }

  /** Its output has no reader from now on. */
  stopReading(): void {
    this.#process.stdout?.destroy();
    this.#process.stderr?.destroy();
  }

  /** Sends a signal if there is one; gives the exit code. One that does not end is killed, and says how far it came. */
  async end(signal?: NodeJS.Signals): Promise<number | null> {
    if (signal) this.#process.kill(signal);
    let isLate = false;
    const late = setTimeout(() => {
      isLate = true;
      this.#process.kill('SIGKILL');
    }, WAIT_MS);
    const code = await this.#code;
    clearTimeout(late);
    if (isLate) throw new Error(`it does not end\n${this.output}`);
    return code;
  }

  /** Containers, networks and folders that are this run's. */
  async leftovers(): Promise<string[]> {
    const owner = `${hostname()}.${this.#process.pid}-`;
    const format = ['--filter', `label=${LABEL}`, '--format', `{{.ID}} {{.Label "${LABEL}"}}`];
    const lines = await Promise.all([docker('ps', '--all', ...format), docker('network', 'ls', ...format)]);
    const folders = readdirSync(tmpdir()).filter((name) => name.startsWith(`${LABEL}-${owner}`));
    return [...lines.flatMap((text) => text.split('\n')).filter((line) => line.includes(` ${owner}`)), ...folders];
  }
}

/** A folder with a program. */
export class App {
  readonly folder = mkdtempSync(join(tmpdir(), 'corelane-app-'));

  constructor(files: Record<string, string>) {
    for (const [file, text] of Object.entries(files)) this.write(file, text);
  }

  write(file: string, text: string): void {
    const path = join(this.folder, file);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }

  remove(): void {
    rmSync(this.folder, { recursive: true });
  }
}

export async function textOf(url: string): Promise<string> {
  const response = await fetch(url, { signal: AbortSignal.timeout(60_000) });
  return `${response.status} ${(await response.text()).trim()}`;
}
