/** What a page of `corelane dashboard` gets for each look: plain values, which JSON can carry. Computes only. */
import { explain } from './explain.ts';
import type { WorkerFigures } from './figures.ts';
import type { Lane } from './lanes.ts';
import type { PodNow, PodState, Snapshot } from './snapshot.ts';
import { clip } from './text.ts';
import type { Entry } from './timeline.ts';
import type { Window } from './window.ts';

/** A lane as a page gets it: the histogram of its renders stays here. */
export type PageLane = Omit<Lane, 'worker'> & { worker: Omit<WorkerFigures, 'renders'> };

export interface PagePod {
  name: string;
  revision: string;
  state: PodState;
  /** What keeps it from serving, or why it does not tell. */
  trouble: string;
  queue: number;
  /** Of its workers by mark: `!▇··`. */
  workers: string;
  /** Requests a second that it gives to other pods, and that it takes from them. */
  outPerS: number;
  inPerS: number;
  peersKnown?: number | undefined;
}

/** One moment of the curves; what is not known is null. */
export interface Point {
  atMs: number;
  p99Ms: number | null;
  queueP99Ms: number | null;
  renderP99Ms: number | null;
  perSecond: number | null;
  failed: number;
  queue: number;
  busy: number;
  workers: number;
  pods: number;
}

export interface PageFrame {
  name: string;
  namespace?: string | undefined;
  atMs: number;
  /** What `corelane explain` says. */
  lines: string[];
  pods: PagePod[];
  podsNotAsked: number;
  revisions: { revision: string; pods: number; ready: number }[];
  lanes: PageLane[];
  point: Point;
  /** New ones since the look before. */
  entries: Entry[];
  /** What cannot be shown, and why. */
  notes: string[];
}

/**
 * Characters of a text that a program or a client has chosen (a path, an id, a complaint). The page may list thousands
 * of workers, each with such texts.
 */
const WHAT_LENGTH_MAX = 300;
/** Requests of a worker that are named; the page shows the oldest, and how many others there are. */
const REQUESTS_MAX = 4;

export interface Looked {
  snapshot: Snapshot;
  window: Window;
  lanes: Lane[];
}

/** @param before the look before this one */
export function pageFrame(
  { snapshot, window, lanes }: Looked,
  before: Snapshot | undefined,
  { entries, notes }: Pick<PageFrame, 'entries' | 'notes'>,
): PageFrame {
  const { name, namespace, atMs, podsNotAsked } = snapshot;
  const marks = marksOfPods(lanes);
  const known = new Map((before?.pods ?? []).map((pod) => [pod.name, pod]));
  return {
    ...{ name, namespace, atMs, podsNotAsked, entries, notes },
    lines: explain(snapshot, window),
    pods: snapshot.pods.map((pod) => pagePod(pod, known.get(pod.name), marks.get(pod.name) ?? '')),
    revisions: revisionsOf(snapshot.pods),
    lanes: lanes.map(pageLane),
    point: pointOf(snapshot, window, lanes),
  };
}

function marksOfPods(lanes: Lane[]): Map<string, string> {
  const marks = new Map<string, string>();
  for (const { pod, marks: own } of lanes) marks.set(pod, `${marks.get(pod) ?? ''}${own.at(-1) ?? ''}`);
  return marks;
}

function pageLane({ worker: { renders: _renders, ...worker }, requests, ...lane }: Lane): PageLane {
  const shown = requests.map(({ id, what, ms }, index) =>
    index < REQUESTS_MAX
      ? { id: clip(id, WHAT_LENGTH_MAX), what: clip(what, WHAT_LENGTH_MAX), ms }
      : { id: '', what: '', ms },
  );
  return { ...lane, worker, requests: shown };
}

function pagePod(
  { name, revision, state, problem, silence, figures }: PodNow,
  before: PodNow | undefined,
  workers: string,
): PagePod {
  const seconds = ((figures?.atMs ?? 0) - (before?.figures?.atMs ?? 0)) / 1000;
  const rate = (which: 'handedOut' | 'handedIn') => {
    const [now = 0, last] = [figures?.[which], before?.figures?.[which]];
    return last === undefined || seconds <= 0 || now < last ? 0 : (now - last) / seconds;
  };
  return {
    ...{ name, revision, state, workers, trouble: clip(problem ?? silence ?? '', WHAT_LENGTH_MAX) },
    ...{ queue: figures?.queue ?? 0, outPerS: rate('handedOut'), inPerS: rate('handedIn') },
    peersKnown: figures?.peersKnown,
  };
}

function revisionsOf(pods: PodNow[]): PageFrame['revisions'] {
  const revisions = new Map<string, { revision: string; pods: number; ready: number }>();
  for (const { revision, state } of pods) {
    const found = revisions.get(revision) ?? { revision, pods: 0, ready: 0 };
    revisions.set(revision, { ...found, pods: found.pods + 1, ready: found.ready + Number(state === 'ready') });
  }
  return [...revisions.values()];
}

function pointOf({ atMs, pods, podsNotAsked }: Snapshot, window: Window, lanes: Lane[]): Point {
  const { p99Ms = null, queueP99Ms = null, renderP99Ms = null, seconds, requests, failed } = window;
  // Without an earlier look the numbers are of the whole life of the pods: no point of a curve.
  const isOfNow = seconds !== undefined;
  return {
    atMs,
    ...(isOfNow ? { p99Ms, queueP99Ms, renderP99Ms } : { p99Ms: null, queueP99Ms: null, renderP99Ms: null }),
    perSecond: isOfNow && seconds > 0 ? requests / seconds : null,
    failed: isOfNow ? failed : 0,
    queue: pods.reduce((sum, { figures }) => sum + (figures?.queue ?? 0), 0),
    busy: lanes.filter(({ worker }) => worker.up && worker.busy > 0).length,
    workers: lanes.filter(({ worker }) => worker.up).length,
    pods: pods.length + podsNotAsked,
  };
}
