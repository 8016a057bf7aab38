/**
 * How many pods each revision is to have: rolling update, the way back, rest, scaling in between, a pause. Decided from
 * what there is now and never from a step before, so it does not matter who has done that, nor how far it came.
 */
import { bounds } from './bounds.ts';

/** A revision, as it is now. */
export interface Revision {
  id: string;
  /** The higher, the later it was asked for. */
  number: number;
  /** Pods that its Deployment asks for. */
  replicas: number;
  /** Of these, those that are available. */
  available: number;
  /** Whether it has had, as the one that was asked for, as many available pods as were wanted. */
  wasComplete: boolean;
  /** Since when it is out of service; undefined while its pods may get requests. */
  retiredMs?: number | undefined;
  /** Whether its pods can live on without getting requests. */
  canRest: boolean;
}

/** What is asked for. */
export interface Wanted {
  /** The revision. */
  id: string;
  replicas: number;
  maxSurge: number | string;
  maxUnavailable: number | string;
  isPaused: boolean;
  /** Pods of the revision before that are kept, and for how long. */
  retain: { forMs: number; replicas: number };
  /** Pods of the revision that is asked for that find no room: no node, or a quota that is used up. */
  withoutRoom?: number | undefined;
}

export type Phase =
  | 'Complete' // the revision has all of its pods, and no other one gets requests
  | 'Rolling'
  | 'Paused'; // it would be Rolling

export interface Next {
  /** The one that is asked for, then the others, newest first. */
  revisions: Revision[];
  phase: Phase;
  /** When a rest ends, if nothing else happens before. */
  againMs?: number;
}

/** The same revision with `replicas` changed may have fewer available pods than it is said to have. */
export const clamped = (one: Revision): Revision => ({ ...one, available: Math.min(one.available, one.replicas) });
const totalOf = (some: Revision[]) => some.reduce((sum, { replicas }) => sum + replicas, 0);

/**
 * What is to be next. The revision that is asked for need not be among `all` yet.
 * @param all revisions that there are, in any order
 */
export function nextReplicas(all: Revision[], wanted: Wanted, nowMs: number): Next {
  const known = all.map(clamped);
  const target = targetOf(known, wanted);
  const others = known.filter(({ id }) => id !== target.id).toSorted((one, other) => other.number - one.number);
  const serving = others.filter(({ retiredMs, replicas }) => retiredMs === undefined && replicas > 0);
  const isThere = target.available >= wanted.replicas;
  const isHeld = wanted.isPaused && serving.length > 0;
  const step = serving.length === 0 || (isThere && !isHeld) ? settled : isHeld ? held : rolled;
  const next = step({ target, serving, wanted });
  const isOver = step === settled;
  const after = others.map((one) => {
    const served = next.serving.find(({ id }) => id === one.id);
    if (!served) return one.retiredMs === undefined ? { ...one, retiredMs: nowMs } : one;
    return isOver ? { ...served, retiredMs: nowMs } : served;
  });
  const rested = resting(after, wanted, nowMs);
  const wasComplete = target.wasComplete || (isThere && wanted.replicas > 0);
  // One that has been all there and lacks a pod now is not being rolled out.
  const complete = isOver && (wasComplete || isThere);
  return {
    revisions: [clamped({ ...next.target, wasComplete, retiredMs: undefined }), ...rested.others],
    phase: complete ? 'Complete' : isHeld ? 'Paused' : 'Rolling',
    ...(rested.againMs !== undefined && { againMs: rested.againMs }),
  };
}

/** With the highest number: it may be an earlier one that is asked for again. */
export function targetOf(all: Revision[], { id }: Pick<Wanted, 'id'>): Revision {
  const found = all.find((one) => one.id === id);
  const highest = Math.max(0, ...all.filter((one) => one !== found).map(({ number }) => number));
  if (found) return found.number > highest ? found : { ...found, number: highest + 1 };
  return { id, number: highest + 1, replicas: 0, available: 0, wasComplete: false, canRest: true };
}

interface Sides {
  target: Revision;
  /** Others that get requests, newest first. */
  serving: Revision[];
}
type Step = (now: Sides & { wanted: Wanted }) => Sides;

/** All requests are for the revision that is asked for. */
const settled: Step = ({ target, serving, wanted }) => ({ target: { ...target, replicas: wanted.replicas }, serving });

