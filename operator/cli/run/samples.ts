/** Looks at the pods about once a second, and keeps what the table shows. */
import type { RunFleet } from '../../local/run-fleet.ts';
import type { RunPod } from '../../local/run-pod.ts';
import { workerName } from '../../src/api/names.ts';
import { Exposition } from '../../src/pods/exposition.ts';
import { type PodSample, samplePod, type WorkerSample } from '../../src/pods/sample.ts';
import { type Buckets, bucketsOf, quantileMs } from './quantile.ts';
import type { WorkerRow } from './table.ts';

const DURATION = 'corelane_worker_render_duration_seconds';
/** Looks that the quantiles go back: about as many seconds. */
const HISTORY = 10;
/** An event loop that is silent for longer is shown so; a beat comes four times a second. */
const SILENT_S = 3;

interface Seen {
  sample?: PodSample;
  history: Map<string, Buckets[]>;
}

export class Samples {
  rows: WorkerRow[] = [];
  /** Requests that wait in all pods. */
  queue = 0;
  /** 503 since the pods were started, for want of a place in the queue. */
  refused = 0;
  readonly #seen = new WeakMap<RunPod, Seen>();
  readonly #fleet: RunFleet;

  constructor(fleet: RunFleet) {
    this.#fleet = fleet;
  }

  async look(): Promise<void> {
    const pods = await Promise.all(this.#fleet.pods.map((pod) => this.#lookAt(pod)));
    this.rows = pods.flatMap(({ rows }) => rows);
    const samples = pods.flatMap(({ sample }) => sample ?? []);
    this.queue = samples.reduce((sum, { queue }) => sum + queue, 0);
    this.refused = samples.reduce((sum, one) => sum + one.queueFullTotal + one.queueTimeoutTotal, 0);
  }

  async #lookAt(pod: RunPod): Promise<{ rows: WorkerRow[]; sample?: PodSample }> {
    const names = Array.from({ length: pod.spec.workersPerPod }, (_unused, index) => workerName(index));
    const seen: Seen = this.#seen.get(pod) ?? { history: new Map() };
    this.#seen.set(pod, seen);
    try {
      const { sample } = await samplePod((path) => pod.page(path), names, { before: seen.sample });
      const page = new Exposition(pod.spec.runtime.instrument ? await pod.page('/workers/metrics') : '');
      seen.sample = sample;
      const rows = sample.workers.map((worker) => ({ pod: pod.name, ...rowOf(worker, page, seen.history) }));
      return { rows, sample };
    } catch {
      // The proxies start, or are away.
      return { rows: names.map((worker) => ({ pod: pod.name, worker, state: 'starting', ...NOTHING })) };
    }
  }
}

const NOTHING = {
  requests: undefined,
  busy: 0,
  restarts: undefined,
  memoryBytes: undefined,
  p50Ms: undefined,
  p99Ms: undefined,
};

function rowOf(sample: WorkerSample, page: Exposition, history: Seen['history']): Omit<WorkerRow, 'pod'> {
  const worker = sample.name.slice(sample.name.lastIndexOf('-') + 1);
  const value = (name: string) => (page.all(name, { worker }).length > 0 ? page.sum(name, { worker }) : undefined);
  const now = bucketsOf(page, DURATION, worker);
  const earlier = history.get(sample.name) ?? [];
  history.set(sample.name, [...earlier, now].slice(-HISTORY));
  return {
    worker: sample.name,
    state: stateOf(sample, value),
    requests: value('corelane_worker_requests_total'),
    busy: sample.busy,
    restarts: value('corelane_worker_restarts_total'),
    memoryBytes: value('corelane_worker_resident_memory_bytes'),
    p50Ms: quantileMs(0.5, now, earlier[0]),
    p99Ms: quantileMs(0.99, now, earlier[0]),
  };
}

function stateOf(sample: WorkerSample, value: (name: string) => number | undefined): string {
  if (sample.crashLoop) return `crashes, exit ${sample.crashLoop.exitCode}`;
  const silent = value('corelane_worker_event_loop_silence_seconds') ?? value('corelane_worker_heartbeat_age_seconds');
  if (silent !== undefined && silent > SILENT_S) return `silent for ${silent.toFixed(0)} s`;
  const hasBegun =
    value('corelane_worker_requests_total') !== undefined || value('corelane_worker_restarts_total') !== 0;
  if (!hasBegun) return 'starting';
  if (sample.blocked) return 'given up renders';
  if (sample.up) return sample.runtimeAbsent ? 'up, no runtime' : 'up';
  return value('corelane_worker_backoff_active') === 1 ? 'waits to restart' : 'down';
}
