/** Between a canary as it is decided, and what the spec, annotations and the file of live settings say of it. */
import { ANNOTATION_ABORT, ANNOTATION_PROMOTE, ANNOTATION_RETRY } from '../api/names.ts';
import type { RenderService, ResourceMetadata } from '../api/resource.ts';
import { durationMs } from '../api/scalars.ts';
import type { CanarySpec } from '../api/spec/canary.ts';
import { type CanaryKey, type CanaryMatch, type LiveCanary, liveNumber } from '../render/live.ts';
import { type Facts, readFacts } from '../rollout/canary-facts.ts';
import type { CanaryState } from '../rollout/canary-state.ts';
import { type CanaryPlan, LEASE_MS, type RolloutNext, type Shares, type ToldShares } from '../rollout/canary-world.ts';
import type { AnalysisPlan } from '../rollout/judgement.ts';
import type { WatchSubject } from './canary-watch.ts';

/** kubelet looks at the file within two minutes: pods hear of it long before they stop to believe it. */
const RENEWED_MS = LEASE_MS / 2;

/** What is said of canaries by annotations. */
export function factsOf({ annotations = {} }: Pick<ResourceMetadata, 'annotations'>): Facts {
  return readFacts({
    promote: annotations[ANNOTATION_PROMOTE],
    abort: annotations[ANNOTATION_ABORT],
    retry: annotations[ANNOTATION_RETRY],
  });
}

/** What the spec asks for. */
export function canaryPlanOf(canary: CanarySpec | undefined): CanaryPlan | undefined {
  if (!canary) return undefined;
  const steps = canary.steps.map((step) => ({
    share: Math.round(100 * step.share),
    forMs: durationMs(step.for),
    approval: step.approval,
  }));
  return { steps, minReplicas: canary.minReplicas, ...(canary.analysis.enabled && { analysis: analysisOf(canary) }) };
}

function analysisOf({ analysis }: CanarySpec): AnalysisPlan {
  const { minRequests, maxWait, errors, latency, onFailure } = analysis;
  return {
    ...{ minRequests, maxWaitMs: durationMs(maxWait), ratio: errors.ratio, errorFloor: errors.floorPercent / 100 },
    slowerThan: latency.enabled ? latency.slowerThan : undefined,
    isPausing: onFailure === 'Pause',
  };
}

/** What is to be looked at of a canary that is under way; nothing where it is judged by nothing. */
export function watchSubject(
  { canary, states }: Pick<RolloutNext, 'canary' | 'states'>,
  { spec }: Pick<RenderService, 'spec'>,
): WatchSubject | undefined {
  const plan = canaryPlanOf(spec.rollout.canary)?.analysis;
  const state = canary && states.get(canary.revision);
  if (!plan || !state || !LOOKED_AT.includes(state.phase)) return undefined;
  const { attempt, stable, share, evidence } = state;
  return { revision: canary.revision, attempt, stable, share, ...(evidence && { evidence }), plan };
}

/** From before it gets anything, so that nothing of it is missed. */
const LOOKED_AT: CanaryState['phase'][] = ['Preparing', 'Stepping', 'Promoting'];

/**
 * Reads it from the file.
 * @param revisions that there are: the file has numbers
 */
export function toldShares(settings: string | undefined, revisions: string[]): ToldShares | undefined {
  const numberOf = (name: string) => liveNumber(settings, name);
  const named = (name: string) => {
    const number = numberOf(name);
    return revisions.find((id) => Number.parseInt(id, 16) === number);
  };
  const [revision, share] = [named('canary-revision'), numberOf('canary-share')];
  if (revision === undefined || share === undefined) return undefined;
  const untilMs = 1_000 * (numberOf('canary-until-s') ?? 0);
  return { revision, stable: named('canary-stable') ?? '', share, untilMs: untilMs || Number.POSITIVE_INFINITY };
}

/** As pods are to be told. What they were told before is confirmed when half of its time is over. */
export function liveCanary(
  shares: Shares,
  canary: CanarySpec | undefined,
  told: ToldShares | undefined,
  nowMs: number,
): LiveCanary {
  const { key, match = [] } = canary ?? {};
  return {
    ...shares,
    // Nothing stays nothing.
    untilSeconds: shares.share === 0 ? 0 : Math.floor(leaseMs(shares, told, nowMs) / 1_000),
    ...(key && { key: withoutMissing(key) as CanaryKey }),
    match: match.map((rule) => withoutMissing(rule) as CanaryMatch),
  };
}

function leaseMs(shares: Shares, told: ToldShares | undefined, nowMs: number): number {
  const isSame = told?.revision === shares.revision && told.share === shares.share;
  const isFresh = told && told.untilMs - nowMs > RENEWED_MS && told.untilMs - nowMs <= LEASE_MS;
  return isSame && isFresh ? told.untilMs : nowMs + LEASE_MS;
}

/** When it is to be confirmed. */
export function confirmAtMs({ share, untilSeconds }: LiveCanary): number | undefined {
  return share === 0 ? undefined : 1_000 * untilSeconds - RENEWED_MS;
}

function withoutMissing(rule: object): object {
  return Object.fromEntries(Object.entries(rule).filter(([, value]) => value !== undefined));
}
