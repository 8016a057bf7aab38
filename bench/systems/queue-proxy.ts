/**
 * Knative's queue-proxy, one per worker as in a Knative pod with containerConcurrency 1, behind random choice as by a
 * Kubernetes Service. Its admin ports are fixed, so each has a network of its own.
 */
import { execFileSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { docker, NODE_IMAGE, start } from '../../e2e/harness/engine/docker.ts';
import type { Target } from '../lib/load.ts';
import type { Notes } from '../lib/notes.ts';
import { addressOf, BaseSystem, Folder, notesIn, startNode } from './system.ts';

const SCRIPT = fileURLToPath(new URL('../peers/queue-proxy.sh', import.meta.url));
const PORT = 8012;
const WORKER_PORT = 3000;
/** All must be there, if only empty. */
const ENV = {
  CONTAINER_CONCURRENCY: 1,
  QUEUE_SERVING_PORT: PORT,
  QUEUE_SERVING_TLS_PORT: 8112,
  USER_PORT: WORKER_PORT,
  REVISION_TIMEOUT_SECONDS: 300,
  SERVING_LOGGING_CONFIG: '',
  SERVING_LOGGING_LEVEL: 'error',
  SERVING_NAMESPACE: 'bench',
  SERVING_CONFIGURATION: 'bench',
  SERVING_REVISION: 'bench',
  SERVING_POD: 'bench',
  SERVING_POD_IP: '127.0.0.1',
};

export class QueueProxies extends BaseSystem {
  readonly name = 'queue-proxy';
  readonly workers: number;
  readonly notes: Notes;
  readonly network: string;
  readonly targets: Target[];
  readonly #folder: Folder;
  readonly #containers: string[];

  private constructor(folder: Folder, containers: string[], proxies: string[], targets: Target[]) {
    super();
    this.workers = containers.length;
    this.notes = notesIn(folder);
    // Of one: over loopback as the others. Of several: over Docker's bridge.
    this.network = containers.length === 1 ? `container:${containers[0]}` : 'bridge';
    this.targets = targets;
    this.direct = targets.map(({ host }) => ({ host, port: WORKER_PORT }));
    this.proxies = proxies;
    this.#folder = folder;
    this.#containers = containers;
  }

  static async start(workers: number): Promise<QueueProxies> {
    const program = execFileSync(SCRIPT, { stdio: ['ignore', 'pipe', 'inherit'], encoding: 'utf8' }).trim();
    const folder = new Folder();
    const containers: string[] = [];
    const proxies: string[] = [];
    const targets: Target[] = [];
    for (let worker = 0; worker < workers; worker += 1) {
      const env = ['--env', `PORT=${WORKER_PORT}`, '--env', `WORKER_INDEX=${worker}`];
      const container = await startNode(folder, env, ['node', '/bench/launcher.mjs', 'processes', '1']);
      containers.push(container);
      proxies.push(await startQueueProxy(program, container));
      targets.push({ host: workers === 1 ? '127.0.0.1' : await addressOf(container), port: PORT });
    }
    const system = new QueueProxies(folder, containers, proxies, targets);
    await system.allUp();
    return system;
  }

  protected containerOf(worker: number): string {
    return this.#containers[worker] ?? '';
  }

  protected async remove(): Promise<void> {
    // Forced: it would wait 30 s after SIGTERM.
    await docker('rm', '--force', '--volumes', ...this.proxies, ...this.#containers);
    this.#folder.remove();
  }
}

function startQueueProxy(program: string, container: string): Promise<string> {
  const env = Object.entries(ENV).flatMap(([name, value]) => ['--env', `${name}=${value}`]);
  const mount = ['--volume', `${program}:/queue-proxy:ro`];
  return start('--network', `container:${container}`, ...mount, ...env, '--entrypoint', '/queue-proxy', NODE_IMAGE);
}
