/** What is said of a canary: phase, reason and a sentence in which nothing changes while nothing happens. */
import { factText } from './canary-facts.ts';
import { type AbortReason, type CanaryState, WHOLE_SHARE } from './canary-state.ts';
import { countedMs, evidenceOf, heldBack, isFinishing, isHeld, preparedSize } from './canary-step.ts';
import {
  type Acks,
  allHave,
  type CanaryReason,
  type CanaryRevision,
  type CanaryView,
  type CanaryWanted,
  type CanaryWorld,
  canarySize,
  DOWN_MS,
  LEASE_MS,
  planOf,
  type Remembered,
  type RolloutPhase,
} from './canary-world.ts';
import { figuresText, type Judgement, judged, type Verdict } from './judgement.ts';

export interface Told {
  phase: RolloutPhase;
  canary: CanaryView;
  /** When it will be something else, if nothing happens before. */
  againMs?: number | undefined;
}

/** A share as people write it. */
function percent(share: number): string {
  return `${share / 100} %`;
}

const WHY: Record<Exclude<AbortReason, Verdict>, string> = {
  AbortAsked: 'corelane.dev/rollout-abort names it',
  NeverReady: 'its pods did not become available within rollout.rolling.progressDeadlineSeconds',
  CanaryUnavailable: `fewer than half of its pods were available for ${DOWN_MS / 1000} s`,
  StatusLost: 'nobody knows any more how far it was',
  Reverted: 'the spec is that of the stable revision again',
  SupersededBy: 'the spec asks for another revision',
};

function whyOf({ why = 'AbortAsked', evidence }: CanaryState): string {
  if (why !== 'TooManyErrors' && why !== 'TooSlow') return WHY[why];
  return evidence ? figuresText(why, evidence) : 'it is worse than the stable revision';
}

interface Circumstances {
  /** What it is to remember. */
  state: CanaryState;
  wanted: CanaryWanted;
  world: CanaryWorld;
  /** Of what it is to remember. */
  acks: Acks;
}

/** What is said of it. */
export function telling(canary: Remembered, stable: CanaryRevision, now: Circumstances): Told {
  const { state, wanted } = now;
  const { phase } = state;
  const { why = 'AbortAsked' } = state;
  if (phase === 'Over' && canary.state.phase === 'Retiring')
    return said(now, canary.id, 'Promoting', 'Promoted', `revision ${canary.id} is the stable one`);
  if (phase === 'Aborting' || phase === 'Over') {
    const message = `canary ${canary.id} gets nothing: ${whyOf(state)}; its pods go when all pods know it`;
    return said(now, canary.id, 'Aborting', why, message, state.sinceMs + LEASE_MS);
  }
  if (phase === 'Aborted') {
    const serves = `stable serves with ${Math.min(stable.available, wanted.replicas)} of ${wanted.replicas}`;
    const again = factText({ revision: canary.id, attempt: state.attempt + 1 });
    const way = `change the spec, or try it again with corelane rollout retry (corelane.dev/rollout-retry: ${again})`;
    return said(now, canary.id, 'Aborted', why, `canary ${canary.id}: ${whyOf(state)}; ${serves}; ${way}`);
  }
  const shown = phase === 'Retiring' ? 'Promoting' : phase;
  const at = whereOf(state, wanted);
  if (phase === 'Retiring')
    return said(now, canary.id, shown, 'TellingPods', `${at}; pods of ${stable.id} leave the Service`);
  if (wanted.replicas === 0) return said(now, canary.id, shown, 'ScaledToZero', `${at}; spec.replicas is 0`);
  if (wanted.isPaused) return said(now, canary.id, 'Paused', 'UserPaused', `${at}; rollout.paused holds it`);
  return waiting(canary, now, shown, at);
}

