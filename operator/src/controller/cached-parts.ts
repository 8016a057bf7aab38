/** What the caches keep of each object. */
import {
  ANNOTATION_CONFIG,
  GROUP,
  isWorkerName,
  KIND,
  LABEL_RENDER_SERVICE,
  LABEL_REVISION,
  LABEL_SERVING,
} from '../api/names.ts';
import { parseQuantity } from '../api/scalars.ts';
import { kinds } from '../kube/kinds.ts';
import { controllerOf } from '../kube/owner.ts';
import { unpacked } from '../kube/packed.ts';
import { shared } from '../kube/shared.ts';
import type { KubeObject } from '../kube/types.ts';
import { isRevisionOf } from '../plan/own-deployments.ts';
import type { Ended, PodStatus } from '../pods/status.ts';
import { type LimitedSpec, ownLimits } from './own-limits.ts';

/** Nobody asks whose the fields of a RenderService are. */
export function withoutManagedFields(object: KubeObject): KubeObject {
  const { managedFields: _unused, ...metadata } = object.metadata;
  return { ...object, metadata };
}

/** Of an object that is no RenderService's only whose it is: anybody may put our label on a megabyte. */
export function withoutForeignContent(object: KubeObject): KubeObject {
  const { apiVersion, kind, metadata } = object;
  return isLikeOurs(object) ? object : { apiVersion, kind, metadata: identity(metadata) };
}

/**
 * Whether it has the owner and the name of an object of ours, and its size. Anybody may write the owner, too; but the
 * garbage collector deletes what names one that is not there, and of most kinds each RenderService has one name.
 */
function isLikeOurs(object: KubeObject): boolean {
  const { name } = object.metadata;
  const owner = controllerOf(object);
  if (owner?.kind !== KIND || !owner.apiVersion?.startsWith(`${GROUP}/`)) return false;
  if (object.kind === kinds.deployment.kind) return isRevisionOf(object, owner.name);
  if (name === owner.name) return true;
  if (object.kind === kinds.service.kind) return name === `${owner.name}-peers`;
  return (
    object.kind === kinds.configMap.kind &&
    name.startsWith(`${owner.name}-`) &&
    JSON.stringify(object).length <= CONFIG_BYTES_MAX
  );
}

/** The largest configuration that we make, with 64 workers and peers, has less than half of it. */
export const CONFIG_BYTES_MAX = 256 * 1024;

/** Labels of which somebody asks the value. */
const OUR_LABELS = [LABEL_RENDER_SERVICE, LABEL_REVISION, LABEL_SERVING];

/** Longest name of anything in Kubernetes; of an owner that is nowhere checked. */
const NAME_LENGTH_MAX = 253;

/**
 * Which object it is and whose. Labels and owners without number cost their author one request, and the operator
 * memory.
 */
export function identity(metadata: KubeObject['metadata']): KubeObject['metadata'] {
  const { name, namespace, uid, resourceVersion, labels } = metadata;
  const ours = Object.fromEntries(OUR_LABELS.flatMap((key) => (labels?.[key] ? [[key, labels[key]]] : [])));
  const controller = controllerOf({ metadata });
  const isKept = controller && [controller.kind, controller.name].every((text) => text.length <= NAME_LENGTH_MAX);
  return {
    name,
    namespace: shared(namespace),
    uid,
    resourceVersion,
    ...(Object.keys(ours).length > 0 && { labels: shared(ours) }),
    ...(isKept && {
      ownerReferences: shared([
        { controller: true, kind: controller.kind, name: controller.name, uid: controller.uid },
      ]),
    }),
  } as KubeObject['metadata'];
}

/**
 * Of a pod only what status needs: a fleet of 10,000 pods must fit into the operator's memory. What pods at peace have
 * alike they share.
 */
export function reducePod({ apiVersion, kind, metadata, spec, status }: KubeObject): KubeObject {
  const { deletionTimestamp } = metadata;
  const { phase, podIP, conditions, initContainerStatuses, containerStatuses } = (status ?? {}) as PodStatus;
  const isReady = conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false;
  return {
    apiVersion,
    kind,
    metadata: { ...identity(metadata), ...(deletionTimestamp && { deletionTimestamp }) },
    status: {
      phase: shared(phase),
      podIP,
      conditions: shared(reduceConditions(conditions, isReady)),
      // Nobody asks for one that is as it should be.
      initContainerStatuses: shared(reduceContainers(initContainerStatuses)?.filter(isNotAtPeace)),
      containerStatuses: shared(reduceContainers(containerStatuses)),
    },
    workerCores: shared(workerCores(spec as PodSpec | undefined)),
    limits: shared(ownLimits(spec as LimitedSpec | undefined)),
  };
}

