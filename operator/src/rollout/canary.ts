/**
 * A canary: pods of the revision that is asked for beside all those of the stable one, and the share of the requests
 * that they get. What a canary remembers (canary-state.ts) says what is to be done now; what there is says what it
 * remembers next. Nothing is done before it is remembered, so it does not matter where an operator is killed: the next
 * one does the same. Where nobody wants a canary it is next-replicas.ts that decides.
 */
import type { Facts } from './canary-facts.ts';
import { ATTEMPTS_MAX, type CanaryState, isActive } from './canary-state.ts';
import { aborting, advanced, blank, nextTarget } from './canary-step.ts';
import { canaryView, telling } from './canary-told.ts';
import {
  bare,
  type CanaryRevision,
  type CanaryWanted,
  type CanaryWorld,
  canarySize,
  hasState,
  type Remembered,
  type RolloutNext,
  restingOf,
  type Shares,
} from './canary-world.ts';
import { clamped, heirOf, nextReplicas, type Revision, resting, targetOf } from './next-replicas.ts';

/**
 * What is to be next. The revision that is asked for need not be among `all` yet.
 * @param all revisions that there are, in any order
 */
export function nextRollout(all: CanaryRevision[], wanted: CanaryWanted, world: CanaryWorld): RolloutNext {
  const known = all.map((one) => ({ ...one, ...clamped(one) }));
  const target = known.find(({ id }) => id === wanted.id);
  const active = activeOf(known, target, world);
  if (active) {
    const stable = known.find(({ id }) => id === active.state.stable && id !== active.id);
    if (stable) return aside(known, active, stable, wanted, world);
    // Nobody is left to have the rest.
    return plain(forgetting(known, active.id), wanted, world);
  }
  const stable = stableOf(known, wanted.id);
  if (!stable) return plain(known, wanted, world);
  if (target && isAborted(target) && !isAskedAgain(known, target)) {
    const attempt = retriedAs(target, world.facts);
    if (attempt === undefined) return aside(known, target, stable, wanted, world);
    if (mayBegin(target, stable, wanted)) return begin(known, stable, wanted, world, attempt);
  } else if (mayBegin(target, stable, wanted)) {
    return begin(known, stable, wanted, world, attemptAfter(target));
  }
  return plain(known, wanted, world);
}

function isAborted(one: CanaryRevision): one is Remembered {
  return hasState(one) && one.state.phase === 'Aborted' && !one.wasComplete;
}

/** The revision that is a canary, or that pods still take for one. */
function activeOf(
  all: CanaryRevision[],
  target: CanaryRevision | undefined,
  { told, nowMs }: CanaryWorld,
): Remembered | undefined {
  const [active] = newestFirst(all.filter(hasState).filter((one) => isActive(one.state) && !one.wasComplete));
  if (active) return active;
  if (!target || target.wasComplete || target.replicas === 0) return undefined;
  const isLost = target.state === 'lost' || (target.state === undefined && told?.revision === target.id);
  const stable = stableOf(all, target.id);
  // How far it was nobody knows any more.
  return isLost && stable ? { ...target, state: aborting(blank(stable.id, 1, nowMs), 'StatusLost', nowMs) } : undefined;
}

function newestFirst<T extends Revision>(all: T[]): T[] {
  return all.toSorted((one, other) => other.number - one.number);
}

/** The newest that was all there, of those that get requests. */
function stableOf(all: CanaryRevision[], wanted: string): CanaryRevision | undefined {
  return heirOf(newestFirst(all.filter((one) => one.id !== wanted && isServing(one))));
}

function isServing({ retiredMs, replicas }: Revision): boolean {
  return retiredMs === undefined && replicas > 0;
}

/** One that pods know to get nothing may go at once. */
function isEnded(one: CanaryRevision): boolean {
  return hasState(one) && !isActive(one.state) && !one.wasComplete;
}

/** Something else was asked for since. */
function isAskedAgain(all: CanaryRevision[], target: CanaryRevision): boolean {
  return all.some(({ number }) => number > target.number);
}