/** One step of a rolling update: never more than wanted + surge, never fewer available than wanted - unavailable. */
const rolled: Step = ({ target, serving, wanted }) => {
  const { surge, unavailable } = bounds(wanted);
  const heir = heirOf(serving);
  // They stay when all is over, so they come on top.
  const kept = keptOf(heir, wanted);
  const missing = wanted.replicas - totalOf([target, ...serving]);
  const isUnsure = target.available < target.replicas;
  const grown = missing > 0 && isUnsure ? grow(serving, heir ?? serving[0], missing) : serving;
  // Its pods have served before: there is no need to look at a few of them first.
  const isWayBack = target.wasComplete;
  const room = isWayBack ? wanted.replicas : wanted.replicas + surge + kept - totalOf([target, ...grown]);
  const next = { ...target, replicas: Math.min(wanted.replicas, target.replicas + Math.max(0, room)) };
  const least = wanted.replicas - unavailable;
  const removable = totalOf([target, ...grown]) - least - (target.replicas - target.available);
  const sick = cut(grown, removable, ({ replicas, available }) => replicas - available);
  const keep = ({ id }: Revision) => (id === heir?.id ? kept : 0);
  // What is left of it is what there is above the least: all that are missing have been taken out of it.
  const done = cut(sick.after, sick.left, (one) => one.available - Math.min(keep(one), one.available));
  return { target: next, serving: done.after };
};

/** A pause holds each revision as it is, but for scaling. */
const held: Step = ({ target, serving, wanted }) => {
  const { surge } = bounds(wanted);
  const all = [target, ...serving];
  const total = totalOf(all);
  const healthiest = all.toSorted((one, other) => other.available - one.available)[0];
  if (total < wanted.replicas) return sidesOf(grow(all, healthiest, wanted.replicas - total));
  // Who finds no room goes on waiting for it, and takes none away.
  const kept = keptOf(heirOf(serving), { ...wanted, withoutRoom: 0 });
  const most = wanted.replicas === 0 ? 0 : wanted.replicas + surge + kept;
  // The newest go first: nobody knows yet what they are worth.
  const order = [...serving.toReversed(), target];
  const sick = cut(order, total - most, ({ replicas, available }) => replicas - available);
  const { after } = cut(sick.after, sick.left, ({ available }) => available, 'last first');
  return sidesOf([after.at(-1) as Revision, ...after.slice(0, -1).toReversed()]);
};

function sidesOf([target, ...serving]: Revision[]): Sides {
  return { target: target as Revision, serving };
}

/**
 * Which revision is kept after the next one: the newest that has ever been all there.
 * @param others newest first
 */
export function heirOf<T extends Revision>(others: T[]): T | undefined {
  return others.find(({ wasComplete }) => wasComplete);
}

/** Pods that get requests come before those that rest: where there is no room for both, the latter make some. */
function keptOf(heir: Revision | undefined, { retain, replicas, withoutRoom = 0 }: Wanted): number {
  if (!heir?.canRest || retain.forMs === 0) return 0;
  return Math.max(0, Math.min(retain.replicas, heir.replicas, replicas) - withoutRoom);
}

function grow(all: Revision[], which: Revision | undefined, count: number): Revision[] {
  return all.map((one) => (one.id === which?.id ? { ...one, replicas: one.replicas + count } : one));
}

/** Takes `count` pods away, of each revision at most as many as `spare` says; the oldest, and unproven, first. */
function cut(all: Revision[], count: number, spare: (one: Revision) => number, order?: 'last first') {
  let left = Math.max(0, count);
  const heir = heirOf(all);
  const first = order
    ? all.toReversed()
    : [...all.filter(({ id }) => id !== heir?.id).toReversed(), ...(heir ? [heir] : [])];
  const cuts = new Map<string, number>();
  for (const one of first) {
    const less = Math.min(left, Math.max(0, spare(one)));
    cuts.set(one.id, less);
    left -= less;
  }
  const after = all.map((one) => clamped({ ...one, replicas: one.replicas - (cuts.get(one.id) ?? 0) }));
  return { after, left };
}

/**
 * Of those that are out of service the newest rests for its time, and the rest are at an end.
 * @param others newest first
 */
export function resting(others: Revision[], wanted: Wanted, nowMs: number): { others: Revision[]; againMs?: number } {
  const heir = heirOf(others.filter(({ retiredMs }) => retiredMs !== undefined));
  const untilMs = (heir?.retiredMs ?? 0) + wanted.retain.forMs;
  const kept = untilMs > nowMs ? keptOf(heir, wanted) : 0;
  const after = others.map((one) => {
    if (one.retiredMs === undefined) return one;
    return clamped({ ...one, replicas: one.id === heir?.id ? kept : 0 });
  });
  return { others: after, ...(kept > 0 && { againMs: untilMs }) };
}
