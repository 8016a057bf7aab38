/** What happened between two looks at a service. Computes only. */
import type { PodFigures, WorkerFigures } from './figures.ts';
import { addBuckets, type Buckets, bucketsSince, countOf, quantileMs } from './quantile.ts';
import type { Snapshot } from './snapshot.ts';

/** Refusals of what a client should not have sent. */
const OF_THE_CLIENT = new Set([
  ...['bad-request', 'head-too-large', 'body-too-large', 'client-limit'],
  ...['asset-not-found', 'precondition-failed', 'range-not-satisfiable'],
]);

export interface Window {
  /** Between the looks; undefined: since each pod's proxies were started. */
  seconds?: number | undefined;
  /** Requests that have ended. */
  requests: number;
  /** Of these, those that have failed: by reason (`X-Corelane-Error`, or `application`), and all. */
  failures: ReadonlyMap<string, number>;
  failed: number;
  /** Requests that programs of its workers sent, and that a full queue of Corelane refused. */
  refusedOwn: number;
  /** Renders that waited beside a child process while all slots of their worker were taken. */
  childWaits: number;
  p99Ms?: number | undefined;
  queueP99Ms?: number | undefined;
  renderP99Ms?: number | undefined;
  rendered: number;
  handedOut: number;
  /** Share of the time that event loops of workers that were busy now had work: 1 computes, 0 waits. */
  activeShare?: number | undefined;
  /** Likewise of the time in which workers had renders that have ended, where none was busy at either look. */
  renderedShare?: number | undefined;
  /** Workers whose event loops had work for much longer than their processes had CPU, the worst first. */
  starved: Starved[];
}

export interface Starved {
  pod: string;
  name: string;
  /** Seconds that its event loop had work, and that its process had CPU. */
  activeS: number;
  cpuS: number;
}

/** Fewer requests than this tell nothing about a p99. */
const REQUESTS_MIN = 20;
/** An event loop that had work for less time says nothing about CPU: one call that blocks is as long. */
const ACTIVE_MIN_S = 2;
/** CPU of the time that an event loop had work. One that computes has all of it, and its collector's threads more. */
const CPU_SHARE_MIN = 0.5;

/**
 * @param before an earlier look at the same service; without it, or where it has seen next to nothing, all counts since
 *   the pods began
 */
export function windowOf(now: Snapshot, before?: Snapshot): Window {
  if (before) {
    const seconds = (now.atMs - before.atMs) / 1000;
    const window = { ...between(now, before), seconds };
    if (window.rendered >= REQUESTS_MIN) return window;
    const sinceBegin = between(now);
    // What is happening counts: a fleet that answers nobody any more has no p99 of late.
    if (sinceBegin.rendered < REQUESTS_MIN || isBusy(now)) return window;
    const { activeShare, failures, failed, refusedOwn, childWaits, starved } = window;
    return { ...sinceBegin, activeShare, failures, failed, refusedOwn, childWaits, starved };
  }
  return between(now);
}

function isBusy({ pods }: Snapshot): boolean {
  return pods.some(({ figures }) => figures?.queue || figures?.workers.some(({ busy }) => busy > 0));
}

function between(now: Snapshot, before?: Snapshot): Window {
  const pairs = now.pods.flatMap(({ name, figures }) => {
    const earlier = before?.pods.find((pod) => pod.name === name)?.figures;
    // Of a pod that is new nothing is known of before: all that it has counted is new.
    return figures ? [{ figures, earlier }] : [];
  });
  const answers = new Map<string, number>();
  for (const { figures, earlier } of pairs)
    for (const [what, count] of figures.answers) {
      const last = earlier?.answers.get(what) ?? 0;
      answers.set(what, (answers.get(what) ?? 0) + (count >= last ? count - last : count));
    }
  const failures = new Map<string, number>();
  for (const [what, count] of answers) {
    const reason = reasonOf(what);
    if (reason && count > 0) failures.set(reason, (failures.get(reason) ?? 0) + count);
  }
  const times = (of: (figures: PodFigures) => Buckets) =>
    addBuckets(pairs.map(({ figures, earlier }) => bucketsSince(of(figures), earlier && of(earlier))));
  const renders = times(({ renderTimes }) => renderTimes);
  return {
    requests: sum([...answers.values()]),
    failures,
    failed: sum([...failures.values()]),
    refusedOwn: sum(pairs.map((pair) => ofWorkers(pair, 'refusedOwn'))),
    childWaits: sum(pairs.map((pair) => ofWorkers(pair, 'childWaits'))),
    p99Ms: quantileMs(
      0.99,
      times(({ totalTimes }) => totalTimes),
    ),
    queueP99Ms: quantileMs(
      0.99,
      times(({ queueTimes }) => queueTimes),
    ),
    renderP99Ms: quantileMs(0.99, renders),
    rendered: countOf(renders),
    handedOut: sum(pairs.map(({ figures, earlier }) => Math.max(0, figures.handedOut - (earlier?.handedOut ?? 0)))),
    activeShare: activeShare(pairs),
    renderedShare: renderedShare(pairs),
    starved: before ? starvedOf(now, before) : [],
  };
}