function said(
  { state, wanted, world }: Circumstances,
  revision: string,
  phase: RolloutPhase,
  reason: CanaryReason,
  message: string,
  againMs?: number,
): Told {
  const downMs = state.downSinceMs === undefined ? undefined : state.downSinceMs + DOWN_MS;
  const endMs = isFinishing(state) ? state.sinceMs + world.deadlineMs : undefined;
  // What a time that is past could change has been decided with this look; to look again at once would never end.
  const times = [againMs, downMs, endMs].filter((time) => time !== undefined && time > world.nowMs) as number[];
  return {
    phase,
    canary: canaryView(revision, state, wanted, reason, message),
    ...(times.length > 0 && { againMs: Math.min(...times) }),
  };
}

/** The whole of it. */
export function canaryView(
  revision: string,
  state: CanaryState,
  wanted: CanaryWanted,
  reason: CanaryReason,
  message: string,
): CanaryView {
  const { attempt, stable, share, sinceMs, evidence } = state;
  const { steps } = planOf(wanted);
  return {
    revision,
    stable,
    attempt,
    step: stepOf(state, wanted),
    steps: steps.length,
    share,
    sinceMs,
    ...(evidence && { evidence }),
    reason,
    message,
  };
}

/** From 1; 0 before the first one, the last one behind it. */
function stepOf({ phase, target }: CanaryState, wanted: CanaryWanted): number {
  if (phase === 'Preparing' || target === 0) return 0;
  const { steps } = planOf(wanted);
  const index = steps.findIndex(({ share }) => share >= target);
  return index < 0 ? steps.length : index + 1;
}

function whereOf(state: CanaryState, wanted: CanaryWanted): string {
  const { steps } = planOf(wanted);
  if (state.phase === 'Preparing') return `before step 1 of ${steps.length}: 0 %`;
  if (state.phase !== 'Stepping') return `all steps are over: ${percent(state.share)}`;
  return `step ${stepOf(state, wanted)} of ${steps.length}: ${percent(state.share)}`;
}

/** What somebody has to decide about. */
const ASKING: CanaryReason[] = ['AwaitingApproval', 'TooFewRequests', 'Inconclusive', 'TooManyErrors', 'TooSlow'];

/** What it waits for. */
function waiting(canary: Remembered, now: Circumstances, phase: RolloutPhase, at: string): Told {
  const { state, acks } = now;
  const tell: Tell = (reason, message, againMs) =>
    said(now, canary.id, ASKING.includes(reason) ? 'Paused' : phase, reason, `${at}; ${message}`, againMs);
  const isCounting = state.phase === 'Stepping' && state.countsSinceMs !== undefined;
  return (
    growing(canary, now, tell) ?? (!allHave(acks) && !isCounting ? untold(tell, acks) : holding(canary, now, tell))
  );
}

/** Pods that are to come before anything else does. */
function growing(canary: Remembered, { state, wanted, world }: Circumstances, tell: Tell): Told | undefined {
  const { id, available } = canary;
  const isPreparing = state.phase === 'Preparing';
  const size = isPreparing ? preparedSize(state.target, wanted) : canarySize(sizedFor(state), wanted);
  const verdict = heldBack(canary, state, wanted, world);
  if (verdict && available >= size) return worse(canary, state, wanted, tell, verdict);
  if (isPreparing ? available >= size : state.share === state.target) return undefined;
  const pods = `${Math.min(available, size)} of ${size} pods of ${id} are available`;
  const isLate = countedMs(state, world.nowMs) >= world.deadlineMs;
  return isLate ? tell('NoProgress', pods) : tell('StartingPods', pods, endsAt(state, world.deadlineMs));
}

