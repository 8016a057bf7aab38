/** What the status of a RenderService says about scaling. */
import type { ConditionDraft } from '../api/conditions.ts';
import type { RenderServiceResource, RenderServiceStatus } from '../api/resource.ts';
import type { ScalingView } from './autoscaler.ts';

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
  const before = resource.status?.conditions?.filter(({ type }) => type === 'ScalingActive') ?? [];
  return before.map(({ type, status, reason, message }) => ({ type, status, reason, message }));
}

function hasScaling({ spec }: RenderServiceResource): boolean {
  return Boolean((spec as { scaling?: unknown } | undefined)?.scaling);
}
