/** A system under test: workers, and whatever gives them their requests. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { docker, NODE_IMAGE, start } from '../../e2e/harness/engine/docker.ts';
import { until } from '../../e2e/harness/engine/pod.ts';
import { INSIDE } from '../lib/inside.ts';
import type { Target } from '../lib/load.ts';
import { isBusy, Notes } from '../lib/notes.ts';
import { Shell } from '../lib/shell.ts';

/** Peers without a watchdog leave stuck workers behind, which are killed; then all must be up again. */
const RECOVER_MS = 60_000;

export interface System {
  readonly name: string;
  readonly workers: number;
  readonly notes: Notes;
  /** Docker network of the client. */
  readonly network: string;
  /** More than one: each request goes to a random one. */
  readonly targets: Target[];
  /** Each worker's own address in that network, past all proxies. */
  readonly direct: Target[];
  /** Containers of the proxies. */
  readonly proxies: string[];
  kill(worker: number, signal: string): void;
  /** Restarts all workers in order, one after the other. */
  restartAll(): Promise<void>;
  stop(): Promise<void>;
}

/** What the systems share: notes, kills, restarts, and the end. */
export abstract class BaseSystem implements System {
  abstract readonly name: string;
  abstract readonly workers: number;
  abstract readonly notes: Notes;
  abstract readonly network: string;
  abstract readonly targets: Target[];
  direct: Target[] = [];
  proxies: string[] = [];
  readonly #shells = new Map<string, Shell>();

  /** The container of a worker's process. */
  protected abstract containerOf(worker: number): string;

  kill(worker: number, signal: string): void {
    const pid = this.notes.processes().get(worker);
    const container = this.containerOf(worker);
    if (pid === undefined) return;
    this.#shell(container).kill(pid, signal);
  }

  async restartAll(): Promise<void> {
    for (let worker = 0; worker < this.workers; worker += 1) {
      const before = this.notes.processes().get(worker);
      this.kill(worker, 'TERM');
      await until(`worker ${worker} restarts`, () => this.notes.processes().get(worker) !== before);
    }
  }

  /** On Docker's bridge, for a client whose targets are in several networks (its own is `bridge` then). */
  address(): Promise<string> {
    return addressOf(this.network.replace('container:', ''));
  }

  /** Opens the shells in advance. */
  protected async allUp(): Promise<void> {
    await until('all workers are up', () => this.notes.processes().size === this.workers);
    for (let worker = 0; worker < this.workers; worker += 1) this.#shell(this.containerOf(worker));
  }

  async stop(): Promise<void> {
    for (const shell of this.#shells.values()) shell.close();
    await this.remove();
  }

  protected abstract remove(): Promise<void>;

  #shell(container: string): Shell {
    const shell = this.#shells.get(container) ?? new Shell(container);
    this.#shells.set(container, shell);
    return shell;
  }
}

/** Kills what is stuck, and waits until no worker is busy. */
export async function recover(system: System): Promise<void> {
  const killed = new Map<number, number>();
  const settle = setTimeout(() => {
    for (const [worker, pid] of system.notes.processes()) {
      if (!isBusy(system.notes.read(), worker)) continue;
      killed.set(worker, pid);
      system.kill(worker, 'KILL');
    }
  }, 500);
  const isBack = (worker: number) =>
    !isBusy(system.notes.read(), worker) && system.notes.processes().get(worker) !== killed.get(worker);
  await until(
    `the workers of ${system.name} are free`,
    () => Array.from({ length: system.workers }, (_unused, worker) => worker).every(isBack),
    RECOVER_MS,
  ).finally(() => clearTimeout(settle));
}

/** A folder that is removed with its system, with a file for the notes in it. */
export class Folder {
  readonly path = mkdtempSync(join(tmpdir(), 'corelane-bench-'));

  constructor() {
    chmodSync(this.path, 0o755);
  }

  /** A folder in it that every user of every container may write. */
  open(name: string): string {
    const folder = join(this.path, name);
    mkdirSync(folder, { recursive: true });
    chmodSync(folder, 0o777);
    return folder;
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

/** Starts a container with Node.js, the files of bench/inside and a place for notes. */
export function startNode(
  folder: Folder,
  options: string[],
  command: string[],
  image: string = NODE_IMAGE,
): Promise<string> {
  const [entrypoint = '', ...args] = command;
  const mounts = ['--volume', `${INSIDE}:/bench:ro`, '--volume', `${folder.open('events')}:/events`];
  const env = ['--env', 'EVENTS=/events/lines', '--init'];
  return start(...options, ...mounts, ...env, '--entrypoint', entrypoint, image, ...args);
}

/** Notes of the containers that `startNode` has started with this folder. */
export function notesIn(folder: Folder): Notes {
  return new Notes(join(folder.path, 'events', 'lines'));
}

/** Address of a container on Docker's own bridge. */
export function addressOf(container: string): Promise<string> {
  return docker('inspect', '--format', '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}', container);
}
