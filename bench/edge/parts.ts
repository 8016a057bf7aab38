/** What several scenarios use: pages, peers, programs beside them. */
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { docker, engine, NODE_IMAGE } from '../../e2e/harness/engine/docker.ts';
import { exampleWorker } from '../../e2e/harness/engine/examples.ts';
import type { WorkerOptions } from '../../e2e/harness/engine/pod.ts';
import { INSIDE } from '../lib/inside.ts';
import { type Group, type Plan, type Record, runLoad, type Target } from '../lib/load.ts';
import { InOneContainer } from '../systems/in-one-container.ts';
import { type NginxOptions, startNginx } from '../systems/nginx.ts';

export const PEERS_IMAGE = process.env.CORELANE_PEERS_IMAGE ?? 'corelane.local/peers:dev';
const PEERS = fileURLToPath(new URL('../peers', import.meta.url));
const PEERS_MOUNT = ['--volume', `${PEERS}:/peers:ro`];
const INSIDE_MOUNT = ['--volume', `${INSIDE}:/bench:ro`];

const PORT = 9000;
const WORKER_PORT = 9002;
const TIMEOUT_MS = 30_000;

/** A page that may be kept for a minute. */
export function keptPage(id: string, bytes: number, steps = ''): string {
  return `/?id=${id}&size=${bytes}&steps=${steps}&header=cache-control:max-age=60`;
}

/** The burst cache as it comes: pages say themselves how long they are kept. */
export const CACHED = { cache: { enabled: true } };

/** What has a way in. */
export interface Reachable {
  network: string;
  targets: Target[];
}

/** What nobody counts: the system is there. */
const HELLO = { path: '/?id=hello', status: 200 };

/** Runs phases against a system, as soon as it answers. */
export function load(system: Reachable, phases: Group[][], more: Partial<Plan> = {}): Promise<Record[]> {
  const { network, targets } = system;
  return runLoad(network, { targets, bodyBytes: 0, timeoutMs: TIMEOUT_MS, hello: HELLO, phases, ...more });
}

/** Waits until a path is answered as wanted. */
export async function untilServes(system: Reachable, path = HELLO.path, status = HELLO.status): Promise<void> {
  await load(system, [], { hello: { path, status } });
}

/** So that programs, caches and compilers are warm before anything is measured. */
export function warmUp(concurrency: number): Group {
  return { name: 'warm-up', concurrency, count: 400, seconds: 1, requests: [{ path: '/?id=a&steps=b5' }] };
}

/** Node.js by itself: one process, straight. */
export function startNode(options: string[] = []): Promise<InOneContainer> {
  const command = ['node', '/bench/worker.mjs'];
  return InOneContainer.start({ name: 'node', workers: 1, command, env: { PORT: `${PORT}` }, ports: [PORT], options });
}

/** Express with a cache in its process, and its own files. */
export function startExpress(options: string[] = []): Promise<InOneContainer> {
  return InOneContainer.start({
    name: 'express',
    workers: 1,
    command: ['node', '/peers/express.mjs'],
    env: { PORT: `${PORT}`, NODE_ENV: 'production' },
    ports: [PORT],
    options: [...PEERS_MOUNT, ...options],
  });
}

/** The example of the guide to Next as a worker, with a note of each request. */
export async function nextWorker(): Promise<WorkerOptions> {
  return { ...(await exampleWorker('next')), command: COUNTED_NEXT, options: INSIDE_MOUNT };
}
const COUNTED_NEXT = ['node', '--require', '/bench/count.cjs', 'server.js'];

/** Next's own server, from the same image. */
export async function startNext(): Promise<InOneContainer> {
  const { image } = await exampleWorker('next');
  return InOneContainer.start({
    name: 'next',
    workers: 1,
    command: COUNTED_NEXT,
    env: { PORT: `${PORT}`, HOSTNAME: '127.0.0.1' },
    ports: [PORT],
    image,
  });
}

/** nginx' own cache as its manual has it, with the lock that lets one request fill it. */
const NGINX_CACHE: NginxOptions = {
  main: 'proxy_cache_path /tmp/cache levels=1:2 keys_zone=pages:8m max_size=256m use_temp_path=off;',
  location: `proxy_cache pages; proxy_cache_lock on; proxy_cache_lock_timeout 30s; proxy_cache_lock_age 30s;
      proxy_cache_key $host$request_uri;`,
};

export function startCachingNginx(workers = 1): Promise<InOneContainer> {
  return startNginx(workers, NGINX_CACHE);
}

const VCL = `vcl 4.1;
backend worker { .host = "127.0.0.1"; .port = "${WORKER_PORT}"; .first_byte_timeout = 60s; }
`;

/** Varnish as it comes, in front of `command`; with further arguments. */
export function startVarnish(
  command = ['node', '/bench/worker.mjs'],
  options: string[] = [],
  more: string[] = [],
): Promise<InOneContainer> {
  const varnish = ['varnishd', '-F', '-f', '/config/default.vcl', '-a', `127.0.0.1:${PORT}`, '-n', '/tmp/varnish'];
  const files = { 'default.vcl': VCL };
  return InOneContainer.start({
    name: 'varnish',
    workers: 1,
    command,
    env: { PORT: `${WORKER_PORT}` },
    ports: [PORT],
    options,
    proxies: [{ command: [...varnish, '-j', 'none', '-s', 'malloc,128m', ...more], files, image: PEERS_IMAGE }],
  });
}

/** nginx with a cache in front of another program than worker.mjs; with further directives of the location. */
export function startCachingNginxBefore(command: string[], options: string[], more: string): Promise<InOneContainer> {
  const location = `${NGINX_CACHE.location} ${more}`;
  return startNginx(1, { ...NGINX_CACHE, location, command, options });
}

/** Runs a Node.js program in a system's network, with options of the engine; gives its output. */
export function runNode({ network }: Reachable, options: string[], ...args: string[]): Promise<string> {
  return engine.runToEnd('--network', network, ...options, '--entrypoint', 'node', NODE_IMAGE, ...args);
}

/** All containers of a system may use the first core only; whoever asks gets the second. */
export async function onFirstCore(containers: string[]): Promise<void> {
  if (availableParallelism() > 1) await docker('update', '--cpuset-cpus', '0', ...containers);
}
export const SECOND_CORE = availableParallelism() > 1 ? ['--cpuset-cpus', '1'] : [];
