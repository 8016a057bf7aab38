/** What a canary remembers next, by what it remembers and what there is. */
import type { Fact, Facts } from './canary-facts.ts';
import { type AbortReason, type CanaryState, WHOLE_SHARE } from './canary-state.ts';
import {
  type Acks,
  allHave,
  type CanaryRevision,
  type CanaryWanted,
  type CanaryWorld,
  canarySize,
  DOWN_MS,
  LEASE_MS,
  planOf,
  type Remembered,
  SAVED_MS,
} from './canary-world.ts';
import { atShare, type Evidence, noEvidence } from './evidence.ts';
import { type Judgement, judged, type Verdict } from './judgement.ts';

/** Of a first try, before anything is done. */
export function blank(stable: string, attempt: number, nowMs: number): CanaryState {
  return { phase: 'Preparing', attempt, stable, target: 0, share: 0, reached: 0, sinceMs: nowMs, countedMs: 0 };
}

/** It gets nothing any more. */
export function aborting(state: CanaryState, why: AbortReason, nowMs: number): CanaryState {
  const { downSinceMs: _unused, ...rest } = state;
  return entered(rest, { phase: 'Aborting', target: 0, share: 0, reached: 0, why }, nowMs);
}

/** With a clock that begins anew. */
function entered(state: CanaryState, change: Partial<CanaryState>, nowMs: number): CanaryState {
  const { countsSinceMs: _unused, ...rest } = state;
  return { ...rest, ...change, sinceMs: nowMs, countedMs: 0 };
}

/** Time that has counted in this step. */
export function countedMs({ countedMs: before, countsSinceMs }: CanaryState, nowMs: number): number {
  return before + (countsSinceMs === undefined ? 0 : Math.max(0, nowMs - countsSinceMs));
}

function counting(state: CanaryState, nowMs: number): CanaryState {
  return { ...state, countsSinceMs: state.countsSinceMs ?? nowMs };
}

function stopped(state: CanaryState, nowMs: number): CanaryState {
  const { countsSinceMs: _unused, ...rest } = state;
  return { ...rest, countedMs: countedMs(state, nowMs) };
}

/** Times of a clock that was ahead, or of somebody who has written them, begin now. */
function withPastTimes(state: CanaryState, nowMs: number): CanaryState {
  const past = { ...state, sinceMs: Math.min(state.sinceMs, nowMs) };
  if (past.countsSinceMs !== undefined) past.countsSinceMs = Math.min(past.countsSinceMs, nowMs);
  if (past.downSinceMs !== undefined) past.downSinceMs = Math.min(past.downSinceMs, nowMs);
  if (past.savedMs !== undefined) past.savedMs = Math.min(past.savedMs, nowMs);
  return past;
}

/**
 * What is to be remembered next.
 * @param acks of what it remembers now
 */
export function advanced(
  canary: Remembered,
  stable: CanaryRevision,
  wanted: CanaryWanted,
  world: CanaryWorld,
  acks: Acks,
): CanaryState {
  const { nowMs } = world;
  const state = withPastTimes(canary.state, nowMs);
  if (state.phase === 'Aborting') return aborted(state, acks, nowMs);
  const watched = withAvailability(canary, state, stable, wanted, nowMs);
  const evidence = evidenceOf(canary.id, watched, world);
  const next = judgedNext({ canary, state: watched, stable, wanted, world, acks, evidence });
  return withEvidence(watched, next, evidence, nowMs);
}

/** What is known by now of a try, with the share that it has. */
export function evidenceOf(id: string, { attempt, share, evidence }: CanaryState, world: CanaryWorld): Evidence {
  return atShare(world.watchedOf?.(id, attempt)?.evidence ?? evidence ?? noEvidence(share), share);
}

/** Written down with whatever else is; for itself not more often than what would be lost is worth. */
function withEvidence(before: CanaryState, next: CanaryState, evidence: Evidence, nowMs: number): CanaryState {
  const isKnown = evidence.canary.requests + evidence.stable.requests > 0;
  if (!isKnown || JSON.stringify(evidence) === JSON.stringify(before.evidence)) return next;
  const isNews = next.phase !== before.phase || next.target !== before.target || next.share !== before.share;
  const isOld = before.savedMs === undefined || nowMs - before.savedMs >= SAVED_MS;
  return isNews || isOld ? { ...next, evidence, savedMs: nowMs } : next;
}

