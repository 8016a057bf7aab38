/** What the status of a RenderService says about scaling: metrics, the last decision, and a sentence. */
import { type Condition, type ConditionDraft, scalingActive } from '../api/conditions.ts';
import { ANNOTATION_SCALING_PAUSED } from '../api/names.ts';
import type { RenderServiceResource, RenderServiceStatus, ScalingDecision } from '../api/resource.ts';
import type { Policy } from '../autoscale/policy.ts';
import type { Pause, Recommendation } from '../autoscale/recommend.ts';
import { ApiError } from '../kube/rest.ts';

/** Status shows the utilisation, but not every tremble of it: each change is a write. */
const SHOWN_STEP_PERCENT = 5;

/** Rounds are not exact, and the first readings come late: a window is full a little after its time. */
const FILLING_SLACK_MS = 60_000;
/** Reasons that a full window has given. */
const OF_FULL_WINDOWS = ['Measuring', 'AtMaximum'];

/** What a round has found out. */
export interface ScalingView {
  condition: ConditionDraft;
  utilizationPercent?: number | undefined;
  lastDecision?: ScalingDecision | undefined;
}

/** A leader that has not looked yet leaves what there is; without `scaling` nothing is left. */
export function scalingStatus(
  resource: RenderServiceResource,
  view: ScalingView | undefined,
): RenderServiceStatus['scaling'] | null {
  // null: a merge patch takes it away.
  if (!hasScaling(resource)) return resource.status?.scaling ? null : undefined;
  if (view === undefined) return resource.status?.scaling;
  const { utilizationPercent = null, lastDecision } = view;
  return { utilizationPercent, lastDecision } as RenderServiceStatus['scaling'];
}

/** The condition, likewise. */
export function scalingCondition(resource: RenderServiceResource, view: ScalingView | undefined): ConditionDraft[] {
  if (!hasScaling(resource)) return [];
  if (view !== undefined) return [view.condition];
  return resource.status?.conditions?.filter(({ type }) => type === 'ScalingActive') ?? [];
}

function hasScaling({ spec }: RenderServiceResource): boolean {
  return Boolean((spec as { scaling?: unknown } | undefined)?.scaling);
}

function annotationOf({ metadata }: RenderServiceResource): string | undefined {
  const value = metadata.annotations?.[ANNOTATION_SCALING_PAUSED];
  return value === 'false' || value === '' ? undefined : value;
}

/** A value that is none of the three pauses both ways: whoever wrote it wanted something to stop. */
export function pauseOf(resource: RenderServiceResource): Pause | undefined {
  const value = annotationOf(resource);
  return value === undefined || value === 'up' || value === 'down' ? value : 'both';
}

/** Whether pods of a canary are beside those that serve everything. */
export function isCanaryUnderWay({ status }: RenderServiceResource): boolean {
  const { canary, phase } = status?.rollout ?? {};
  return Boolean(canary) && phase !== 'Aborted';
}

/** The same pause, and no pod is removed. */
export function withoutDown(pause: Pause | undefined): Pause {
  return pause === 'up' || pause === 'both' ? 'both' : 'down';
}

/** Why there are no metrics, with the way out. */
export function metricsProblem(error: unknown): string {
  const status = error instanceof ApiError ? error.status : 0;
  if (status === 404) return 'the cluster has no Metrics API (metrics.k8s.io); install metrics-server';
  if (status === 403) return 'the operator may not list pods in metrics.k8s.io; is its Role the one of this version?';
  const detail = error instanceof ApiError ? `: ${error.message.slice(0, 200)}` : '';
  return `the Metrics API (metrics.k8s.io) does not answer${detail}`;
}