function retriedAs({ id, state }: Remembered, { retry, abort }: Facts): number | undefined {
  return retry?.revision === id && retry.attempt > state.attempt && abort !== id ? retry.attempt : undefined;
}

/** A fact about a try must not count for the next one. */
function attemptAfter(target: CanaryRevision | undefined): number {
  return target && hasState(target) ? Math.min(ATTEMPTS_MAX, target.state.attempt + 1) : 1;
}

/** Whether it is a change that goes in steps; one that is under way without goes on without. */
function mayBegin(target: CanaryRevision | undefined, stable: CanaryRevision, wanted: CanaryWanted): boolean {
  if (!wanted.canary || wanted.isTurn || wanted.isPaused || target?.wasComplete) return false;
  // Whom the stable one does not answer must not wait for steps; and one of before revisions knows no shares.
  if (stable.available === 0 || !stable.canRest) return false;
  return !target || target.replicas === 0 || (hasState(target) && stable.replicas >= wanted.replicas);
}

/** Without steps. */
function plain(all: CanaryRevision[], wanted: CanaryWanted, world: CanaryWorld): RolloutNext {
  const next = nextReplicas(all.map(bare), wanted, world.nowMs);
  // Pods that drain would render for themselves what still comes to them.
  const leaving = all.find(
    (one) => hasState(one) && one.state.stable === wanted.id && !one.wasComplete && one.pods > 0,
  );
  const shares = next.phase === 'Complete' && leaving && { revision: leaving.id, stable: wanted.id, share: 0 };
  return { ...next, states: statesOf(all, wanted.id), ...(shares ? { shares } : {}) };
}

function forgetting(all: CanaryRevision[], id: string): CanaryRevision[] {
  return all.map((one) => (one.id === id ? { ...one, state: undefined } : one));
}

/** What others remember stays; one that was aborted, and is asked for again, has another try before it. */
function statesOf(all: CanaryRevision[], asked: string): Map<string, CanaryState> {
  return new Map(
    all.filter(hasState).map((one): [string, CanaryState] => {
      const state: CanaryState = one.state;
      return [one.id, one.id === asked && state.phase === 'Aborted' ? { ...state, phase: 'Over' } : state];
    }),
  );
}

/** Its Deployment, without pods yet: they come when all pods can have been told. */
function begin(
  all: CanaryRevision[],
  stable: CanaryRevision,
  wanted: CanaryWanted,
  world: CanaryWorld,
  attempt: number,
): RolloutNext {
  const { nowMs, facts } = world;
  const blankState = blank(stable.id, attempt, nowMs);
  const known = all.find(({ id }) => id === wanted.id);
  const target = { ...targetOf(all.map(bare), wanted), retiredMs: undefined };
  const others = all.filter(({ id }) => id !== wanted.id);
  if (others.some((one) => one.id !== stable.id && isServing(one) && !isEnded(one))) {
    // Back to the stable one first, within the bounds of a rolling update.
    const back = nextReplicas(others.map(bare), { ...wanted, id: stable.id }, nowMs);
    const numbers = new Map(all.map(({ id, number }) => [id, number]));
    const revisions = back.revisions.map((one) => ({ ...one, number: numbers.get(one.id) ?? one.number }));
    const message = `before step 1: revision ${stable.id} gets everything first`;
    return {
      ...{ revisions: [target, ...newestFirst(revisions)], phase: 'Preparing', states: statesOf(all, wanted.id) },
      ...(back.againMs !== undefined && { againMs: back.againMs }),
      canary: canaryView(target.id, blankState, wanted, 'Settling', message),
    };
  }
  const isUnwanted = facts.abort === target.id;
  const first = nextTarget(0, wanted, { id: target.id, attempt }, facts);
  const state: CanaryState = isUnwanted
    ? { ...blankState, phase: 'Aborted', why: 'AbortAsked' }
    : { ...blankState, target: first };
  const canary = { ...target, state, pods: known?.pods ?? 0, isOut: known?.isOut ?? true };
  return aside([canary, ...others], canary, stable, wanted, world, { isNew: true });
}

