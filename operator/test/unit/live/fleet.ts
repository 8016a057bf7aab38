/** Fleets as they might be: six pods of two workers at peace, and what a test changes of them. */
import type { PodFigures, WorkerFigures } from '../../../live/figures.ts';
import type { Buckets } from '../../../live/quantile.ts';
import type { Bounds, PodNow, Snapshot } from '../../../live/snapshot.ts';
import type { ConditionDraft } from '../../../src/api/conditions.ts';
import { BUCKETS_S } from '../../../src/api/objectives.ts';

export const NOW_MS = Date.parse('2026-11-25T12:00:00Z');

/** A histogram of requests of these lengths, in milliseconds. */
export function times(...values: [ms: number, count: number][]): Buckets {
  const within = (boundS: number) => values.reduce((sum, [ms, count]) => sum + (ms <= 1000 * boundS ? count : 0), 0);
  return new Map([...BUCKETS_S, Number.POSITIVE_INFINITY].map((bound) => [bound, within(bound)]));
}

export function worker(index: number, changes: Partial<WorkerFigures> = {}): WorkerFigures {
  return {
    ...{ name: `worker-${index}`, up: true, busy: 0, downs: 0, isBackingOff: false, silentS: 0.1 },
    ...{ requests: 1_000, restarts: 0, cpuS: 100, activeS: 100, idleS: 300, gcS: 2 },
    ...{ memoryBytes: 120 * 2 ** 20, oldSpaceBytes: 40 * 2 ** 20, renders: times() },
    ...changes,
  };
}

export function figures(changes: Partial<PodFigures> = {}): PodFigures {
  return {
    ...{ atMs: NOW_MS, workers: [worker(0), worker(1)], queue: 0, queueFullTotal: 0, queueTimeoutTotal: 0 },
    answers: new Map([['2xx ', 200]]),
    ...{ queueTimes: times([1, 200]), renderTimes: times([90, 195], [200, 5]), totalTimes: times([95, 195], [210, 5]) },
    ...{ handedOut: 0, handedIn: 0, peersKnown: 5 },
    ...changes,
  };
}

export function pod(index: number, changes: Partial<PodNow> = {}): PodNow {
  return { name: `storefront-7f9c-${index}`, revision: '7f9c', state: 'ready', figures: figures(), ...changes };
}

const BOUNDS: Bounds = { replicas: 6, queueLength: 100, concurrency: 1, peersMax: 64, latencyMs: {} };

export function condition({ type, status, reason, message }: ConditionDraft) {
  return { type, status, reason, message, lastTransitionTime: '2026-11-25T11:50:00Z', observedGeneration: 3 };
}

export function fleet(changes: Partial<Snapshot> = {}): Snapshot {
  return {
    ...{ name: 'storefront', namespace: 'shop', atMs: NOW_MS, bounds: BOUNDS, generation: 3 },
    status: { observedGeneration: 3 },
    pods: [0, 1, 2, 3, 4, 5].map((index) => pod(index)),
    podsNotAsked: 0,
    ...changes,
  };
}

/** All workers busy, computing most of the time, a long queue; `changes` of the figures of each pod. */
export function full(changes: Partial<PodFigures> = {}): PodFigures {
  return figures({
    workers: [worker(0, { busy: 1, idleS: 30 }), worker(1, { busy: 1, idleS: 30 })],
    queue: 6,
    queueTimes: times([1, 100], [240, 100]),
    totalTimes: times([95, 100], [400, 100]),
    ...changes,
  });
}

/** The same fleet five seconds before, when its pods had just begun. */
export function fiveSecondsBefore(now: Snapshot): Snapshot {
  const none = { queueTimes: times(), renderTimes: times(), totalTimes: times(), answers: new Map(), handedOut: 0 };
  const pods = now.pods.map((one) => ({
    ...one,
    ...(one.figures && {
      figures: {
        ...one.figures,
        ...none,
        workers: one.figures.workers.map((own) => ({
          ...own,
          activeS: 0,
          idleS: 0,
          cpuS: 0,
          renderedS: 0,
          refusedOwn: 0,
          childWaits: 0,
        })),
      },
    }),
  }));
  return { ...now, atMs: now.atMs - 5_000, pods };
}
