/** What a pod tells about itself on port 8999: HAProxy's metrics, and its supervisors' where a worker had trouble. */
import { z } from 'zod';
import { WORKER_CONTAINER } from '../api/names.ts';
import type { EventLoops } from '../autoscale/idle-workers.ts';
import { Exposition, type Labels } from './exposition.ts';

const WORKER_PREFIX = `${WORKER_CONTAINER}-`;

/** A worker that ends again and again; its supervisor waits longer and longer before it starts it anew. */
export interface CrashLoop {
  /** As a shell has it: 128 + number of the signal for a process that was killed. */
  exitCode: number;
  /** Wait before the last try. */
  backoffSeconds: number;
}

/** An event loop that stood still until its supervisor killed it. */
export interface Stall {
  /** worker-0, worker-1, ... */
  worker: string;
  /** When it was noticed, ISO 8601. */
  time: string;
  seconds: number;
  /** Function, file and line: `renderPrice /app/price.js:41`. */
  in: string;
}

/** Page /stalls of a supervisor. It runs in the user's container, so nothing in it is trusted. */
const stallsPage = z.object({
  stalls: z.array(z.object({ time: z.iso.datetime(), seconds: z.number(), in: z.string() })).max(20),
});

export interface WorkerSample {
  /** worker-0, worker-1, ... */
  name: string;
  /** Whether it is there: HAProxy gives it requests, or it is blocked. */
  up: boolean;
  /** Requests that it has now, but for those that go on without a render slot: open streams and downloads. */
  busy: number;
  /** Requests that HAProxy gives it at a time now, but for those; undefined where it did not say. */
  places?: number;
  /** All its places are taken by renders that were given up; HAProxy gives it none. */
  blocked?: true;
  /** How often it has gone down since HAProxy started. */
  downs: number;
  crashLoop?: CrashLoop;
  /** It serves, but nobody supervises it: an image without Node.js, for example. */
  runtimeAbsent?: true;
}

export interface PodSample {
  workers: WorkerSample[];
  /** Requests that wait for a worker. */
  queue: number;
  /** 503 queue-full since HAProxy started. */
  queueFullTotal: number;
  /** 503 queue-timeout since HAProxy started. */
  queueTimeoutTotal: number;
  /** For a minute all workers were taken, their event loops were idle, and more requests waited. */
  areWorkersIdle?: true;
}

/** The part of a sample that says whether a pod is full. */
type Load = Pick<PodSample, 'workers' | 'queue' | 'queueFullTotal' | 'queueTimeoutTotal'>;

/**
 * Whether every worker that is up has all that it may have, and more requests wait, or were refused since `before`. A
 * blocked worker has what was given up: something hangs, and more at a time would hang with it.
 */
export function isFull({ workers, queue, ...totals }: Load, before?: Load): boolean {
  const up = workers.filter((worker) => worker.up);
  const isTaken = ({ busy, blocked, places }: WorkerSample) => !blocked && places !== undefined && busy >= places;
  const hasRefused =
    before !== undefined &&
    (totals.queueFullTotal > before.queueFullTotal || totals.queueTimeoutTotal > before.queueTimeoutTotal);
  return up.length > 0 && up.every(isTaken) && (queue > 0 || hasRefused);
}

const LOOP = 'corelane_worker_event_loop';

/** Seconds of the event loops of all workers, read from the page /corelane/metrics; undefined where it has none. */
export function readEventLoops(text: string): EventLoops | undefined {
  const page = new Exposition(text);
  if (page.all(`${LOOP}_idle_seconds_total`).length === 0) return undefined;
  return { activeS: page.sum(`${LOOP}_active_seconds_total`), idleS: page.sum(`${LOOP}_idle_seconds_total`) };
}

/** Of the 100 kB that HAProxy could tell only these. */
const METRICS = [
  'haproxy_server_status',
  'haproxy_server_connection_errors_total',
  'haproxy_server_current_sessions',
  'haproxy_server_limit_sessions',
  'haproxy_server_check_up_down_total',
  'haproxy_backend_current_queue',
  'haproxy_server_current_queue',
  'haproxy_backend_connection_errors_total',
  'haproxy_frontend_intercepted_requests_total',
  'haproxy_backend_http_requests_total',
];
/** Servers in maintenance are places for peers that do not exist. */
const HAPROXY_PAGE = `/metrics?no-maint&metrics=${METRICS.join(',')}`;

/**
 * Asks one pod: one request, and two more for each worker that is down, has been down since the last time, or was in a
 * crash loop then (the first time for each worker). So a fleet at peace costs one request per pod.
 * @param get body of a page of port 8999; rejects when the time for this pod is over
 * @param workers names of the workers that the pod has; what it tells of others is not read
 * @param before the last sample of the same pod, if there is one
 * @returns the sample, the last stalls of the workers that were asked, and how many requests were refused since HAProxy
 * started
 *   because their URL gets workers stuck
 * @throws what `get` throws for the first page, and when `signal` aborts
 */
