/** What several scenarios use: pages, files, peers, programs beside them. */
import { cpSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { docker, engine, NODE_IMAGE } from '../../e2e/harness/engine/docker.ts';
import { until } from '../../e2e/harness/engine/pod.ts';
import { INSIDE } from '../lib/inside.ts';
import { type Group, type Plan, type Record, runLoad, type Target } from '../lib/load.ts';
import { InOneContainer } from '../systems/in-one-container.ts';
import { type NginxOptions, startNginx } from '../systems/nginx.ts';
import { Folder } from '../systems/system.ts';

export const PEERS_IMAGE = process.env.CORELANE_PEERS_IMAGE ?? 'corelane.local/peers:dev';
const PEERS = fileURLToPath(new URL('../peers', import.meta.url));
export const PEERS_MOUNT = ['--volume', `${PEERS}:/peers:ro`];
export const INSIDE_MOUNT = ['--volume', `${INSIDE}:/bench:ro`];

const PORT = 9000;
const WORKER_PORT = 9002;
const TIMEOUT_MS = 30_000;

/** A page that may be kept for a minute. */
export function keptPage(id: string, bytes: number, steps = ''): string {
  return `/?id=${id}&size=${bytes}&steps=${steps}&header=cache-control:max-age=60`;
}

/** What has a way in. */
export interface Reachable {
  network: string;
  targets: Target[];
}

/** Runs phases against a system; every target but the last of `more` is its own. */
export function load(system: Reachable, phases: Group[][], more: Partial<Plan> = {}): Promise<Record[]> {
  return runLoad(system.network, { targets: system.targets, bodyBytes: 0, timeoutMs: TIMEOUT_MS, phases, ...more });
}

/** Waits until a path is answered as wanted: a peer that is set up wrongly must not look like a bad one. */
export async function untilServes(system: Reachable, path = '/?id=hello', wanted = 200): Promise<void> {
  const group = { name: 'hello', concurrency: 1, count: 1, seconds: 10, requests: [{ path }] };
  await until(`${path} is answered ${wanted}`, async () => (await load(system, [[group]]))[0]?.status === wanted);
}

/** Runs `work` with a system that has been started, and stops it. */
export async function withSystem<S extends { stop(): Promise<void> }, T>(
  start: Promise<S>,
  work: (system: S) => Promise<T>,
): Promise<T> {
  const system = await start;
  try {
    return await work(system);
  } finally {
    await system.stop();
  }
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

/** Next's own server, with a note of each request. A standalone build needs its files copied in, as Next's manual says. */
export async function startNext(folder: string): Promise<InOneContainer> {
  const whole = new Folder();
  const server = join(whole.path, 'server');
  cpSync(join(folder, '.next/standalone'), server, { recursive: true });
  cpSync(join(folder, '.next/static'), join(server, '.next/static'), { recursive: true });
  const system = await InOneContainer.start({
    name: 'next',
    workers: 1,
    command: ['node', ...COUNTED, 'server.js'],
    env: { PORT: `${PORT}`, HOSTNAME: '127.0.0.1', NODE_ENV: 'production' },
    ports: [PORT],
    options: ['--volume', `${server}:/app:ro`, '--workdir', '/app'],
  });
  const stop = system.stop.bind(system);
  system.stop = () => stop().finally(() => whole.remove());
  return system;
}
const COUNTED = ['--require', '/bench/count.cjs'];
/** The same server as a worker. */
export const NEXT_COMMAND = ['node', ...COUNTED, '.next/standalone/server.js'];

/** nginx' own cache as its manual has it, with the lock that lets one request fill it. */
export const NGINX_CACHE: NginxOptions = {
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

/** Runs a Node.js program of /peers in a system's network; gives its output. */
export function runPeer({ network }: Reachable, ...args: string[]): Promise<string> {
  return engine.runToEnd('--network', network, ...PEERS_MOUNT, '--entrypoint', 'node', NODE_IMAGE, ...args);
}

/** All containers of a system may use the first core only; whoever asks gets the second. */
export async function onFirstCore(containers: string[]): Promise<void> {
  if (availableParallelism() > 1) await docker('update', '--cpuset-cpus', '0', ...containers);
}
export const SECOND_CORE = availableParallelism() > 1 ? ['--cpuset-cpus', '1'] : [];
