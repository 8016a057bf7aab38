/** A service that lives a made-up life, look by look, the same each time: for pictures, and for fleets of any size. */
import type { PodFigures, WorkerFigures } from '../../operator/live/figures.ts';
import type { PodNow, Snapshot } from '../../operator/live/snapshot.ts';
import type { RequestNow, Source } from '../../operator/live/source.ts';
import { cpuProfile, madeUp } from '../../operator/test/unit/dashboard/sources.ts';
import { figures, fleet, pod, times, worker } from '../../operator/test/unit/live/fleet.ts';

const BEGIN_MS = Date.parse('2026-11-25T12:00:00Z');
const STEP_MS = 2_000;
const STUCK = { pod: 3, worker: 1 };
/** When the load has come, pods have come, and a rollout has begun. */
const LOAD_AT = 30;
const SCALED_AT = 48;
const ROLLOUT_AT = 75;
const STALL = {
  time: '2026-11-25T12:02:10Z',
  seconds: 10,
  in: 'priceOf /app/src/price.ts:41',
  requests: ['4f1c2a'],
  stack: [
    'priceOf /app/src/price.ts:41',
    'Cart /app/src/cart.tsx:18',
    'renderToString /app/node_modules/react-dom/server.js:7120',
  ],
};
const PATHS = ['/', '/p/shoes?page=3', '/p/4711', '/cart', '/search?q=red+shoes', '/c/winter', '/help/returns'];

/** Numbers from 0 to 1 that look like chance and are the same each time. */
function chance(...seeds: number[]): number {
  const sum = seeds.reduce((all, seed, index) => all + (seed + 1) * (12.9898 + 65.233 * index), 0);
  const value = Math.sin(sum) * 43_758.5453;
  return value - Math.floor(value);
}

export interface SceneOptions {
  pods: number;
  workers: number;
  /** What a worker renders. */
  path?: (pod: number, worker: number) => string;
  /** The look that it begins with; at 60 all of its pods are there. */
  from?: number;
  /** After so many time stands still. */
  looks?: number;
  /** The functions of its profile. */
  functionName?: string;
}

export function scene({
  pods,
  workers,
  path = pathOf,
  from = 0,
  looks = Number.POSITIVE_INFINITY,
  functionName = 'priceOf',
}: SceneOptions): Source {
  let look = from - 1;
  const isBusy = (index: number, number: number) => {
    if (index === STUCK.pod && number === STUCK.worker && look > LOAD_AT) return true;
    return chance(index, number, look) < (look > LOAD_AT && look < SCALED_AT ? 0.97 : 0.55);
  };
  return madeUp({
    look() {
      if (look + 1 >= looks) return new Promise<never>(() => {});
      look += 1;
      return snapshotOf(look, { pods, workers, isBusy });
    },
    requests: (name, number) => requestsOf(Number(name.split('-').at(-1)), number, look, path),
    stalls: [STALL],
    profile: cpuProfile(functionName),
  });
}

function snapshotOf(
  look: number,
  { pods, workers, isBusy }: { pods: number; workers: number; isBusy: (pod: number, worker: number) => boolean },
): Snapshot {
  const atMs = BEGIN_MS + look * STEP_MS;
  const there = look < SCALED_AT ? Math.ceil(pods * 0.7) : pods;
  const time = new Date(BEGIN_MS + SCALED_AT * STEP_MS).toISOString();
  const lastDecision = {
    ...{ time, from: Math.ceil(pods * 0.7), to: pods, reason: 'AboveThreshold' },
    message: 'CPU of 97 % over 30 s, threshold 70 %',
  };
  return fleet({
    atMs,
    status: { observedGeneration: 3, ...(look >= SCALED_AT && { scaling: { utilizationPercent: 55, lastDecision } }) },
    pods: Array.from({ length: there }, (_unused, index) => podOf(index, look, { there, workers, isBusy })),
  });
}

function podOf(
  index: number,
  look: number,
  { there, workers, isBusy }: { there: number; workers: number; isBusy: (pod: number, worker: number) => boolean },
): PodNow {
  const isNew = look >= ROLLOUT_AT && index >= there - Math.ceil(there / 6);
  const own = pod(index, isNew ? { name: `storefront-5b4d-${index}`, revision: '5b4d' } : {});
  if (isNew && index === there - 1)
    return { ...own, state: 'not ready', problem: 'its workers start', figures: undefined };
  const all = Array.from({ length: workers }, (_unused, number) =>
    workerOf(index, number, look, isBusy(index, number)),
  );
  return { ...own, figures: figuresOf(index, look, all) };
}

function figuresOf(index: number, look: number, workers: WorkerFigures[]): PodFigures {
  const isLoaded = look > LOAD_AT && look < SCALED_AT + 5;
  const done = 20 * look;
  const slow = Math.max(0, Math.min(look, SCALED_AT + 5) - LOAD_AT) * 8;
  return figures({
    atMs: BEGIN_MS + look * STEP_MS,
    workers,
    queue: isLoaded ? Math.round(3 * chance(index, look)) : 0,
    answers: new Map([['2xx ', done]]),
    queueTimes: times([1, done - slow], [240, slow]),
    renderTimes: times([90, Math.round(done * 0.95)], [200, done - Math.round(done * 0.95)]),
    totalTimes: times([95, done - slow], [400, slow]),
    // Some give, others take, or do both.
    handedOut: index % 3 === 1 ? 0 : 4 * look,
    handedIn: index % 3 === 0 ? 0 : 4 * look,
  });
}

function workerOf(index: number, number: number, look: number, isBusy: boolean): WorkerFigures {
  const isStuck = index === STUCK.pod && number === STUCK.worker && look > ROLLOUT_AT;
  const stalled = index === STUCK.pod && number === STUCK.worker && look > 65;
  return worker(number, {
    ...{
      busy: isBusy ? 1 : 0,
      requests: 10 * look + index,
      cpuS: look * STEP_MS * 0.001 * (0.3 + 0.6 * chance(index, number)),
    },
    ...{ silentS: isStuck ? ((look - ROLLOUT_AT) * STEP_MS) / 1000 + 4 : 0.1, restarts: stalled ? 1 : 0 },
    ...(stalled && { lastStall: { atMs: Date.parse(STALL.time), in: STALL.in } }),
    oldSpaceBytes: (40 + 30 * chance(index, number)) * 2 ** 20,
  });
}

function requestsOf(
  index: number,
  number: number,
  look: number,
  path: (pod: number, worker: number) => string,
): RequestNow[] {
  const isStuck = index === STUCK.pod && number === STUCK.worker && look > ROLLOUT_AT;
  const ms = isStuck ? (look - ROLLOUT_AT) * STEP_MS + 4_000 : Math.round(400 * chance(index, number, look));
  return [{ id: `${index}-${number}`, what: `GET ${isStuck ? '/cart' : path(index, number)}`, ms }];
}

function pathOf(index: number, number: number): string {
  return PATHS[(index * 3 + number) % PATHS.length] ?? '/';
}
