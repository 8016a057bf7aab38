/** The status of a RenderService, computed from what the caches show. */
import { type ConditionDraft, mergeConditions, progressing, ready, stalled } from '../api/conditions.ts';
import { LABEL_RENDER_SERVICE } from '../api/names.ts';
import type { RenderService, RenderServiceResource, RenderServiceStatus } from '../api/resource.ts';
import { kinds, objectPath } from '../kube/kinds.ts';
import { MERGE_PATCH } from '../kube/rest.ts';
import { isSubset } from '../kube/subset.ts';
import type { KubeObject } from '../kube/types.ts';
import { selectorText } from '../plan/index.ts';
import type { Cluster } from './cluster.ts';

interface DeploymentStatus {
  observedGeneration?: number;
  replicas?: number;
  readyReplicas?: number;
  updatedReplicas?: number;
  availableReplicas?: number;
  conditions?: { type: string; status: string; reason?: string; message?: string }[];
}

interface PodStatus {
  conditions?: { type: string; status: string }[];
  containerStatuses?: { name: string; ready: boolean }[];
}

/** Whether enough pods are available that the Service answers. */
export function isServing(deployment: KubeObject | undefined): boolean {
  const status = deployment?.status as DeploymentStatus | undefined;
  return (status?.availableReplicas ?? 0) > 0;
}

/** Conditions of a RenderService whose objects are all applied. */
export function rolloutConditions(renderService: RenderService, deployment: KubeObject): ConditionDraft[] {
  const wanted = renderService.spec.replicas;
  const status = (deployment.status ?? {}) as DeploymentStatus;
  const { replicas = 0, updatedReplicas = 0, availableReplicas = 0 } = status;
  if ((status.observedGeneration ?? 0) < (deployment.metadata.generation ?? 0)) {
    return progressing('the Deployment has not been looked at yet', isServing(deployment));
  }
  const failed = status.conditions?.find(
    ({ type, reason }) => type === 'Progressing' && reason === 'ProgressDeadlineExceeded',
  );
  if (failed) {
    const message = `${failed.message ?? 'the rollout makes no progress'}; see the pods' events`;
    return stalled('ProgressDeadlineExceeded', message, isServing(deployment));
  }
  if (updatedReplicas === wanted && replicas === wanted && availableReplicas === wanted) return ready(wanted);
  const message = `${availableReplicas} of ${wanted} pods are available, ${updatedReplicas} run the current template, ${replicas} exist`;
  return progressing(message, isServing(deployment) && availableReplicas >= wanted);
}

/** Workers in the pods that exist: all, and those that run in a ready pod. */
export function countWorkers(pods: KubeObject[]): { total: number; ready: number } {
  const counts = pods.map(({ status }) => {
    const { conditions = [], containerStatuses = [] } = (status ?? {}) as PodStatus;
    const workers = containerStatuses.filter(({ name }) => /^worker-[0-9]+$/.test(name));
    const isReady = conditions.some(({ type, status: value }) => type === 'Ready' && value === 'True');
    return { total: workers.length, ready: isReady ? workers.filter((worker) => worker.ready).length : 0 };
  });
  return {
    total: counts.reduce((sum, { total }) => sum + total, 0),
    ready: counts.reduce((sum, count) => sum + count.ready, 0),
  };
}

/** The whole status. `deployment` may be missing when nothing could be applied yet. */
export function computeStatus(
  cluster: Cluster,
  resource: RenderServiceResource,
  deployment: KubeObject | undefined,
  drafts: ConditionDraft[],
  now: string,
): RenderServiceStatus {
  const { name, namespace, generation } = resource.metadata;
  const pods = cluster.pods.list(namespace).filter(({ metadata }) => metadata.labels?.[LABEL_RENDER_SERVICE] === name);
  const { replicas = 0, readyReplicas = 0, updatedReplicas = 0 } = (deployment?.status ?? {}) as DeploymentStatus;
  return {
    observedGeneration: generation,
    replicas,
    readyReplicas,
    updatedReplicas,
    selector: selectorText(resource as unknown as RenderService),
    workers: countWorkers(pods.filter(({ metadata }) => !metadata.deletionTimestamp)),
    conditions: mergeConditions(resource.status?.conditions ?? [], drafts, generation, now),
  };
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
