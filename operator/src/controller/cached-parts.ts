/** What the caches keep of each object. */
import { ANNOTATION_CONFIG, isWorkerName, KIND } from '../api/names.ts';
import { parseQuantity } from '../api/scalars.ts';
import type { KubeObject } from '../kube/types.ts';
import type { PodStatus } from '../pods/status.ts';

/** Nobody asks whose the fields of a RenderService are. */
export function withoutManagedFields(object: KubeObject): KubeObject {
  const { managedFields: _unused, ...metadata } = object.metadata;
  return { ...object, metadata };
}

/** Of an object that is no RenderService's only whose it is: anybody may put our label on a megabyte. */
export function withoutForeignContent(object: KubeObject): KubeObject {
  const { apiVersion, kind, metadata } = object;
  if (metadata.ownerReferences?.some((owner) => owner.controller && owner.kind === KIND)) return object;
  const { name, namespace, uid, resourceVersion, labels, ownerReferences } = metadata;
  return { apiVersion, kind, metadata: { name, namespace, uid, resourceVersion, labels, ownerReferences } };
}

/** Of a pod only what status needs: a fleet of 10,000 pods must fit into the operator's memory. */
export function reducePod({ apiVersion, kind, metadata, spec, status }: KubeObject): KubeObject {
  const { name, namespace, uid, resourceVersion, labels, ownerReferences, deletionTimestamp } = metadata;
  const { phase, podIP, conditions, initContainerStatuses, containerStatuses } = (status ?? {}) as PodStatus;
  const reduce = (containers: PodStatus['containerStatuses']) =>
    containers?.map(({ name: container, ready, state }) => ({
      name: container,
      ready,
      ...(state?.waiting && { state: { waiting: state.waiting } }),
      ...(state?.running?.startedAt && { state: { running: { startedAt: state.running.startedAt } } }),
    }));
  return {
    apiVersion,
    kind,
    metadata: { name, namespace, uid, resourceVersion, labels, ownerReferences, deletionTimestamp },
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
  const { name, namespace, uid, resourceVersion, labels, ownerReferences } = metadata;
  const { template } = spec as {
    template?: { metadata?: { annotations?: Record<string, string> }; spec?: { serviceAccountName?: string } };
  };
  const config = template?.metadata?.annotations?.[ANNOTATION_CONFIG];
  const account = template?.spec?.serviceAccountName;
  return {
    apiVersion,
    kind,
    metadata: { name, namespace, uid, resourceVersion, labels, ownerReferences },
    ...(config !== undefined && { config }),
    ...(account !== undefined && { account }),
  };
}