function ofWorkers(
  { figures, earlier }: { figures: PodFigures; earlier: PodFigures | undefined },
  counter: 'refusedOwn' | 'childWaits',
): number {
  const lastOf = (name: string) => earlier?.workers.find((worker) => worker.name === name);
  return sum(figures.workers.map((worker) => since(worker, lastOf(worker.name), counter)));
}

/** Of workers that are the same process at both looks. */
function starvedOf(now: Snapshot, before: Snapshot): Starved[] {
  const starved = now.pods.flatMap(({ name: pod, figures }) =>
    (figures?.workers ?? []).flatMap((worker) => {
      const last = before.pods
        .find(({ name }) => name === pod)
        ?.figures?.workers.find(({ name }) => name === worker.name);
      const [activeS, cpuS] = [grown(worker.activeS, last?.activeS), grown(worker.cpuS, last?.cpuS)];
      const isStarved = activeS >= ACTIVE_MIN_S && cpuS < CPU_SHARE_MIN * activeS;
      return isStarved ? [{ pod, name: worker.name, activeS, cpuS }] : [];
    }),
  );
  return starved.toSorted((one, other) => one.cpuS / one.activeS - other.cpuS / other.activeS);
}

/** NaN, which no comparison lets through, where it is not known or has begun anew. */
function grown(now: number | undefined, before: number | undefined): number {
  return now === undefined || before === undefined || now < before ? Number.NaN : now - before;
}

/** Why it has failed, if it has and its client was not the reason. With `fallback` a failure may have any status. */
function reasonOf(what: string): string | undefined {
  const [code = '', reason = ''] = what.split(' ');
  if (OF_THE_CLIENT.has(reason)) return undefined;
  return reason || (code === '5xx' ? 'application' : undefined);
}

/** Of workers that have a request at either look, or a beat between them says nothing. */
function activeShare(pairs: { figures: PodFigures; earlier: PodFigures | undefined }[]): number | undefined {
  let [active, all] = [0, 0];
  for (const { figures, earlier } of pairs)
    for (const worker of figures.workers) {
      const last = earlier?.workers.find(({ name }) => name === worker.name);
      if (worker.busy === 0 || (earlier && !last?.busy)) continue;
      const [activeS, idleS] = [since(worker, last, 'activeS'), since(worker, last, 'idleS')];
      active += activeS;
      all += activeS + idleS;
    }
  return all > 0 ? active / all : undefined;
}

/** Long renders have pauses between them: where those are at the looks, no worker is busy. */
function renderedShare(pairs: { figures: PodFigures; earlier: PodFigures | undefined }[]): number | undefined {
  let [active, all] = [0, 0];
  for (const { figures, earlier } of pairs)
    for (const worker of figures.workers) {
      const last = earlier?.workers.find(({ name }) => name === worker.name);
      const [activeS, idleS] = [since(worker, last, 'activeS'), since(worker, last, 'idleS')];
      const renderedS = Math.min(activeS + idleS, since(worker, last, 'renderedS'));
      // What it computes between renders is none of theirs.
      active += Math.min(activeS, renderedS);
      all += renderedS;
    }
  return all > 0 ? active / all : undefined;
}

/** A process that was started again begins at 0. */
function since(
  worker: WorkerFigures,
  last: WorkerFigures | undefined,
  what: 'activeS' | 'idleS' | 'renderedS' | 'refusedOwn' | 'childWaits',
): number {
  const [now = 0, before = 0] = [worker[what], last?.[what]];
  return now >= before ? now - before : now;
}

function sum(values: number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