/** Conditions that somebody asks for. */
const CONDITIONS = new Set(['Ready', 'PodScheduled', 'PodReadyToStartContainers']);

/** When it was scheduled is asked of those only that are not ready yet. */
function reduceConditions(conditions: PodStatus['conditions'], isReady: boolean): PodStatus['conditions'] {
  return conditions
    ?.filter(({ type }) => CONDITIONS.has(type))
    .map(({ type, status, reason, message, lastTransitionTime }) => ({
      type,
      status,
      ...(reason !== undefined && { reason }),
      ...(message !== undefined && { message }),
      ...(!isReady && type === 'PodScheduled' && lastTransitionTime !== undefined && { lastTransitionTime }),
    }));
}

function reduceContainers(containers: PodStatus['containerStatuses']): PodStatus['containerStatuses'] {
  return containers?.map(({ name: container, ready, restartCount, state, lastState }) => ({
    name: container,
    ready,
    ...(restartCount && !isWorkerName(container) && { restartCount }),
    ...(state?.waiting && { state: { waiting: state.waiting } }),
    ...(state?.terminated && { state: { terminated: ended(state.terminated) } }),
    ...(!state?.running && lastState?.terminated && { lastState: { terminated: ended(lastState.terminated) } }),
    ...(state?.running?.startedAt && { state: { running: { startedAt: state.running.startedAt } } }),
  }));
}

/** Whether an init container waits, has failed, or was started more than once. */
function isNotAtPeace({ restartCount, state }: NonNullable<PodStatus['containerStatuses']>[number]): boolean {
  const hasFailed = state?.terminated !== undefined && state.terminated.exitCode !== 0;
  return Boolean(restartCount) || state?.waiting !== undefined || hasFailed;
}

function ended({ reason, exitCode, message }: Ended): Ended {
  return { reason, exitCode, message };
}

interface PodSpec {
  containers?: { name: string; resources?: { requests?: { cpu?: string } } }[];
}

/** CPU request of each worker container: what its usage is measured against. */
function workerCores(spec: PodSpec | undefined): Record<string, number> {
  const workers = (spec?.containers ?? []).filter(({ name }) => isWorkerName(name));
  return Object.fromEntries(
    workers.map(({ name, resources }) => [name, parseQuantity(resources?.requests?.cpu ?? '') ?? 0] as const),
  );
}

interface PodTemplate {
  metadata?: { annotations?: Record<string, string> };
  spec?: { volumes?: ({ configMap?: { name?: string } } | null)[] };
}

/** ConfigMaps of ours in one template, of whatever version of the operator. */
const CONFIGS_MAX = 16;

/**
 * Names of ConfigMaps that are named after the RenderService: those of the volumes, because another version of the
 * operator may mount more than this one does, and after a rollback its pods live on.
 */
function configsOf(template: PodTemplate | undefined, owner: string | undefined): string[] {
  const mounted = (template?.spec?.volumes ?? []).map((volume) => volume?.configMap?.name);
  const ours = mounted.filter((name) => name?.startsWith(`${owner}-`)) as string[];
  const config = template?.metadata?.annotations?.[ANNOTATION_CONFIG];
  const all = [...new Set([...(config === undefined ? [] : [config]), ...ours])];
  return all.filter((name) => name.length <= NAME_LENGTH_MAX).slice(0, CONFIGS_MAX);
}

/** Deployment controller's own count of templates, on a Deployment and on its ReplicaSets. */
export const ANNOTATION_REVISION = 'deployment.kubernetes.io/revision';
/** A number, as text. */
const REVISION_LENGTH_MAX = 20;

/** Of a ReplicaSet only which of our ConfigMaps its pods mount, and which template it is of. */
export function reduceReplicaSet({ apiVersion, kind, metadata, spec }: KubeObject): KubeObject {
  const template = unpacked((spec as { template?: unknown }).template) as PodTemplate | undefined;
  const revision = metadata.annotations?.[ANNOTATION_REVISION];
  return {
    apiVersion,
    kind,
    metadata: identity(metadata),
    configs: shared(configsOf(template, metadata.labels?.[LABEL_RENDER_SERVICE])),
    ...(revision !== undefined && revision.length <= REVISION_LENGTH_MAX && { revision }),
  };
}