export async function samplePod(
  get: (path: string) => Promise<string>,
  workers: string[],
  { before, signal }: { before?: PodSample; signal?: AbortSignal } = {},
): Promise<{ sample: PodSample; stalls: Stall[]; poisonTotal: number }> {
  const { sample, poisonTotal } = await sampleProxies(get, workers);
  const stalls: Stall[] = [];
  for (const worker of sample.workers) {
    const last = before?.workers.find(({ name }) => name === worker.name);
    // One that was down the last time may have said why only after that.
    const wasSuspicious = last?.crashLoop !== undefined || last?.runtimeAbsent;
    if (worker.up && last?.up && worker.downs === last.downs && !wasSuspicious) continue;
    const index = Number(worker.name.slice(WORKER_PREFIX.length));
    const found = await readSupervisor(get, index, worker.up);
    // Half an answer is none: what was not read in time would look like a worker without a runtime.
    signal?.throwIfAborted();
    Object.assign(worker, found);
    if (worker.runtimeAbsent) continue;
    stalls.push(...(await readStalls(get, index, worker.name)));
  }
  return { sample, stalls, poisonTotal };
}

/** The same without what supervisors say: one request. @throws what `get` throws */
export async function sampleProxies(
  get: (path: string) => Promise<string>,
  workers: string[],
): Promise<{ sample: PodSample; poisonTotal: number }> {
  const page = new Exposition(await get(HAPROXY_PAGE));
  const poisonTotal = page.sum('haproxy_backend_http_requests_total', { proxy: 'poison' });
  return { sample: haproxySample(page, new Set(workers)), poisonTotal };
}

/** None as well where there is no supervisor to ask, or an older one. */
async function readStalls(get: (path: string) => Promise<string>, index: number, worker: string): Promise<Stall[]> {
  try {
    return stallsPage.parse(JSON.parse(await get(`/workers/${index}/stalls`))).stalls.map((s) => ({ worker, ...s }));
  } catch {
    return [];
  }
}

function haproxySample(page: Exposition, known: Set<string>): PodSample {
  const ofWorkers = (metric: string) => byServer(page, metric, { proxy: 'workers' });
  const up = byServer(page, 'haproxy_server_status', { proxy: 'workers', state: 'UP' });
  const alive = byServer(page, 'haproxy_server_status', { proxy: 'workers-alive', state: 'UP' });
  // One more than there are (docs/protocol.md): 0 is no limit.
  const withoutSlot = byServer(page, 'haproxy_server_limit_sessions', { proxy: 'workers-alive' });
  const sessions = ofWorkers('haproxy_server_current_sessions');
  const limits = ofWorkers('haproxy_server_limit_sessions');
  const downs = ofWorkers('haproxy_server_check_up_down_total');
  const errors = page.sum('haproxy_server_connection_errors_total', { proxy: 'line' });
  const names = [...known].filter((name) => up.has(name));
  const workers = names.map((name) => {
    const isUp = up.get(name) === 1;
    const blocked = !isUp && alive.get(name) === 1;
    const streams = Math.max(0, (withoutSlot.get(name) ?? 0) - 1);
    const places = limits.get(name);
    return {
      name,
      up: isUp || blocked,
      ...(blocked && { blocked }),
      busy: Math.max(0, (sessions.get(name) ?? 0) - streams),
      // 0 would be: no limit.
      ...(places !== undefined && places > 0 && { places: Math.max(1, places - streams) }),
      downs: downs.get(name) ?? 0,
    };
  });
  return {
    workers,
    // ADR 6: in the queue, for a worker whose last client has gone, and for any worker to come up.
    queue:
      count(page.sum('haproxy_backend_current_queue', { proxy: 'line' })) +
      count(page.sum('haproxy_backend_current_queue', { proxy: 'workers' })) +
      // Of the other side of a canary, and WebSockets: they do not travel on.
      count(page.sum('haproxy_server_current_queue', { proxy: 'line', server: 'slots' })) +
      (sessions.get('waiting-room') ?? 0),
    // The only thing that the entrance answers by itself.
    queueFullTotal: page.sum('haproxy_frontend_intercepted_requests_total', { proxy: 'front' }),
    // A place in the queue can end with no other error, but for peers that could not be reached (they are servers of
    // backend line).
    queueTimeoutTotal: page.sum('haproxy_backend_connection_errors_total', { proxy: 'line' }) - errors,
  };
}

/**
 * Values of a metric of the servers of a proxy, by their names: one look at the page for all of them, which a pod may
 * have made long.
 */
function byServer(page: Exposition, metric: string, labels: Labels & { proxy: string }): Map<string, number> {
  const samples = page.all(metric, labels);
  return new Map(samples.map(({ labels: { server = '' }, value }) => [server, count(value)]));
}

/**
 * Of a pod that says something else than a number of requests: the API server would refuse the status of the whole
 * RenderService.
 */
const COUNT_MAX = 1e9;

function count(value: number): number {
  return value >= 0 && value <= COUNT_MAX ? Math.floor(value) : 0;
}

async function readSupervisor(
  get: (path: string) => Promise<string>,
  index: number,
  isUp: boolean,
): Promise<Pick<WorkerSample, 'crashLoop' | 'runtimeAbsent'>> {
  const page = await get(`/workers/${index}/metrics`).then(
    (text) => new Exposition(text),
    () => undefined,
  );
  // One whose supervisor does not answer may just begin; one that is up has had the time.
  if (!page?.all('corelane_worker_up').length) return isUp ? { runtimeAbsent: true } : {};
  if (page.sum('corelane_worker_crash_looping') !== 1) return {};
  const exitCode = page.sum('corelane_worker_last_exit_code');
  return { crashLoop: { exitCode, backoffSeconds: page.sum('corelane_worker_backoff_seconds') } };
}
