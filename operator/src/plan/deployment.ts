/** The Deployment that runs the pods. */
import type { RenderService } from '../api/resource.ts';
import { type PlannedObject, plannedObject, selectorLabels } from './objects.ts';
import { podTemplate } from './pod-template.ts';
import type { SidecarImage } from './proxies.ts';

/** Old ReplicaSets that are kept, each with its ConfigMap, for `kubectl rollout history`. */
const REVISION_HISTORY = 2;

/** Deployment for the pods with the configuration in `configMapName`. */
export function deployment(renderService: RenderService, configMapName: string, sidecar: SidecarImage): PlannedObject {
  const { replicas, rollout } = renderService.spec;
  const { maxSurge, maxUnavailable, minReadySeconds, progressDeadlineSeconds } = rollout.rolling;
  return plannedObject(renderService, {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    name: renderService.metadata.name,
    content: {
      spec: {
        replicas,
        minReadySeconds,
        progressDeadlineSeconds,
        revisionHistoryLimit: REVISION_HISTORY,
        selector: { matchLabels: selectorLabels(renderService) },
        strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge, maxUnavailable } },
        template: podTemplate(renderService, configMapName, sidecar),
      },
    },
  });
}
