/** What a pod tells of itself at one moment: its proxies, its workers, and all that they have counted so far. */
import { WORKER_CONTAINER } from '../src/api/names.ts';
import { Exposition } from '../src/pods/exposition.ts';
import { sampleProxies, type WorkerSample } from '../src/pods/sample.ts';
import { type Buckets, bucketsOf } from './quantile.ts';

/** A worker as HAProxy and its supervisor see it; what the supervisor does not say is undefined. */
export interface WorkerFigures extends WorkerSample {
  /** Since its event loop has given a sign of life. */
  silentS?: number | undefined;
  requests?: number | undefined;
  restarts?: number | undefined;
  /** Waits before it is started again. */
  isBackingOff: boolean;
  cpuS?: number | undefined;
  activeS?: number | undefined;
  idleS?: number | undefined;
  gcS?: number | undefined;
  /** Of all renders that have ended: several at a time count several times. */
  renderedS?: number | undefined;
  /** Requests that its program sent, and that a full queue of Corelane refused. */
  refusedOwn?: number | undefined;
  /** Renders that waited beside a child process while all of its slots were taken. */
  childWaits?: number | undefined;
  memoryBytes?: number | undefined;
  oldSpaceBytes?: number | undefined;
  /** When its event loop was stuck last, and in which function. */
  lastStall?: { atMs: number; in: string } | undefined;
  renders: Buckets;
}

export interface PodFigures {
  atMs: number;
  workers: WorkerFigures[];
  /** Requests that wait. */
  queue: number;
  queueFullTotal: number;
  queueTimeoutTotal: number;
  /** Requests that have ended, by status and reason: `2xx `, `503 queue-full`. */
  answers: ReadonlyMap<string, number>;
  queueTimes: Buckets;
  renderTimes: Buckets;
  totalTimes: Buckets;
  handedOut: number;
  handedIn: number;
  /** Other pods that it shares work with; undefined where it looks at none. */
  peersKnown?: number | undefined;
}

const DETAIL_PAGE = '/corelane/metrics?detail=1';
const RENDERS = 'corelane_worker_render_duration_seconds';
/** Of a pod of 64 workers: more lines than this are not Corelane's. */
const REASONS_MAX = 100;
/** What clocks may differ by. */
const CLOCKS_MS = 3_600_000;

/**
 * Asks one pod: two requests.
 * @param get body of a page of port 8999
 * @param names of the workers that it has
 * @throws what `get` throws
 */
export async function readFigures(
  get: (path: string) => Promise<string>,
  names: string[],
  nowMs: number,
): Promise<PodFigures> {
  const [{ sample }, page] = await Promise.all([
    sampleProxies(get, names),
    get(DETAIL_PAGE).then((text) => new Exposition(text)),
  ]);
  const requests = page.all('corelane_requests_total').slice(0, REASONS_MAX);
  const handed = (direction: string) => page.sum('corelane_requests_handed_over_total', { direction });
  return {
    atMs: nowMs,
    workers: sample.workers.map((worker) => workerFigures(worker, page, nowMs)),
    queue: sample.queue,
    queueFullTotal: sample.queueFullTotal,
    queueTimeoutTotal: sample.queueTimeoutTotal,
    answers: new Map(requests.map(({ labels, value }) => [`${labels.code} ${labels.reason ?? ''}`, value])),
    queueTimes: bucketsOf(page, 'corelane_request_queue_duration_seconds'),
    renderTimes: bucketsOf(page, 'corelane_request_render_duration_seconds'),
    totalTimes: bucketsOf(page, 'corelane_request_duration_seconds'),
    handedOut: handed('out'),
    handedIn: handed('in'),
    peersKnown: page.all('corelane_peers_known')[0]?.value,
  };
}

function workerFigures(sample: WorkerSample, page: Exposition, nowMs: number): WorkerFigures {
  const worker = sample.name.slice(WORKER_CONTAINER.length + 1);
  const value = (name: string, labels = {}) =>
    page.all(name, { worker, ...labels }).length > 0 ? page.sum(name, { worker, ...labels }) : undefined;
  const isWatched = value('corelane_worker_up') !== undefined;
  const [stall] = page.all('corelane_worker_last_stall_timestamp_seconds', { worker });
  const isLooping = value('corelane_worker_crash_looping') === 1;
  return {
    ...sample,
    ...(sample.up && !isWatched && { runtimeAbsent: true as const }),
    ...(isLooping && {
      crashLoop: {
        exitCode: value('corelane_worker_last_exit_code') ?? 0,
        backoffSeconds: value('corelane_worker_backoff_seconds') ?? 0,
      },
    }),
    silentS: value('corelane_worker_event_loop_silence_seconds') ?? value('corelane_worker_heartbeat_age_seconds'),
    requests: value('corelane_worker_requests_total'),
    restarts: value('corelane_worker_restarts_total'),
    isBackingOff: value('corelane_worker_backoff_active') === 1,
    cpuS: value('corelane_worker_cpu_seconds_total'),
    activeS: value('corelane_worker_event_loop_active_seconds_total'),
    idleS: value('corelane_worker_event_loop_idle_seconds_total'),
    gcS: value('corelane_worker_gc_seconds_total'),
    renderedS: value(`${RENDERS}_sum`),
    refusedOwn: value('corelane_worker_own_site_refused_total'),
    childWaits: value('corelane_worker_child_waits_total'),
    memoryBytes: value('corelane_worker_resident_memory_bytes'),
    oldSpaceBytes: value('corelane_worker_heap_space_used_bytes', { space: 'old' }),
    lastStall:
      stall && isTime(1000 * stall.value, nowMs) ? { atMs: 1000 * stall.value, in: stall.labels.in ?? '' } : undefined,
    renders: bucketsOf(page, RENDERS, { worker }),
  };
}

/** A program may write any number there, and there are some that are no time. Clocks of nodes are not all the same. */
function isTime(atMs: number, nowMs: number): boolean {
  return atMs > 0 && atMs < nowMs + CLOCKS_MS;
}
