/** One policy through one day. */
import { Fleet, type FleetModel } from './fleet.ts';
import type { Objective } from './queueing.ts';
import type { PodView, Scaler } from './scalers/scaler.ts';
import { durationS, peakBetween, rateAt, type Trace } from './trace.ts';
import type { Pod } from './workers.ts';

// Looked up once, see random.ts.
const { ceil, log, max, min } = Math;

/** How finely the simulator looks: Knative's tick. */
const STEP_S = 2;
/** metrics-server's resolution, as on the test cluster. */
const METRICS_S = 15;
/** Latencies are counted in buckets 2 % wide, from 1 ms on. */
const BUCKET_GROWTH = 1.02;
const LOG_GROWTH = Math.log(BUCKET_GROWTH);
const BUCKETS = 800;
const FLAP_S = 600;
/** Traffic that differs by more has changed. */
const FLAP_TRAFFIC_CHANGE = 0.1;

export interface Slot {
  atS: number;
  rps: number;
  replicas: number;
  p99Ms: number;
}

export interface Result {
  name: string;
  coreHours: number;
  requests: number;
  refused: number;
  p99Ms: number;
  /** Share of requests over the objective's limit, refused ones included. */
  missed: number;
  actions: number;
  /** A removal, and an addition within ten minutes, although traffic was the same. */
  flaps: number;
  mostPods: number;
  /**
   * Seconds from the day's steepest rise of traffic until the pods that it takes were ready; undefined if they never
   * were.
   */
  reachedS?: number | undefined;
  /** One for every minute of the trace. */
  slots: Slot[];
  changes: Change[];
}

export interface Change {
  atS: number;
  from: number;
  to: number;
}

export interface RunOptions {
  trace: Trace;
  model: FleetModel;
  objective: Objective;
  seed: number;
  /** Pods that the day begins with, warm. */
  begin: number;
  /** When traffic jumps, and how many pods it then takes: the time until they are ready is measured. */
  rise?: { atS: number; pods: number } | undefined;
}

class Latencies {
  readonly #counts = new Uint32Array(BUCKETS);
  #total = 0;

  add(latencyS: number): void {
    const bucket = ceil(log(max(latencyS, 0.001) / 0.001) / LOG_GROWTH);
    const index = min(bucket, BUCKETS - 1);
    this.#counts[index] = (this.#counts[index] as number) + 1;
    this.#total += 1;
  }

  get total(): number {
    return this.#total;
  }

  /** Upper end of the bucket, in ms; 0 without requests. */
  quantileMs(quantile: number): number {
    let left = Math.ceil(quantile * this.#total);
    if (left === 0) return 0;
    for (const [index, count] of this.#counts.entries()) {
      left -= count;
      if (left <= 0) return BUCKET_GROWTH ** index;
    }
    return Number.POSITIVE_INFINITY;
  }
}

/** Metrics of the pods as metrics-server would have them: the mean of the last window, only of pods that were there. */
class CpuMetrics {
  readonly #before = new Map<Pod, number>();
  readonly #views = new Map<Pod, { cpu: number; takenS: number }>();
  readonly #model: FleetModel;

  constructor(model: FleetModel) {
    this.#model = model;
  }

  take(pods: Pod[], nowS: number): void {
    const { workersPerPod, warmCpu, warmS } = this.#model;
    for (const pod of pods) {
      const before = this.#before.get(pod);
      this.#before.set(pod, pod.cpuS);
      if (before === undefined) continue;
      const young = warmCpu * Math.exp(-Math.max(0, nowS - pod.readyS) / warmS);
      const cpu = Math.min(1, (pod.cpuS - before) / METRICS_S / workersPerPod + young);
      this.#views.set(pod, { cpu, takenS: nowS });
    }
  }

