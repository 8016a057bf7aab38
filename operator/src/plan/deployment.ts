/** The Deployments that run the pods: one for each revision. */
import type { V1PodTemplateSpec } from '@kubernetes/client-node';
import { LABEL_REVISION } from '../api/names.ts';
import type { RenderService } from '../api/resource.ts';
import { type PlannedObject, plannedObject, selectorLabels } from './objects.ts';

/** Old ReplicaSets that are kept: of a revision that somebody has restarted with `kubectl rollout restart`. */
const REPLICA_SET_HISTORY = 2;

/** A revision as its Deployment is to be. */
export interface PlannedRevision {
  /** Undefined for pods of a version that had one Deployment for all revisions. */
  revision: string | undefined;
  template: V1PodTemplateSpec;
  replicas: number;
  annotations: Record<string, string>;
}

/** Name of the Deployment of a revision. */
export function deploymentName({ metadata }: Pick<RenderService, 'metadata'>, revision: string | undefined): string {
  return revision === undefined ? metadata.name : `${metadata.name}-${revision}`;
}

/** Deployment for the pods of a revision. */
export function deployment(
  renderService: RenderService,
  { revision, template, replicas, annotations }: PlannedRevision,
): PlannedObject {
  const { maxSurge, maxUnavailable, minReadySeconds, progressDeadlineSeconds } = renderService.spec.rollout.rolling;
  const labels: Record<string, string> = revision === undefined ? {} : { [LABEL_REVISION]: revision };
  return plannedObject(renderService, {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    name: deploymentName(renderService, revision),
    labels,
    annotations,
    content: {
      spec: {
        replicas,
        minReadySeconds,
        progressDeadlineSeconds,
        revisionHistoryLimit: REPLICA_SET_HISTORY,
        selector: { matchLabels: { ...selectorLabels(renderService), ...labels } },
        // Within a revision: pods that somebody restarts.
        strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge, maxUnavailable } },
        template,
      },
    },
  });
}
