/** A program below the supervisor, without containers. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { until, type WorkerEvent } from '../../e2e/harness/engine/pod.ts';
import { freePorts } from '../../operator/test/support/free-ports.ts';
import type { Mutant } from './mutants/mutant.ts';
import { CURRENT_MUTANT, mutated } from './mutants/mutants.ts';

const FILES = fileURLToPath(new URL('../runtime', import.meta.url));
export const RUNTIME = join(CURRENT_MUTANT ? mutatedFiles(CURRENT_MUTANT) : FILES, 'supervisor.cjs');

/** A copy of the runtime as a mutant has it. */
function mutatedFiles(mutant: Mutant): string {
  const folder = mkdtempSync(join(tmpdir(), 'corelane-runtime-'));
  for (const file of readdirSync(FILES).filter((name) => name.endsWith('.cjs')))
    writeFileSync(join(folder, file), mutated(mutant, file, readFileSync(join(FILES, file), 'utf8')));
  return folder;
}

/** One request, on a connection of its own. */
export function get(
  port: number,
  path: string,
  headers = {},
  agent: http.Agent | false = false,
): Promise<{ status: number; headers: http.IncomingHttpHeaders; body: string }> {
  return new Promise((resolve, reject) => {
    const request = http.get({ host: '127.0.0.1', port, path, headers, agent }, (response) => {
      let body = '';
      response.on('data', (chunk) => (body += chunk));
      response.on('error', reject);
      response.on('end', () => resolve({ status: response.statusCode ?? 0, headers: response.headers, body }));
    });
    request.on('error', reject);
  });
}

/** `accepted`, or the code of the error. */
export function connecting(port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = net.connect(port, '127.0.0.1', () => resolve('accepted'));
    socket.on('connect', () => socket.destroy());
    socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code));
  });
}

/** One supervised program: the files as they are, on the machine itself. */
export class Program {
  readonly folder = mkdtempSync(join(tmpdir(), 'corelane-supervisor-'));
  port = 0;
  runtimePort = 0;
  process: ChildProcess | undefined;
  output = '';
  readonly #stallMs: number;

  /** @param stallMs after so long without a sign the server process counts as stuck */
  constructor(stallMs = 1500) {
    this.#stallMs = stallMs;
  }

  async start(binary: string, args: string[], env: Record<string, string> = {}): Promise<void> {
    await this.launch(binary, args, env);
    await until(`it is up; ${this.output}`, () =>
      this.health().then(
        ({ status }) => status === 200,
        () => false,
      ),
    );
  }

  /** @param env NODE_OPTIONS stands behind the runtime's option, unless it has that itself */
  async launch(binary: string, args: string[], env: Record<string, string> = {}): Promise<void> {
    const entry = `--require=${RUNTIME}`;
    const { NODE_OPTIONS: options = '' } = env;
    [this.port = 0, this.runtimePort = 0] = await freePorts(2);
    const { NODE_OPTIONS: _own, ...outer } = process.env;
    this.process = spawn(binary, args, {
      env: {
        ...outer,
        PORT: String(this.port),
        WORKER_INDEX: '0',
        CORELANE_RUNTIME_PORT: String(this.runtimePort),
        CORELANE_STALL_TIMEOUT_MS: String(this.#stallMs),
        EVENTS: join(this.folder, 'events'),
        ...env,
        NODE_OPTIONS: options.includes(entry) ? options : `${entry} ${options}`,
      },
    });
    for (const stream of [this.process.stdout, this.process.stderr])
      stream?.on('data', (chunk) => (this.output += chunk));
  }

  /** Lets a request end that the worker holds (hold=1). */
  release(id: string): void {
    writeFileSync(join(this.folder, `events.${id}`), '');
  }

  /** Tells the worker, as HAProxy does, how many requests it may have at a time. */
  allow(limit: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const socket = net.connect(this.runtimePort, '127.0.0.1', () => socket.write(`corelane-agent ${limit}\n`));
      socket.once('data', () => {
        socket.destroy();
        resolve();
      });
      socket.once('error', reject);
    });
  }

  health() {
    return get(this.runtimePort, '/healthz');
  }

  events(event: string): WorkerEvent[] {
    const file = join(this.folder, 'events');
    const lines = existsSync(file) ? readFileSync(file, 'utf8').split('\n').slice(0, -1) : [];
    return lines.map((line) => JSON.parse(line)).filter((found) => found.event === event);
  }

  /** The next server process after `pid`, up. */
  async next(pid: number): Promise<number> {
    const up = await until('another one is up', () => this.events('up').find((event) => event.pid !== pid));
    await until('the supervisor says so', async () => (await this.health()).status === 200);
    return up.pid;
  }

  async stop(): Promise<void> {
    if (this.process && this.process.exitCode === null && this.process.signalCode === null) {
      const ended = new Promise((resolve) => this.process?.once('exit', resolve));
      this.process.kill('SIGTERM');
      await ended;
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}
