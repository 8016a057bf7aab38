/** PodDisruptionBudget of the fleet. */
import type { RenderService } from '../api/resource.ts';
import { type PlannedObject, plannedObject, selectorLabels } from './objects.ts';

/** The budget, or nothing when the spec turns it off. */
export function disruptionBudget(renderService: RenderService): PlannedObject[] {
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
          selector: { matchLabels: selectorLabels(renderService) },
          // A pod that crashes anyway must not block the drain of its node.
          unhealthyPodEvictionPolicy: 'AlwaysAllow',
        },
      },
    }),
  ];
}
