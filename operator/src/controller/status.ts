/** The status of a RenderService, computed from what the caches show. */
import { type ConditionDraft, mergeConditions, progressing, ready, stalled } from '../api/conditions.ts';
import type { RenderService, RenderServiceResource, RenderServiceStatus } from '../api/resource.ts';
import { kinds, objectPath } from '../kube/kinds.ts';
import { MERGE_PATCH } from '../kube/rest.ts';
import { isSubset } from '../kube/subset.ts';
import type { KubeObject } from '../kube/types.ts';
import { selectorText } from '../plan/index.ts';
import type { ScalingView } from './autoscaler.ts';
import type { Cluster } from './cluster.ts';
import { countWorkers, podProblem } from './pods.ts';

interface DeploymentStatus {
  observedGeneration?: number;
  replicas?: number;
  readyReplicas?: number;
  updatedReplicas?: number;
  availableReplicas?: number;
  conditions?: { type: string; status: string; reason?: string; message?: string }[];
}

/** Pods that are available, of whatever template. */
export function availablePods(deployment: KubeObject | undefined): number {
  return (deployment?.status as DeploymentStatus | undefined)?.availableReplicas ?? 0;
}

/** Conditions of a RenderService whose objects are all applied. */
export function rolloutConditions(
  renderService: RenderService,
  deployment: KubeObject,
  pods: KubeObject[],
): ConditionDraft[] {
  const wanted = renderService.spec.replicas;
  const status = (deployment.status ?? {}) as DeploymentStatus;
  const { replicas = 0, updatedReplicas = 0, availableReplicas = 0 } = status;
  if ((status.observedGeneration ?? 0) < (deployment.metadata.generation ?? 0)) {
    return progressing('the Deployment has not been looked at yet', availableReplicas >= wanted);
  }
  const failed = status.conditions?.find(
    ({ type, reason }) => type === 'Progressing' && reason === 'ProgressDeadlineExceeded',
  );
  if (failed) {
    const message = `${failed.message ?? 'the rollout makes no progress'}; ${podProblem(pods) ?? "see the pods' events"}`;
    return stalled('ProgressDeadlineExceeded', message, availableReplicas);
  }
  if (updatedReplicas === wanted && replicas === wanted && availableReplicas === wanted) return ready(wanted);
  const counts = `${availableReplicas} of ${wanted} pods are available, ${updatedReplicas} run the current template, ${replicas} exist`;
  const problem = podProblem(pods);
  return progressing(problem ? `${counts}; ${problem}` : counts, wanted > 0 && availableReplicas >= wanted);
}

/** The whole status. `deployment` may be missing when nothing could be applied yet. */
export function computeStatus(
  resource: RenderServiceResource,
  scaling: ScalingView | undefined,
  deployment: KubeObject | undefined,
  pods: KubeObject[],
  drafts: ConditionDraft[],
  now: string,
): RenderServiceStatus {
  const { generation } = resource.metadata;
  const { replicas = 0, readyReplicas = 0, updatedReplicas = 0 } = (deployment?.status ?? {}) as DeploymentStatus;
  return {
    observedGeneration: generation,
    replicas,
    readyReplicas,
    updatedReplicas,
    selector: selectorText(resource as unknown as RenderService),
    workers: countWorkers(pods),
    scaling: scalingStatus(resource, scaling) as RenderServiceStatus['scaling'],
    conditions: mergeConditions(
      resource.status?.conditions ?? [],
      [...drafts, ...scalingCondition(resource, scaling)],
      generation,
      now,
    ),
  };
}

/** A leader that has not looked yet leaves what there is; without `scaling` nothing is left (null: a merge patch removes). */
function scalingStatus(resource: RenderServiceResource, view: ScalingView | undefined) {
  if (!hasScaling(resource)) return resource.status?.scaling ? null : undefined;
  if (view === undefined) return resource.status?.scaling;
  const { utilizationPercent = null, lastDecision } = view;
  return { utilizationPercent, lastDecision };
}

function scalingCondition(resource: RenderServiceResource, view: ScalingView | undefined): ConditionDraft[] {
  if (!hasScaling(resource)) return [];
  if (view !== undefined) return [view.condition];
  return (resource.status?.conditions ?? []).filter(({ type }) => type === 'ScalingActive');
}

function hasScaling({ spec }: RenderServiceResource): boolean {
  return Boolean((spec as { scaling?: unknown } | undefined)?.scaling);
}

/** Writes the status if it differs from what the resource has. Returns whether it wrote. */
export async function writeStatus(
  cluster: Cluster,
  resource: RenderServiceResource,
  status: RenderServiceStatus,
): Promise<boolean> {
  if (isSubset(status, resource.status ?? {})) return false;
  const { namespace, name, uid } = resource.metadata;
  const path = `${objectPath(kinds.renderService, namespace, name)}/status`;
  // The uid makes the API server refuse the write if the resource was deleted and made again meanwhile.
  const body = { metadata: { uid }, status };
  const result = await cluster.rest.request<KubeObject & RenderServiceResource>('PATCH', path, {
    contentType: MERGE_PATCH,
    body,
  });
  cluster.renderServices.remember(result);
  return true;
}
