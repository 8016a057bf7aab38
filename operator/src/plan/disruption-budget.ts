/** PodDisruptionBudget of the fleet. */
import type { RenderService } from '../api/resource.ts';
import { type PlannedObject, plannedObject, servingLabels } from './objects.ts';

/**
 * The budget, or nothing when the spec turns it off. Pods that rest are none that are missed: they have no part in it.
 * @param canRest see `servingLabels`
 */
export function disruptionBudget(renderService: RenderService, canRest: boolean): PlannedObject[] {
  const { enabled, maxUnavailable } = renderService.spec.disruptionBudget;
  if (!enabled) return [];
  return [
    plannedObject(renderService, {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      name: renderService.metadata.name,
      content: {
        spec: {
          maxUnavailable,
          selector: { matchLabels: servingLabels(renderService, canRest) },
          // A pod that crashes anyway must not block the drain of its node.
          unhealthyPodEvictionPolicy: 'AlwaysAllow',
        },
      },
    }),
  ];
}
