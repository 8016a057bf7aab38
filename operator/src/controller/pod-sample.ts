/** What a pod tells about itself on port 8999: HAProxy's figures, and its supervisors' where a worker had trouble. */
import { Exposition } from '../kube/exposition.ts';

/** A worker that ends again and again; its supervisor waits longer and longer before it starts it anew. */
export interface CrashLoop {
  /** As a shell has it: 128 + number of the signal for a process that was killed. */
  exitCode: number;
  /** Wait before the last try. */
  backoffSeconds: number;
}

export interface WorkerSample {
  /** worker-0, worker-1, ... */
  name: string;
  /** Whether HAProxy gives it requests. */
  up: boolean;
  /** Requests that it has now. */
  busy: number;
  /** How often it has gone down since HAProxy started. */
  downs: number;
  crashLoop?: CrashLoop;
}

export interface PodSample {
  workers: WorkerSample[];
  /** Requests that wait for a worker. */
  queue: number;
  /** 503 queue-full since HAProxy started. */
  queueFullTotal: number;
  /** 503 queue-timeout since HAProxy started. */
  queueTimeoutTotal: number;
}

/** Of the 100 kB that HAProxy could tell only these. */
const METRICS = [
  'haproxy_server_status',
  'haproxy_server_connection_errors_total',
  'haproxy_server_current_sessions',
  'haproxy_server_check_up_down_total',
  'haproxy_backend_current_queue',
  'haproxy_backend_connection_errors_total',
  'haproxy_frontend_intercepted_requests_total',
];
/** Servers in maintenance are places for peers that do not exist. */
const HAPROXY_PAGE = `/metrics?no-maint&metrics=${METRICS.join(',')}`;

/**
 * Asks one pod: one request, and one more for each worker that is down, has been down since the last time, or was in a
 * crash loop then (the first time for each worker). So a fleet at peace costs one request per pod.
 * @param get body of a page of port 8999
 * @param before the last sample of the same pod, if there is one
 */
export async function samplePod(get: (path: string) => Promise<string>, before?: PodSample): Promise<PodSample> {
  const sample = haproxySample(new Exposition(await get(HAPROXY_PAGE)));
  for (const [index, worker] of sample.workers.entries()) {
    const last = before?.workers.find(({ name }) => name === worker.name);
    const isSuspicious = !worker.up || worker.downs !== last?.downs || last.crashLoop !== undefined;
    const crashLoop = isSuspicious ? await readCrashLoop(get, index) : undefined;
    if (crashLoop) worker.crashLoop = crashLoop;
  }
  return sample;
}

function haproxySample(page: Exposition): PodSample {
  const names = page
    .all('haproxy_server_status', { proxy: 'workers', state: 'UP' })
    .map(({ labels }) => labels.server ?? '')
    .filter((name) => /^worker-[0-9]+$/.test(name));
  const workers = names.map((name) => {
    const server = { proxy: 'workers', server: name };
    return {
      name,
      up: page.sum('haproxy_server_status', { ...server, state: 'UP' }) === 1,
      busy: page.sum('haproxy_server_current_sessions', server),
      downs: page.sum('haproxy_server_check_up_down_total', server),
    };
  });
  return {
    workers,
    // ADR 6: in line, for a worker whose last client has gone, and for any worker to come up.
    queue:
      page.sum('haproxy_backend_current_queue', { proxy: 'line' }) +
      page.sum('haproxy_backend_current_queue', { proxy: 'workers' }) +
      page.sum('haproxy_server_current_sessions', { proxy: 'workers', server: 'waiting-room' }),
    // The only thing that the entrance answers by itself.
    queueFullTotal: page.sum('haproxy_frontend_intercepted_requests_total', { proxy: 'front' }),
    // A place in line can end with no other error, but for peers that could not be reached (they are servers of line).
    queueTimeoutTotal:
      page.sum('haproxy_backend_connection_errors_total', { proxy: 'line' }) -
      page.sum('haproxy_server_connection_errors_total', { proxy: 'line' }),
  };
}

/** Undefined as well where there is no supervisor to ask (no Node.js, or it starts just now). */
async function readCrashLoop(get: (path: string) => Promise<string>, index: number): Promise<CrashLoop | undefined> {
  try {
    const page = new Exposition(await get(`/workers/${index}/metrics`));
    if (page.sum('corelane_worker_crash_looping') !== 1) return undefined;
    return {
      exitCode: page.sum('corelane_worker_last_exit_code'),
      backoffSeconds: page.sum('corelane_worker_backoff_seconds'),
    };
  } catch {
    return undefined;
  }
}
