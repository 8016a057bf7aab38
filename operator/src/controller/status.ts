/** The status of a RenderService, computed from what the caches show. */
import {
  type ConditionDraft,
  liveSettingsApplied,
  mergeConditions,
  progressing,
  ready,
  stalled,
} from '../api/conditions.ts';
import type { RenderService, RenderServiceResource, RenderServiceStatus } from '../api/resource.ts';
import { kinds, objectPath } from '../kube/kinds.ts';
import { MERGE_PATCH } from '../kube/rest.ts';
import { isSubset } from '../kube/subset.ts';
import type { KubeObject } from '../kube/types.ts';
import { selectorText } from '../plan/index.ts';
import type { Fleet } from '../pods/fleet.ts';
import { evictionProblem, podProblem, refusalOf } from '../pods/problems.ts';
import { countWorkers } from '../pods/status.ts';
import type { Caches } from './caches.ts';
import type { LiveView } from './live-settings.ts';

interface DeploymentStatus {
  observedGeneration?: number;
  replicas?: number;
  readyReplicas?: number;
  updatedReplicas?: number;
  availableReplicas?: number;
  conditions?: { type: string; status: string; reason?: string; message?: string }[];
}

interface Circumstances {
  budget?: KubeObject | undefined;
  fleet?: Fleet | undefined;
  now: Date;
  remark?: string | undefined;
  /** How far the live settings have come, and for how long they have been on their way. */
  live?: { view: LiveView; forMs: number } | undefined;
}

/** kubelet looks at all files of a pod within this time, without a nudge. */
const LIVE_MS_MAX = 120_000;

/** Pods that are available, of whatever template. */
export function availablePods(deployment: KubeObject | undefined): number {
  return (deployment?.status as DeploymentStatus | undefined)?.availableReplicas ?? 0;
}

/**
 * Conditions of a RenderService whose objects are all applied.
 * @param remark what somebody should know although it keeps no pod from running
 */
export function rolloutConditions(
  renderService: RenderService,
  deployment: KubeObject,
  pods: KubeObject[],
  { budget, fleet, live, now, remark }: Circumstances,
): ConditionDraft[] {
  const wanted = renderService.spec.replicas;
  const status = (deployment.status ?? {}) as DeploymentStatus;
  const { replicas = 0, updatedReplicas = 0, availableReplicas = 0 } = status;
  if ((status.observedGeneration ?? 0) < (deployment.metadata.generation ?? 0)) {
    return progressing('the Deployment has not been looked at yet', availableReplicas >= wanted);
  }
  const problem = refusalOf(deployment) ?? podProblem(pods, now) ?? crashLoopOf(fleet);
  const remarks = [evictionProblem(budget), remark].filter((text) => text !== undefined);
  const failed = status.conditions?.find(
    ({ type, reason }) => type === 'Progressing' && reason === 'ProgressDeadlineExceeded',
  );
  if (failed) {
    const message = `${failed.message ?? 'the rollout makes no progress'}; ${problem ?? "see the pods' events"}`;
    return stalled('ProgressDeadlineExceeded', message, availableReplicas);
  }
  if (updatedReplicas === wanted && replicas === wanted && availableReplicas === wanted) {
    // Ready speaks of the whole spec. Pods that cannot be asked are not waited for.
    if (live && live.view.others > 0 && live.forMs < LIVE_MS_MAX)
      return progressing(`${live.view.have} of ${live.view.pods} pods have the live settings`, true);
    return ready(wanted, remarks.join('; '));
  }
  const counts = `${availableReplicas} of ${wanted} pods are available, ${updatedReplicas} run the current template, ${replicas} exist`;
  const message = [counts, problem, ...remarks].filter(Boolean).join('; ');
  return progressing(message, wanted > 0 && availableReplicas >= wanted, problem !== undefined);
}

/** kubelet sees nothing of a worker that ends: its supervisor starts it again inside the container. */
function crashLoopOf(fleet: Fleet | undefined): string | undefined {
  return fleet?.condition.status === 'False' ? fleet.condition.message : undefined;
}

/** LiveSettingsApplied; nothing where there is nobody to ask. */
export function liveCondition(view: LiveView | undefined): ConditionDraft[] {
  if (!view || view.pods === 0) return [];
  const { have, others, pods, problem } = view;
  if (have === pods) return [liveSettingsApplied.yes(pods)];
  return [
    others > 0
      ? liveSettingsApplied.waiting(have, pods, problem)
      : liveSettingsApplied.unreachable(have, pods, problem),
  ];
}

