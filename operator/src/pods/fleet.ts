/** What the samples of its pods say about a RenderService as a whole. */

import {
  type Condition,
  type ConditionDraft,
  capacityAvailable,
  concurrencyTuned,
  workersHealthy,
} from '../api/conditions.ts';
import { concurrencyBounds } from '../api/spec/concurrency.ts';
import type { RenderServiceSpec } from '../api/spec.ts';
import type { KubeObject } from '../kube/types.ts';
import type { PodSample, WorkerSample } from './sample.ts';
import type { PodSampler } from './sampler.ts';

/** Metrics that change all the time and mean nothing on their own: not worth a write each. */
export interface FleetMetrics {
  busy: number;
  queueLength: number;
  /** Workers that are down in pods that say so. */
  down: number;
}

/** Requests that workers get at a time, where each finds the number by itself. */
export interface ConcurrencyFound {
  lowest: number;
  median: number;
  highest: number;
}

export interface Fleet {
  /** Undefined when no pod has told any. */
  metrics?: FleetMetrics;
  condition: ConditionDraft;
  /** With `concurrency: Auto`, when a pod has told any. */
  concurrency?: ConcurrencyFound;
  /** ConcurrencyTuned, with `concurrency: Auto`, and with a number that is too small. */
  tuned?: ConditionDraft;
  /** CapacityAvailable; undefined when no pod has told anything. */
  capacity?: ConditionDraft;
}

/** What a pod can take, and whether its workers are meant to have the runtime. */
export type Capacity = Pick<RenderServiceSpec, 'concurrency' | 'concurrencyRange' | 'queue'> & {
  runtime: Pick<RenderServiceSpec['runtime'], 'instrument'>;
};

/** What status says of `concurrency`, and the time. */
export interface Told {
  condition: Pick<Condition, 'status' | 'message' | 'lastTransitionTime'> | undefined;
  nowMs: number;
}

/** Names in a message; the others are counted. */
const NAMED_MAX = 3;
/** A number that is too small is so after the peak, too: told for a day, a peak each evening is one Event a day. */
const TOO_SMALL_MS = 86_400_000;

/**
 * @param pods of one RenderService, without those that are on their way out
 * @param spec of the RenderService, if it is a valid one
 * @param wasFull what status says so far
 * @param told of `concurrency`
 * @returns undefined as long as nothing is known, because this process has only just begun to ask
 */
export function observeFleet(
  pods: KubeObject[],
  sampler: PodSampler,
  spec?: Capacity,
  wasFull = false,
  told?: Told,
): Fleet | undefined {
  if (!sampler.hasRound) return undefined;
  const sampled = pods.flatMap((pod) => {
    const sample = sampler.of(pod);
    return sample ? [{ pod, sample }] : [];
  });
  if (sampled.length === 0) {
    const condition = workersHealthy.unknown(whyUnknown(pods, sampler));
    return {
      condition,
      ...(spec?.concurrency === 'Auto' ? { tuned: concurrencyTuned.unknown() } : tooSmall([], spec, told)),
    };
  }
  const workers = sampled.flatMap(({ pod, sample }) => sample.workers.map((worker) => ({ pod, ...worker })));
  const sum = (values: number[]) => values.reduce((total, value) => total + value, 0);
  const loops = workers.flatMap(({ pod, name, crashLoop }) =>
    crashLoop
      ? [
          `${name} of pod ${pod.metadata.name} restarts in a loop: exit code ${crashLoop.exitCode}, ` +
            `${Math.ceil(crashLoop.backoffSeconds)} s between two tries (kubectl logs ${pod.metadata.name} -c ${name})`,
        ]
      : [],
  );
  return {
    metrics: {
      busy: sum(workers.map(({ busy }) => busy)),
      queueLength: sum(sampled.map(({ sample }) => sample.queue)),
      down: workers.filter(({ up }) => !up).length,
    },
    condition: loops.length > 0 ? workersHealthy.crashLoop(named(loops)) : withoutLoops(workers, spec),
    ...(spec?.concurrency === 'Auto' ? found(workers, spec) : tooSmall(sampled, spec, told)),
    ...(spec && {
      capacity: sampled.some(({ sample }) => hasRoom(sample, spec, wasFull))
        ? capacityAvailable.yes()
        : capacityAvailable.no(),
    }),
  };
}