/**
 * A canary beside the stable revision.
 * @param isNew nothing is done for it before it is remembered
 */
function aside(
  all: CanaryRevision[],
  canary: Remembered,
  stable: CanaryRevision,
  wanted: CanaryWanted,
  world: CanaryWorld,
  { isNew = false } = {},
): RolloutNext {
  const { nowMs } = world;
  const sides = sizesOf(canary, stable, wanted, nowMs);
  if (isNew && canary.state.phase !== 'Aborted') sides.canary.replicas = canary.replicas;
  const others = newestFirst(all.filter(({ id }) => id !== canary.id && id !== stable.id))
    .map(bare)
    // What is asked for next has no pods yet.
    .map((one) => (one.id === wanted.id && one.replicas === 0 ? one : { ...one, retiredMs: one.retiredMs ?? nowMs }));
  const rest = resting(others, wanted, nowMs);
  const after = [clamped(sides.canary), clamped(sides.stable), ...rest.others];
  const target = targetOf(after, wanted);
  const revisions = [target, ...newestFirst(after.filter(({ id }) => id !== target.id))];
  const shares = sharesOf(canary, stable);
  const acks = world.acksOf(shares, restingOf(revisions));
  const isStanding = isNew || canary.state.phase === 'Aborted';
  const state = isStanding ? canary.state : advanced(canary, stable, wanted, world, acks);
  const isDone = state.phase === 'Over' && canary.state.phase === 'Retiring';
  // Of what it is to be told next nobody can have said anything.
  const isSame = !isNew && state.share === canary.state.share && state.phase === canary.state.phase;
  const told = telling(canary, stable, { state, wanted, world, acks: isSame ? acks : { ...acks, have: 0, silent: 0 } });
  const times = [rest.againMs, told.againMs].filter((time) => time !== undefined);
  return {
    revisions: revisions.map((one) => (isDone && one.id === canary.id ? { ...one, wasComplete: true } : one)),
    phase: told.phase,
    ...(times.length > 0 && { againMs: Math.min(...times) }),
    states: statesOf(all, canary.id === wanted.id ? '' : wanted.id).set(canary.id, state),
    ...(shares && { shares }),
    canary: told.canary,
  };
}

interface Sides {
  canary: Revision;
  stable: Revision;
}

/** How many pods they are to have, by what is remembered. */
function sizesOf(canary: Remembered, stable: CanaryRevision, wanted: CanaryWanted, nowMs: number): Sides {
  const { phase, target, share } = canary.state;
  const { replicas } = wanted;
  const whole = { ...bare(stable), replicas, retiredMs: undefined };
  const sized = (count: number): Revision => ({ ...bare(canary), replicas: count, retiredMs: undefined });
  switch (phase) {
    case 'Preparing':
    case 'Stepping':
      return { canary: sized(canarySize(Math.max(target, share), wanted)), stable: whole };
    case 'Promoting':
      return { canary: sized(replicas), stable: whole };
    case 'Retiring':
      // All of them, as long as a pod may still believe that they get something.
      return { canary: sized(replicas), stable: { ...whole, retiredMs: stable.retiredMs ?? nowMs } };
    case 'Aborting':
      return { canary: sized(Math.min(canary.replicas, replicas)), stable: whole };
    default:
      return { canary: { ...sized(0), retiredMs: canary.retiredMs ?? nowMs }, stable: whole };
  }
}

/** Follows from what is remembered, and is told as long as anybody may need to know it. */
function sharesOf({ id, state, pods, replicas }: Remembered, stable: CanaryRevision): Shares | undefined {
  const isGone = state.phase === 'Aborted' && pods === 0 && replicas === 0;
  return isGone ? undefined : { revision: id, stable: stable.id, share: state.share };
}