function holding(canary: Remembered, { state, wanted, world, acks }: Circumstances, tell: Tell): Told {
  if (state.phase === 'Preparing' && acks.knowing < acks.pods) {
    const old = `${acks.pods - acks.knowing} of ${acks.pods} pods take no part in a canary: they are of a version of Corelane that knows none, or have cache.enabled`;
    const way =
      'leave rollout.canary out for this change, or take it back, let the data plane have its turn, and make it again';
    return tell('DataPlaneTooOld', `${old}: ${way}`);
  }
  const step = planOf(wanted).steps.find(({ share }) => share >= state.target);
  if (state.phase !== 'Stepping' || !step) return untold(tell, acks);
  const judgement = judged(evidenceOf(canary.id, state, world), planOf(wanted).analysis);
  if (judgement.verdict) return worse(canary, state, wanted, tell, judgement.verdict);
  const endMs = endsAt(state, step.forMs);
  if (countedMs(state, world.nowMs) < step.forMs) {
    const told = tell('Counting', 'its time runs', endMs);
    return { ...told, canary: { ...told.canary, untilMs: endMs } };
  }
  if (step.approval)
    return tell('AwaitingApproval', `somebody has to let it go on with ${promoting(canary, state, wanted)}`);
  return isHeld(judgement) ? analysing(canary, { state, wanted, world, acks }, tell, judgement) : untold(tell, acks);
}

/** Of the step that it is at, or of all. */
function promoting({ id }: Remembered, state: CanaryState, wanted: CanaryWanted): string {
  const step = state.phase === 'Stepping' ? { step: stepOf(state, wanted) } : {};
  const fact = factText({ revision: id, attempt: state.attempt, ...step });
  return `corelane rollout promote${state.phase === 'Stepping' ? '' : ' --all'} (corelane.dev/rollout-promote: ${fact})`;
}

function deciding(canary: Remembered, state: CanaryState, wanted: CanaryWanted): string {
  return `somebody has to let it go on with ${promoting(canary, state, wanted)}, or stop it with corelane rollout abort`;
}

/** It is not over where somebody has to decide. */
function worse(canary: Remembered, state: CanaryState, wanted: CanaryWanted, tell: Tell, verdict: Verdict): Told {
  // What was written down, so that it does not change with each look.
  const figures = state.evidence ? figuresText(verdict, state.evidence) : 'it is worse than the stable revision';
  return tell(verdict, `${figures}; ${deciding(canary, state, wanted)}`);
}

/** Its time is over, and it is not known that it is no worse. */
function analysing(
  canary: Remembered,
  { state, wanted, world }: Circumstances,
  tell: Tell,
  { isEnough }: Judgement,
): Told {
  const { minRequests = 0, maxWaitMs = 0 } = planOf(wanted).analysis ?? {};
  const { pods = 0, silent = 0 } = world.watchedOf?.(canary.id, state.attempt) ?? {};
  const ofPods = silent > 0 ? ` (${silent} of ${pods} pods do not tell: does a NetworkPolicy forbid it?)` : '';
  const what = isEnough
    ? 'it may be worse than the stable revision'
    : `of fewer than ${minRequests} of its requests it is known what came of them${ofPods}`;
  const isWaiting = countedMs(state, world.nowMs) < maxWaitMs;
  if (isWaiting) return tell('Analysing', `its time is over; ${what}`, endsAt(state, maxWaitMs));
  const reason = isEnough ? 'Inconclusive' : 'TooFewRequests';
  return tell(reason, `${what}; it waits for more, or ${deciding(canary, state, wanted)}`);
}

function sizedFor({ phase, target }: CanaryState): number {
  return phase === 'Promoting' ? WHOLE_SHARE : target;
}

function endsAt({ countedMs: before, countsSinceMs, sinceMs }: CanaryState, durationMs: number): number {
  return (countsSinceMs ?? sinceMs) + durationMs - before;
}

type Tell = (reason: CanaryReason, message: string, againMs?: number) => Told;

function untold(tell: Tell, { pods, have, silent }: Acks): Told {
  const known = `${have} of ${pods} pods that are ready are known to know it`;
  if (silent === 0) return tell('TellingPods', known);
  return tell('PodsUnreachable', `${known}; the operator cannot ask ${silent}: does a NetworkPolicy forbid it?`);
}
