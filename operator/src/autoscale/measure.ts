/**
 * One look at all pods of a fleet, made into a sample of a few numbers: only those are kept for the windows.
 *
 * What is not known counts against the action: a worker that should be there and is not measured counts as 0 % when it
 * is about adding pods (it may be about to take its share), and as 100 % when it is about removing some.
 */
import type { Policy } from './policy.ts';

export interface WorkerReading {
  /** Since its container started. */
  ageMs: number;
  /** Used CPU over requested CPU; undefined where the metrics say nothing. */
  cpu?: number | undefined;
  /** Requests in the worker over its places; undefined where the pod did not answer. */
  occupancy?: number | undefined;
  /** Those places: with `concurrency: Auto` each worker has its own number of them, which changes. */
  places?: number | undefined;
}

export interface PodReading {
  name: string;
  /**
   * ready: takes requests; starting: will soon; stuck: no node has room for it, so it neither helps nor costs.
   */
  state: 'ready' | 'starting' | 'stuck';
  /** As many as the pod should have. */
  workers: WorkerReading[];
  /** When the metrics of this pod were taken, by the clock of whoever took them. */
  takenMs?: number | undefined;
  /** Requests refused since the pod's proxy started (queue full, or waited too long). */
  refusedTotal?: number | undefined;
}

/** A fleet at one moment. */
export interface Sample {
  atMs: number;
  /** Utilisation for adding pods and for removing some; undefined where nothing at all was measured. */
  up?: number | undefined;
  down?: number | undefined;
  /** Share of all places that are known which are taken, whatever the signal is. */
  taken?: number | undefined;
  /** Requests refused since the sample before. */
  refused: number;
  /** Ready pods, and those whose signal was measured. */
  ready: number;
  measured: number;
}

/** What must be remembered of each pod to read the next look. */
export interface PodMemory {
  /** Time of the metrics, and since when they have stood there. */
  takenMs?: number | undefined;
  sinceMs: number;
  refusedTotal?: number | undefined;
}
export type Memory = ReadonlyMap<string, PodMemory>;

/** Metrics that have not moved for this long say nothing: metrics-server makes new ones every 15 to 60 s. */
const STALE_MS = 120_000;

/** One look as a sample, and the memory for the next look. */
export function measure(
  pods: PodReading[],
  policy: Policy,
  now: number,
  memory: Memory,
): { sample: Sample; memory: Memory } {
  const next = new Map(pods.map((pod) => [pod.name, remember(pod, memory.get(pod.name), now)]));
  const ratios = pods.flatMap((pod) => workerRatios(pod, policy, now - (next.get(pod.name) as PodMemory).sinceMs));
  const isKnown = ratios.some(({ value }) => value !== undefined);
  const sample: Sample = {
    atMs: now,
    up: isKnown ? combine(policy, ratios, 0) : undefined,
    down: isKnown
      ? combine(
          policy,
          ratios.filter(({ state }) => state !== 'stuck'),
          1,
        )
      : undefined,
    taken: takenShare(pods),
    refused: pods.reduce((sum, pod) => sum + newlyRefused(pod, memory.get(pod.name)), 0),
    ready: pods.filter(({ state }) => state === 'ready').length,
    measured: new Set(ratios.filter(({ value }) => value !== undefined).map(({ pod }) => pod)).size,
  };
  return { sample, memory: next };
}

/**
 * The same work if `replicas` pods did it instead of the `pods` that do: those of a canary come on top, and an average
 * over all of them would be that of a fleet that has too many.
 */
export function asOfPods(sample: Sample, { statistic }: Policy, pods: number, replicas: number): Sample {
  if (statistic === 'Max' || pods <= replicas || replicas === 0) return sample;
  const more = (ratio: number | undefined) => (ratio === undefined ? undefined : (ratio * pods) / replicas);
  return { ...sample, up: more(sample.up), down: more(sample.down) };
}

/** Of ready pods. */
function takenShare(pods: PodReading[]): number | undefined {
  const known = pods
    .filter(({ state }) => state === 'ready')
    .flatMap(({ workers }) => workers)
    .filter(({ occupancy }) => occupancy !== undefined);
  const places = known.reduce((sum, worker) => sum + placesOf(worker), 0);
  const taken = known.reduce((sum, worker) => sum + placesOf(worker) * (worker.occupancy as number), 0);
  return places > 0 ? taken / places : undefined;
}

function placesOf({ places = 1 }: WorkerReading): number {
  return places;
}

interface Ratio {
  pod: string;
  state: PodReading['state'];
  value: number | undefined;
  /** How much it counts in an average; undefined where that is not known. */
  weight: number | undefined;
}

/**
 * Signal of each worker that counts. Young workers do not: neither their own CPU nor a guess says what they will use.
 */
function workerRatios({ name, state, workers }: PodReading, policy: Policy, standingMs: number): Ratio[] {
  const isBlind = state !== 'ready' || (policy.signal === 'cpu' && standingMs > STALE_MS);
  return workers
    .filter(({ ageMs }) => policy.signal === 'occupancy' || state !== 'ready' || ageMs >= policy.warmUpMs)
    .map((worker) => {
      const value = isBlind ? undefined : worker[policy.signal];
      return { pod: name, state, value, weight: value === undefined ? undefined : weightOf(worker, policy) };
    });
}

/**
 * Occupancy is of all places together: one request in a worker that has begun with one place is no more than one of
 * the eight that another has found.
 */
function weightOf(worker: WorkerReading, { signal }: Policy): number {
  return signal === 'occupancy' ? placesOf(worker) : 1;
}

/** Those that are not known count as much as the others do on average. */
function combine({ statistic }: Policy, ratios: Ratio[], missing: number): number {
  const values = ratios.map(({ value }) => value ?? missing);
  if (statistic === 'Max') return Math.max(...values);
  const weights = ratios.map(({ weight }) => weight).filter((weight) => weight !== undefined);
  const usual = weights.length > 0 ? weights.reduce((sum, weight) => sum + weight, 0) / weights.length : 1;
  const total = ratios.reduce((sum, { weight = usual }) => sum + weight, 0);
  return ratios.reduce((sum, { value = missing, weight = usual }) => sum + weight * value, 0) / total;
}

function remember({ takenMs, refusedTotal }: PodReading, before: PodMemory | undefined, now: number): PodMemory {
  const isSame = before !== undefined && before.takenMs === takenMs && before.sinceMs <= now;
  return { takenMs, sinceMs: isSame ? before.sinceMs : now, refusedTotal: refusedTotal ?? before?.refusedTotal };
}

/** Of a pod seen for the first time nobody knows when it refused; a counter that went back began anew. */
function newlyRefused({ refusedTotal }: PodReading, before: PodMemory | undefined): number {
  if (refusedTotal === undefined || before?.refusedTotal === undefined) return 0;
  return refusedTotal < before.refusedTotal ? refusedTotal : refusedTotal - before.refusedTotal;
}
