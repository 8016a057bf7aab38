/** What the operator's metrics say about a RenderService: they are made from the cache when somebody asks for them. */
import type { Condition } from '../api/conditions.ts';
import { objectivesOf } from '../api/objectives.ts';
import type { RenderServiceResource } from '../api/resource.ts';
import { scaling } from '../api/scaling.ts';
import { objectives } from '../api/spec/objectives.ts';
import { policyOf } from '../autoscale/policy.ts';

export interface Series {
  labels: Record<string, string>;
  value: number;
}

/** Families of series that are about one RenderService each, by the end of their name. */
export type Family =
  | 'replicas'
  | 'replicas_min'
  | 'replicas_max'
  | 'workers'
  | 'condition'
  | 'rollout_phase'
  | 'rollout_share_ratio'
  | 'rollout_step'
  | 'rollout_pods'
  | 'rollout_judged'
  | 'rollout_evidence'
  | 'scaling_threshold_ratio'
  | 'objective_ratio'
  | 'objective_latency_seconds'
  | 'objective_latency_weight_ratio';

/** Objects in the cache are never changed, so what they say is said once. */
const known = new WeakMap<RenderServiceResource, Map<Family, Series[]>>();

/** Series of one family about `resource`, which must never be changed; none of a part that is not there. */
export function seriesOf(resource: RenderServiceResource, family: Family): Series[] {
  let all = known.get(resource);
  if (!all) {
    all = allOf(resource);
    known.set(resource, all);
  }
  return all.get(family) ?? [];
}

/** The labels by which everything about a RenderService is joined. Those of its pods' targets have the same names. */
export function labelsOf({ metadata: { namespace, name } }: RenderServiceResource): Record<string, string> {
  return { namespace, renderservice: name };
}

function allOf(resource: RenderServiceResource): Map<Family, Series[]> {
  const own = labelsOf(resource);
  const all = new Map<Family, Series[]>();
  const add = (family: Family, value: number | undefined, labels: Record<string, string> = {}) => {
    if (value === undefined || !Number.isFinite(value)) return;
    const series = { labels: { ...own, ...labels }, value };
    const others = all.get(family);
    if (others) others.push(series);
    else all.set(family, [series]);
  };
  addStatus(resource, add);
  addCanary(resource, add);
  addScaling(resource, add);
  addObjectives(resource, add);
  return all;
}

type Add = (family: Family, value: number | undefined, labels?: Record<string, string>) => void;

function addStatus({ spec, status = {} }: RenderServiceResource, add: Add): void {
  add('replicas', numberOf((spec as { replicas?: unknown } | undefined)?.replicas), { state: 'wanted' });
  add('replicas', status.readyReplicas, { state: 'ready' });
  add('replicas', status.updatedReplicas, { state: 'updated' });
  add('workers', status.workers?.total, { state: 'total' });
  add('workers', status.workers?.ready, { state: 'ready' });
  for (const { type, status: value, reason } of status.conditions ?? [])
    add('condition', CONDITION_VALUE[value], { type, reason: String(reason ?? '') });
}

/** While there is one, or it was aborted. */
function addCanary({ status = {} }: RenderServiceResource, add: Add): void {
  const { canary, phase = '', reason = '' } = status.rollout ?? {};
  if (!canary) return;
  add('rollout_phase', 1, { phase, reason });
  add('rollout_share_ratio', canary.share / 100);
  add('rollout_step', canary.step);
  add('rollout_pods', canary.pods, { state: 'ready' });
  add('rollout_pods', canary.appliedPods, { state: 'applied' });
  const { analysis } = canary;
  if (!analysis) return;
  for (const what of ['requests', 'errors', 'renders', 'slow'] as const)
    for (const side of ['canary', 'stable'] as const) add('rollout_judged', analysis[what][side], { what, side });
  add('rollout_evidence', analysis.evidence.errors, { test: 'errors' });
  add('rollout_evidence', analysis.evidence.slow, { test: 'slow' });
}

const CONDITION_VALUE: Record<Condition['status'], number> = { True: 1, False: 0, Unknown: -1 };

function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined;
}

/** A spec that slipped through the API server's checks has no series of what is wrong in it. */
function addScaling({ spec }: RenderServiceResource, add: Add): void {
  const parsed = scaling.safeParse((spec as { scaling?: unknown } | undefined)?.scaling);
  if (!parsed.data) return;
  const { minReplicas, maxReplicas, up, down } = policyOf(parsed.data);
  add('replicas_min', minReplicas);
  add('replicas_max', maxReplicas);
  add('scaling_threshold_ratio', up.steps[0]?.above, { direction: 'up' });
  add('scaling_threshold_ratio', down.below, { direction: 'down' });
}

function addObjectives({ spec }: RenderServiceResource, add: Add): void {
  const parsed = objectives.safeParse((spec as { objectives?: unknown } | undefined)?.objectives);
  const { availability, latency } = objectivesOf(parsed.data);
  add('objective_ratio', availability, { objective: 'availability' });
  for (const { name: objective, quantile, limitS, weights } of latency) {
    add('objective_ratio', quantile, { objective });
    add('objective_latency_seconds', limitS, { objective });
    for (const { leS, weight } of weights)
      for (const le of boundTexts(leS)) add('objective_latency_weight_ratio', weight, { objective, le });
  }
}

/** The label `le` of a bucket as Prometheus 2 keeps it, and as Prometheus 3 does, which writes 1 as 1.0. */
function boundTexts(leS: number): string[] {
  return Number.isInteger(leS) ? [String(leS), `${leS}.0`] : [String(leS)];
}