/** What workers that are up have found. One that is down counts for nothing: it gets no requests. */
function found(workers: WorkerSample[], spec: Capacity): Pick<Fleet, 'concurrency' | 'tuned'> {
  const limits = workers
    .flatMap(({ up, blocked, places }) => (up && !blocked && places !== undefined ? [places] : []))
    .sort((one, other) => one - other);
  const [lowest] = limits;
  const median = limits[Math.floor((limits.length - 1) / 2)];
  const highest = limits.at(-1);
  if (lowest === undefined || median === undefined || highest === undefined)
    return { tuned: concurrencyTuned.unknown() };
  const concurrency = { lowest, median, highest };
  const { max } = concurrencyBounds(spec);
  const atMaximum = limits.filter((limit) => limit >= max).length;
  const range = `${limits.length} workers get ${lowest === highest ? lowest : `${lowest} to ${highest} (median ${median})`} at a time`;
  if (highest === 1) return { concurrency, tuned: concurrencyTuned.single(range) };
  if (atMaximum > 0) return { concurrency, tuned: concurrencyTuned.atMaximum(range, atMaximum) };
  return { concurrency, tuned: concurrencyTuned.tuned(range) };
}

/** Whether a fixed number limits the service: workers of half of the pods are idle now, or it was told within a day. */
function tooSmall(
  sampled: { sample: PodSample }[],
  spec: Capacity | undefined,
  told: Told | undefined,
): Pick<Fleet, 'tuned'> {
  if (spec === undefined || spec.concurrency === 'Auto') return {};
  const tuned = concurrencyTuned.tooSmall(spec.concurrency);
  const idle = sampled.filter(({ sample }) => sample.areWorkersIdle).length;
  if (idle > 0 && 2 * idle >= sampled.length) return { tuned };
  const { condition, nowMs = 0 } = told ?? {};
  // Of another number it says nothing.
  const isTold = condition?.status === 'False' && condition.message === tuned.message;
  return isTold && nowMs - Date.parse(condition.lastTransitionTime) < TOO_SMALL_MS ? { tuned } : {};
}

/** Share of a queue's limit at which it counts as full, and below which it counts as empty enough again. */
const FULL = 0.9;
const ROOM = 0.5;

/** A free worker, or a worker and a place in the queue; with hysteresis, or a fleet at the limit would flap. */
function hasRoom({ workers, queue: waiting }: PodSample, spec: Capacity, wasFull: boolean): boolean {
  const { queue } = spec;
  const concurrency = concurrencyBounds(spec).min;
  const up = workers.filter((worker) => worker.up);
  return (
    up.some(({ busy, blocked, places }) => !blocked && busy < (places ?? concurrency)) ||
    (up.length > 0 && waiting < (wasFull ? ROOM : FULL) * queue.maxLength)
  );
}

function withoutLoops(workers: WorkerSample[], spec?: Capacity): ConditionDraft {
  const absent = workers.filter(({ runtimeAbsent }) => runtimeAbsent).length;
  if (absent === 0) return workersHealthy.yes();
  const lost = 'a stuck worker is not noticed, and one that ends restarts its container';
  if (spec?.runtime.instrument === false)
    return workersHealthy.runtimeOff(`the worker runtime is off, as runtime.instrument: false asks; ${lost}`);
  return workersHealthy.withoutRuntime(
    `the worker runtime is absent in ${absent} of ${workers.length} workers: ${lost}. Either the image has no Node.js ` +
      '(18.19 or newer), or NODE_OPTIONS does not reach its process (a compiled binary, a script that sets or unsets ' +
      'it), or --permission forbids child processes; let NODE_OPTIONS pass, add --allow-child-process, or say by ' +
      'runtime.instrument: false that it is meant',
  );
}

function whyUnknown(pods: KubeObject[], sampler: PodSampler): string {
  for (const pod of pods) {
    const error = sampler.errorOf(pod);
    if (error)
      return `the operator cannot read port 8999 of pod ${pod.metadata.name} (${error}); does a NetworkPolicy forbid it?`;
  }
  return 'no pod has told about its workers yet';
}

function named(loops: string[]): string {
  const rest = loops.length - NAMED_MAX;
  return rest > 0 ? `${loops.slice(0, NAMED_MAX).join('; ')}; and ${rest} more` : loops.join('; ');
}
