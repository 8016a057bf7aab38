/** What the caches keep of each object. */
import { ANNOTATION_CONFIG, GROUP, isWorkerName, KIND, LABEL_RENDER_SERVICE } from '../api/names.ts';
import { parseQuantity } from '../api/scalars.ts';
import { kinds } from '../kube/kinds.ts';
import type { KubeObject } from '../kube/types.ts';
import type { Ended, PodStatus } from '../pods/status.ts';

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
  const { name, ownerReferences } = object.metadata;
  const owner = ownerReferences?.find(({ controller }) => controller);
  if (owner?.kind !== KIND || !owner.apiVersion?.startsWith(`${GROUP}/`)) return false;
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

/** Longest name of anything in Kubernetes; of an owner that is nowhere checked. */
const NAME_LENGTH_MAX = 253;

/**
 * Which object it is and whose. Labels and owners without number cost their author one request, and the operator
 * memory.
 */
function identity(metadata: KubeObject['metadata']): KubeObject['metadata'] {
  const { name, namespace, uid, resourceVersion, labels, ownerReferences } = metadata;
  const ours = labels?.[LABEL_RENDER_SERVICE];
  const controller = ownerReferences?.find((owner) => owner.controller);
  const isKept = controller && [controller.kind, controller.name].every((text) => text.length <= NAME_LENGTH_MAX);
  return {
    name,
    namespace,
    uid,
    resourceVersion,
    ...(ours !== undefined && { labels: { [LABEL_RENDER_SERVICE]: ours } }),
    ...(isKept && {
      ownerReferences: [{ controller: true, kind: controller.kind, name: controller.name, uid: controller.uid }],
    }),
  } as KubeObject['metadata'];
}

/** Of a pod only what status needs: a fleet of 10,000 pods must fit into the operator's memory. */
export function reducePod({ apiVersion, kind, metadata, spec, status }: KubeObject): KubeObject {
  const { deletionTimestamp } = metadata;
  const { phase, podIP, conditions, initContainerStatuses, containerStatuses } = (status ?? {}) as PodStatus;
  const reduce = (containers: PodStatus['containerStatuses']) =>
    containers?.map(({ name: container, ready, state, lastState }) => ({
      name: container,
      ready,
      ...(state?.waiting && { state: { waiting: state.waiting } }),
      ...(state?.terminated && { state: { terminated: ended(state.terminated) } }),
      ...(!state?.running && lastState?.terminated && { lastState: { terminated: ended(lastState.terminated) } }),
      ...(state?.running?.startedAt && { state: { running: { startedAt: state.running.startedAt } } }),
    }));
  return {
    apiVersion,
    kind,
    metadata: { ...identity(metadata), ...(deletionTimestamp && { deletionTimestamp }) },
    status: {
      phase,
      podIP,
      conditions,
      initContainerStatuses: reduce(initContainerStatuses),
      containerStatuses: reduce(containerStatuses),
    },
    workerCores: workerCores(spec as PodSpec | undefined),
  };
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

/** Of a ReplicaSet only which ConfigMap its pods mount, and whose account they have. */
export function reduceReplicaSet({ apiVersion, kind, metadata, spec }: KubeObject): KubeObject {
  const { template } = spec as {
    template?: { metadata?: { annotations?: Record<string, string> }; spec?: { serviceAccountName?: string } };
  };
  const config = template?.metadata?.annotations?.[ANNOTATION_CONFIG];
  const account = template?.spec?.serviceAccountName;
  return {
    apiVersion,
    kind,
    metadata: identity(metadata),
    ...(config !== undefined && config.length <= NAME_LENGTH_MAX && { config }),
    ...(account !== undefined && { account }),
  };
}