function judgedNext(now: Now): CanaryState {
  const { state: watched, stable, wanted, world } = now;
  const { nowMs } = world;
  const judgement = judged(now.evidence, planOf(wanted).analysis);
  const why = abortReason(now, judgement);
  if (why) return aborting(watched, why, nowMs);
  if (watched.phase === 'Retiring') {
    const isOut = stable.isOut && stable.retiredMs !== undefined;
    return isOut ? entered(watched, { phase: 'Over' }, nowMs) : watched;
  }
  if (wanted.replicas === 0 || wanted.isPaused) return stopped(watched, nowMs);
  const step = { Preparing: prepared, Stepping: stepped, Promoting: promoted }[watched.phase as 'Stepping'];
  return step(now, judgement);
}

/** A pod that is out of reach takes a share for its own until it is no longer confirmed. */
function aborted(state: CanaryState, { pods, have }: Acks, nowMs: number): CanaryState {
  if (have < pods && nowMs - state.sinceMs < LEASE_MS) return state;
  const isUnwanted = state.why === 'Reverted' || state.why === 'SupersededBy';
  return entered(state, { phase: isUnwanted ? 'Over' : 'Aborted' }, nowMs);
}

/** Since when fewer than half of the pods are available that it had when it got its share. */
function withAvailability(
  { available }: CanaryRevision,
  state: CanaryState,
  stable: CanaryRevision,
  wanted: CanaryWanted,
  nowMs: number,
): CanaryState {
  const { downSinceMs, ...rest } = state;
  const had = Math.min(state.reached, canarySize(state.share, wanted));
  // Where both are gone it is not the canary that is to blame.
  const isDown = state.share > 0 && stable.available > 0 && available < Math.ceil(had / 2);
  return isDown ? { ...rest, downSinceMs: downSinceMs ?? nowMs } : rest;
}

function abortReason({ canary, state, stable, wanted, world }: Now, { verdict }: Judgement): AbortReason | undefined {
  const { id, available } = canary;
  const { facts, nowMs, deadlineMs } = world;
  if (facts.abort === id) return 'AbortAsked';
  if (wanted.id === stable.id) return 'Reverted';
  // One whose pods or acknowledgements do not come must not keep what would cure it waiting for ever.
  const endsSoon = state.phase === 'Retiring' || (isFinishing(state) && nowMs - state.sinceMs < deadlineMs);
  if (wanted.id !== id && !endsSoon) return 'SupersededBy';
  const isPreparing = state.phase === 'Preparing' && !wanted.isPaused && wanted.replicas > 0;
  const isLate = countedMs(state, nowMs) >= deadlineMs && available < preparedSize(state.target, wanted);
  if (isPreparing && isLate) return 'NeverReady';
  if (verdict && state.share > 0 && !planOf(wanted).analysis?.isPausing) return verdict;
  if (state.downSinceMs !== undefined && nowMs - state.downSinceMs >= DOWN_MS) return 'CanaryUnavailable';
  return undefined;
}

/** Whether it has everything, and the stable revision is still in the Service. */
export function isFinishing({ phase, share }: CanaryState): boolean {
  return phase === 'Promoting' && share === WHOLE_SHARE;
}

/** Pods that there have to be before the first share: those of it. Without a step it gets none before it has all. */
export function preparedSize(target: number, wanted: CanaryWanted): number {
  return canarySize(target === WHOLE_SHARE ? 0 : target, wanted);
}

/** Of the first step above `share` that nobody has passed; of everything, if there is none. */
export function nextTarget(
  share: number,
  wanted: CanaryWanted,
  of: { id: string; attempt: number },
  { promote }: Facts,
): number {
  const next = planOf(wanted).steps.find((step, index) => step.share > share && !isPassed(index, of, promote));
  return next?.share ?? WHOLE_SHARE;
}