/** Fixed sentences: numbers in a condition would be a write in every round. */
function conditionOf(
  resource: RenderServiceResource,
  policy: Policy,
  { reason }: Recommendation,
  metricsError: string | undefined,
): ConditionDraft {
  const annotation = annotationOf(resource);
  if (reason === 'ScaledToZero') {
    return scalingActive('ScaledToZero', 'spec.replicas is 0; scaling is off until somebody sets another number');
  }
  if (annotation !== undefined && pauseOf(resource) === 'both') {
    const hint = annotation === 'true' ? '' : ' (it should be "true", "up" or "down")';
    return scalingActive('Paused', `annotation ${ANNOTATION_SCALING_PAUSED} is "${annotation.slice(0, 64)}"${hint}`);
  }
  if (metricsError !== undefined) return scalingActive('NoMetrics', `${metricsError}; the number of pods is held`);
  if (reason === 'NoMetrics') {
    return scalingActive('NoMetrics', 'no worker has been measured yet; the number of pods is held');
  }
  if (reason === 'FillingWindow') {
    return scalingActive('FillingWindow', 'the number of pods is held until a window is full');
  }
  if (reason === 'AtMaximum') {
    return scalingActive('AtMaximum', `more pods are wanted, but ${policy.maxReplicas} is the maximum`);
  }
  if (reason === 'PlacesTaken') {
    return scalingActive(
      'Measuring',
      'no pod is removed although per-core CPU is low: nearly all places of the workers are taken, by renders that wait; ' +
        'scale by occupancy, or let workers have more at a time (concurrency: Auto)',
    );
  }
  const paused = annotation === undefined ? '' : `; paused ${annotation}`;
  const canary = isCanaryUnderWay(resource) ? '; no pod is removed while a canary is under way' : '';
  return scalingActive(
    'Measuring',
    `decides on ${policy.signal === 'cpu' ? 'per-core CPU' : 'busy slots'}${paused}${canary}`,
  );
}

/**
 * The condition that another process has told of this generation, as long as the first window of this process fills: a
 * restart is no news about the service. What else this process finds out it tells at once.
 */
function toldWhileFilling(
  before: ScalingView | undefined,
  { metadata, status }: RenderServiceResource,
  { up, down }: Policy,
  found: ConditionDraft,
  metricsError: string | undefined,
  sinceMs: number,
): Condition | undefined {
  // Only a condition that is told on has a generation of its own.
  const hasFoundOut = before !== undefined && before.condition.observedGeneration === undefined;
  if (hasFoundOut || metricsError !== undefined) return undefined;
  const windows = new Map([
    ['NoMetrics', up.windowMs],
    ['FillingWindow', Math.max(up.windowMs, down.windowMs)],
  ]);
  const windowMs = windows.get(found.reason);
  if (windowMs === undefined || sinceMs >= windowMs + FILLING_SLACK_MS) return undefined;
  return status?.conditions?.find(
    ({ type, reason, observedGeneration }) =>
      type === 'ScalingActive' && OF_FULL_WINDOWS.includes(reason) && observedGeneration === metadata.generation,
  );
}

/**
 * The view after a round; `before` is that of the round before.
 * @param sinceMs for how long this process has looked at the RenderService, in milliseconds
 */
export function nextView(
  before: ScalingView | undefined,
  resource: RenderServiceResource,
  policy: Policy,
  recommendation: Recommendation,
  metricsError: string | undefined,
  decision: ScalingDecision | undefined,
  sinceMs: number,
): ScalingView {
  const { utilization } = recommendation;
  const shown = before?.utilizationPercent ?? resource.status?.scaling?.utilizationPercent;
  const exact = utilization === undefined ? undefined : Math.round(100 * utilization);
  const hasMoved = shown === undefined || exact === undefined || Math.abs(exact - shown) >= SHOWN_STEP_PERCENT;
  const condition = conditionOf(resource, policy, recommendation, metricsError);
  const told = toldWhileFilling(before, resource, policy, condition, metricsError, sinceMs);
  // Until then it is a single reading, and not the mean of a window.
  const isFigureTold = told !== undefined && sinceMs < policy.up.windowMs + FILLING_SLACK_MS;
  return {
    condition: told ?? condition,
    utilizationPercent: (hasMoved && !isFigureTold) || decision ? exact : shown,
    lastDecision: decision ?? before?.lastDecision ?? resource.status?.scaling?.lastDecision,
  };
}