  view(pod: Pod, nowS: number): PodView {
    const metrics = this.#views.get(pod);
    return {
      name: pod.name,
      readyForS: nowS - pod.readyS,
      ageS: nowS - pod.createdS,
      cpu: metrics?.cpu,
      takenS: metrics?.takenS,
    };
  }
}

/** Simulates the whole trace under one scaler. */
export function run(scaler: Scaler, { trace, model, objective, seed, begin, rise }: RunOptions): Result {
  const endS = durationS(trace);
  const all = new Latencies();
  const slots: Slot[] = [];
  const changes: Change[] = [];
  let inSlot = new Latencies();
  let missed = 0;
  const fleet = new Fleet(model, seed, (_arrivedS, latencyS, isRefused) => {
    if (isRefused || latencyS > objective.limitS) missed += 1;
    if (isRefused) return;
    all.add(latencyS);
    inSlot.add(latencyS);
  });
  const metrics = new CpuMetrics(model);
  let [concurrencyBefore, takenBefore] = [0, 0];
  let reachedS: number | undefined;
  fleet.scaleTo(begin, true);
  for (let nowS = STEP_S; nowS <= endS; nowS += STEP_S) {
    const rps = rateAt(trace, nowS - STEP_S);
    fleet.run(nowS, rps);
    if (nowS % METRICS_S < STEP_S) metrics.take(fleet.pods, nowS);
    const concurrency = (fleet.concurrencyS - concurrencyBefore) / STEP_S;
    const taken = (fleet.takenS - takenBefore) / STEP_S;
    [concurrencyBefore, takenBefore] = [fleet.concurrencyS, fleet.takenS];
    if (rise && reachedS === undefined && nowS >= rise.atS && readyPods(fleet, nowS) >= rise.pods) {
      reachedS = nowS - rise.atS;
    }
    if (isDue(nowS, scaler)) {
      const pods = fleet.pods.filter(({ isLeaving }) => !isLeaving).map((pod) => metrics.view(pod, nowS));
      const from = fleet.replicas;
      const { places, refused: refusedTotal } = fleet;
      const to = scaler.step({ nowS, replicas: from, pods, concurrency, taken, places, refusedTotal });
      if (to !== from) changes.push({ atS: nowS, from, to });
      fleet.scaleTo(to);
    }
    if (nowS % trace.stepS < STEP_S) {
      slots.push({ atS: nowS, rps, replicas: fleet.replicas, p99Ms: inSlot.quantileMs(objective.quantile) });
      inSlot = new Latencies();
    }
  }
  const requests = all.total + fleet.refused;
  return {
    name: scaler.name,
    coreHours: fleet.coreSecondsUntil(endS) / 3600,
    requests,
    refused: fleet.refused,
    p99Ms: all.quantileMs(objective.quantile),
    missed: missed / Math.max(1, requests),
    actions: changes.length,
    flaps: countFlaps(changes, trace),
    mostPods: Math.max(...slots.map(({ replicas }) => replicas)),
    reachedS,
    slots,
    changes,
  };
}

function readyPods({ pods }: Fleet, nowS: number): number {
  return pods.filter(({ isLeaving, readyS }) => !isLeaving && readyS <= nowS).length;
}

function isDue(nowS: number, { periodS, offsetS }: Scaler): boolean {
  const since = nowS - offsetS;
  return since >= 0 && since % periodS < STEP_S;
}

/** Traffic of the five minutes before a decision, which is what it stands on. */
function recentTraffic(trace: Trace, atS: number): { low: number; high: number } {
  const high = peakBetween(trace, atS - 300, atS);
  let low = high;
  for (let time = Math.max(0, atS - 300); time <= atS; time += trace.stepS) low = Math.min(low, rateAt(trace, time));
  return { low, high };
}

export function countFlaps(changes: Change[], trace: Trace): number {
  return changes.filter((up, index) => {
    if (up.to <= up.from) return false;
    const down = changes.slice(0, index).findLast(({ from, to }) => to < from);
    if (down === undefined || up.atS - down.atS > FLAP_S) return false;
    const now = rateAt(trace, up.atS);
    const then = recentTraffic(trace, down.atS);
    const isSame = now <= then.high * (1 + FLAP_TRAFFIC_CHANGE) && now >= then.low * (1 - FLAP_TRAFFIC_CHANGE);
    return isSame;
  }).length;
}