function isPassed(index: number, { id, attempt }: { id: string; attempt: number }, fact: Fact | undefined): boolean {
  return fact?.revision === id && fact.attempt === attempt && index < (fact.step ?? Number.POSITIVE_INFINITY);
}

interface Now {
  canary: Remembered;
  stable: CanaryRevision;
  state: CanaryState;
  wanted: CanaryWanted;
  world: CanaryWorld;
  acks: Acks;
  evidence: Evidence;
}

/** Whether evidence holds a step, for as long as nobody says that it goes on. */
export function isHeld({ verdict, isSuspicious, isEnough }: Judgement): boolean {
  return verdict !== undefined || isSuspicious || !isEnough;
}

/** To another step, or to the end. First it grows, then it gets the share. */
function towards(state: CanaryState, target: number, nowMs: number): CanaryState {
  return entered(state, { phase: target === WHOLE_SHARE ? 'Promoting' : 'Stepping', target }, nowMs);
}

function prepared({ canary, state, wanted, world, acks }: Now): CanaryState {
  const { nowMs, facts } = world;
  const first = nextTarget(0, wanted, { id: canary.id, attempt: state.attempt }, facts);
  if (first !== state.target) return { ...state, target: first };
  const size = preparedSize(first, wanted);
  if (canary.available < size) return counting(state, nowMs);
  if (!allHave(acks) || acks.knowing < acks.pods) return stopped(state, nowMs);
  if (first === WHOLE_SHARE) return towards(state, first, nowMs);
  return entered(state, { phase: 'Stepping', share: first, reached: size }, nowMs);
}

function stepped({ canary, state, wanted, world, acks }: Now, judgement: Judgement): CanaryState {
  const { nowMs, facts, told } = world;
  const { steps } = planOf(wanted);
  const index = steps.findIndex(({ share }) => share >= state.target);
  const step = steps[index];
  // Somebody has edited the steps.
  if (step?.share !== state.target) return towards(state, step?.share ?? WHOLE_SHARE, nowMs);
  if (state.share < state.target) {
    const size = canarySize(state.target, wanted);
    if (canary.available < size) return counting(state, nowMs);
    return entered(state, { share: state.target, reached: size }, nowMs);
  }
  const isTold = told?.revision === canary.id && told.share === state.share;
  // Pods have taken it for nothing since. Once: each write is news, and the file may stay as somebody has left it.
  const isAnew = state.countedMs === 0 && state.countsSinceMs === undefined;
  if (isTold && told.untilMs <= nowMs) return isAnew ? state : entered(state, {}, nowMs);
  if (!allHave(acks)) return state;
  const running = counting(state, nowMs);
  const of = { id: canary.id, attempt: state.attempt };
  const isOver = countedMs(running, nowMs) >= step.forMs && !step.approval && !isHeld(judgement);
  if (!isOver && !isPassed(index, of, facts.promote)) return running;
  return towards(running, nextTarget(state.target, wanted, of, facts), nowMs);
}

/** What is against giving it everything, unless somebody has passed all of it: he decides, where it is not over. */
export function heldBack(
  { id }: Remembered,
  state: CanaryState,
  wanted: CanaryWanted,
  world: CanaryWorld,
): Verdict | undefined {
  const { steps, analysis } = planOf(wanted);
  if (state.phase !== 'Promoting' || state.share === WHOLE_SHARE) return undefined;
  const isDecided = isPassed(steps.length, { id, attempt: state.attempt }, world.facts.promote);
  return isDecided ? undefined : judged(evidenceOf(id, state, world), analysis).verdict;
}

function promoted({ canary, state, wanted, world, acks }: Now): CanaryState {
  const { nowMs } = world;
  const isWhole = state.share === WHOLE_SHARE;
  if (canary.available < wanted.replicas) return isWhole ? state : counting(state, nowMs);
  if (heldBack(canary, state, wanted, world)) return state;
  if (!isWhole) return entered(state, { share: WHOLE_SHARE, reached: wanted.replicas }, nowMs);
  return allHave(acks) ? entered(state, { phase: 'Retiring' }, nowMs) : state;
}