/** Conditions that come from the pods' own metrics. */
const FLEET_CONDITIONS: string[] = ['WorkersHealthy', 'CapacityAvailable', 'ConcurrencyTuned'];

/**
 * The whole status. `deployment` may be missing when nothing could be applied yet; without a `fleet` what status says
 * about the pods' own metrics stays.
 */
export function computeStatus(
  resource: RenderServiceResource,
  deployment: KubeObject | undefined,
  pods: KubeObject[],
  drafts: ConditionDraft[],
  now: string,
  fleet?: Fleet,
  live?: LiveView,
): RenderServiceStatus {
  const { generation } = resource.metadata;
  const before = resource.status;
  const { replicas = 0, readyReplicas = 0, updatedReplicas = 0 } = (deployment?.status ?? {}) as DeploymentStatus;
  const { total, ready: running } = countWorkers(pods);
  const { metrics } = fleet ?? {};
  const conditions = mergeConditions(before?.conditions ?? [], drafts, generation, now);
  const observed = before?.conditions?.filter(({ type }) => FLEET_CONDITIONS.includes(type)) ?? [];
  if (!fleet) conditions.push(...observed);
  return {
    observedGeneration: generation,
    replicas,
    readyReplicas,
    updatedReplicas,
    selector: selectorText(resource as unknown as RenderService),
    workers: {
      total,
      ready: metrics ? Math.max(0, running - metrics.down) : running,
      busy: metrics ? metrics.busy : fleet ? undefined : before?.workers?.busy,
    },
    queue: metrics ? { length: metrics.queueLength } : fleet ? undefined : before?.queue,
    concurrency: fleet ? fleet.concurrency : before?.concurrency,
    ...liveStatus(live, before, generation),
    conditions,
  };
}

function liveStatus(
  live: LiveView | undefined,
  before: RenderServiceStatus | undefined,
  generation: number,
): Pick<RenderServiceStatus, 'liveSettings'> {
  if (!live) return before?.liveSettings ? { liveSettings: before.liveSettings } : {};
  const isDone = live.have === live.pods;
  const observedGeneration = isDone ? generation : (before?.liveSettings?.observedGeneration ?? 0);
  return { liveSettings: { observedGeneration, pods: live.have } };
}

/** Whether two statuses differ in nothing but metrics that change with every request. */
export function differsInFiguresOnly(status: RenderServiceStatus, before: RenderServiceStatus = {}): boolean {
  const withoutFigures = ({ workers, queue: _queue, concurrency, conditions, ...rest }: RenderServiceStatus) => ({
    ...rest,
    // Its message has the range in it.
    conditions: conditions?.map((one) => (one.type === 'ConcurrencyTuned' ? { ...one, message: '' } : one)),
    isTuned: concurrency !== undefined,
    total: workers?.total,
  });
  return (
    status.queue !== undefined && before.queue !== undefined && isSubset(withoutFigures(status), withoutFigures(before))
  );
}

/** Whether the resource has this status. */
export function isUnchanged(status: RenderServiceStatus, { status: before = {} }: RenderServiceResource): boolean {
  const isGone = (one: unknown, other: unknown) => one === undefined && other !== undefined;
  if (isGone(status.concurrency, before.concurrency)) return false;
  if (isGone(status.queue, before.queue) || isGone(status.workers?.busy, before.workers?.busy)) return false;
  if ((status.workers?.busy === undefined) !== (before.workers?.busy === undefined)) return false;
  return isSubset(status, before);
}

/** Writes the status if it differs from what the resource has. Returns whether it wrote. */
export async function writeStatus(
  caches: Caches,
  resource: RenderServiceResource,
  status: RenderServiceStatus,
): Promise<boolean> {
  if (isUnchanged(status, resource)) return false;
  const { namespace, name, uid } = resource.metadata;
  const path = `${objectPath(kinds.renderService, namespace, name)}/status`;
  // The uid makes the API server refuse the write if the resource was deleted and made again meanwhile.
  // null removes a figure that is no longer known.
  const figures = status.concurrency || resource.status?.concurrency ? { concurrency: status.concurrency ?? null } : {};
  const metrics = {
    queue: status.queue ?? null,
    ...figures,
    workers: { ...status.workers, busy: status.workers?.busy ?? null },
  };
  const body = { metadata: { uid }, status: { ...status, ...metrics } };
  const result = await caches.rest.request<KubeObject & RenderServiceResource>('PATCH', path, {
    contentType: MERGE_PATCH,
    body,
  });
  caches.renderServices.remember(result);
  return true;
}
