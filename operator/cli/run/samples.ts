/** Looks at the pods about once a second, and keeps what the table shows. */

import { type PodFigures, readFigures, type WorkerFigures } from '../../live/figures.ts';
import { type Buckets, bucketsSince, quantileMs } from '../../live/quantile.ts';
import { stateOf } from '../../live/worker-state.ts';
import type { RunFleet } from '../../local/run-fleet.ts';
import type { RunPod } from '../../local/run-pod.ts';
import { workerName } from '../../src/api/names.ts';
import { areIdle, type EventLoops, type Watch, watched } from '../../src/autoscale/idle-workers.ts';
import { isFull } from '../../src/pods/sample.ts';
import type { WorkerRow } from './table.ts';

/** Looks that the quantiles go back: about as many seconds. */
const HISTORY = 10;
/** Less than the operator's minute: a person watches, and a run is short. */
const IDLE_MS = 5_000;

/** What each worker had rendered at the last looks. */
type History = Map<string, Buckets[]>;

export class Samples {
  rows: WorkerRow[] = [];
  /** Requests that wait in all pods. */
  queue = 0;
  /** 503 since the pods were started, for want of a place in the queue. */
  refused = 0;
  /** Whether workers of a pod are taken and idle now, or were at any look. Never with `concurrency: Auto`. */
  areWorkersIdle = false;
  wereWorkersIdle = false;
  readonly #seen = new WeakMap<RunPod, History>();
  readonly #watches = new WeakMap<RunPod, { figures: PodFigures; watch: Watch | undefined }>();
  readonly #fleet: RunFleet;

  constructor(fleet: RunFleet) {
    this.#fleet = fleet;
  }

  async look(): Promise<void> {
    const pods = await Promise.all(this.#fleet.pods.map((pod) => this.#lookAt(pod)));
    this.rows = pods.flatMap(({ rows }) => rows);
    const all = pods.flatMap(({ figures }) => figures ?? []);
    this.queue = all.reduce((sum, { queue }) => sum + queue, 0);
    this.refused = all.reduce((sum, one) => sum + one.queueFullTotal + one.queueTimeoutTotal, 0);
    this.areWorkersIdle = pods.some(({ watch }) => areIdle(watch, IDLE_MS));
    this.wereWorkersIdle ||= this.areWorkersIdle;
  }

  /** What idle-workers.ts remembers of a pod; undefined with Auto, where the workers find the number. */
  #watch(pod: RunPod, figures: PodFigures): Watch | undefined {
    if (pod.spec.concurrency === 'Auto') return undefined;
    const before = this.#watches.get(pod);
    const look = { atMs: figures.atMs, loops: eventLoops(figures) };
    const watch = isFull(figures, before?.figures) ? watched(before?.watch, look) : undefined;
    this.#watches.set(pod, { figures, watch });
    return watch;
  }

  async #lookAt(pod: RunPod): Promise<{ rows: WorkerRow[]; figures?: PodFigures; watch?: Watch | undefined }> {
    const names = Array.from({ length: pod.spec.workersPerPod }, (_unused, index) => workerName(index));
    const history: History = this.#seen.get(pod) ?? new Map();
    this.#seen.set(pod, history);
    try {
      const figures = await readFigures((path) => pod.page(path), names, Date.now());
      const rows = figures.workers.map((worker) => ({ pod: pod.name, ...rowOf(worker, history) }));
      return { rows, figures, watch: this.#watch(pod, figures) };
    } catch {
      // The proxies start, or are away.
      return { rows: names.map((worker) => ({ pod: pod.name, worker, state: 'starting', ...NOTHING })) };
    }
  }
}

/** Seconds of all workers; one that does not say them counts for nothing. */
function eventLoops({ workers }: PodFigures): EventLoops {
  const sum = (values: (number | undefined)[]) => values.reduce<number>((total, value = 0) => total + value, 0);
  return { activeS: sum(workers.map(({ activeS }) => activeS)), idleS: sum(workers.map(({ idleS }) => idleS)) };
}

const NOTHING = {
  requests: undefined,
  busy: 0,
  restarts: undefined,
  memoryBytes: undefined,
  p50Ms: undefined,
  p99Ms: undefined,
};

function rowOf(worker: WorkerFigures, history: History): Omit<WorkerRow, 'pod'> {
  const { name, requests, busy, restarts, memoryBytes, renders } = worker;
  const earlier = history.get(name) ?? [];
  history.set(name, [...earlier, renders].slice(-HISTORY));
  const lately = bucketsSince(renders, earlier[0]);
  return {
    ...{ worker: name, state: stateOf(worker), requests, busy, restarts, memoryBytes },
    p50Ms: quantileMs(0.5, lately),
    p99Ms: quantileMs(0.99, lately),
  };
}
