/** The operator's view of the cluster: a client and one cache per kind. */
import { ANNOTATION_CONFIG, LABEL_RENDER_SERVICE } from '../api/names.ts';
import type { RenderServiceResource } from '../api/resource.ts';
import { Informer } from '../kube/informer.ts';
import { type Kind, kinds } from '../kube/kinds.ts';
import { cpuCores } from '../kube/pod-metrics.ts';
import type { Rest } from '../kube/rest.ts';
import type { KubeObject } from '../kube/types.ts';
import type { PodStatus } from './pods.ts';

/** Kinds of which a RenderService owns objects that the operator writes. */
const OWNED_KINDS = [
  kinds.serviceAccount,
  kinds.configMap,
  kinds.service,
  kinds.podDisruptionBudget,
  kinds.networkPolicy,
  kinds.deployment,
] as const;

export class Cluster {
  readonly rest: Rest;
  readonly renderServices: Informer<KubeObject & RenderServiceResource>;
  readonly pods: Informer;
  readonly replicaSets: Informer;
  readonly #owned: Map<string, Informer>;

  /** @param namespace the only namespace to work in, or undefined for all */
  constructor(rest: Rest, namespace: string | undefined, onError: (kind: Kind, error: unknown) => void) {
    this.rest = rest;
    const labelSelector = LABEL_RENDER_SERVICE; // the label exists, with whatever value
    this.renderServices = new Informer({
      rest,
      kind: kinds.renderService,
      namespace,
      onError,
      reduce: withoutManagedFields,
    });
    this.pods = new Informer({ rest, kind: kinds.pod, namespace, labelSelector, onError, reduce: reducePod });
    this.replicaSets = new Informer({
      rest,
      kind: kinds.replicaSet,
      namespace,
      labelSelector,
      onError,
      reduce: reduceReplicaSet,
    });
    this.#owned = new Map(
      OWNED_KINDS.map((kind) => [kind.kind, new Informer({ rest, kind, namespace, labelSelector, onError })]),
    );
  }

  /** Cache of an owned kind. */
  owned(kind: string): Informer {
    const informer = this.#owned.get(kind);
    if (informer === undefined) throw new Error(`no cache for kind ${kind}`);
    return informer;
  }

  /** Pods of a RenderService without those that are on their way out. */
  podsOf(namespace: string, name: string): KubeObject[] {
    return this.pods
      .list(namespace)
      .filter(({ metadata }) => metadata.labels?.[LABEL_RENDER_SERVICE] === name && !metadata.deletionTimestamp);
  }

  /** Calls `enqueue` with the key of the RenderService that a change is about. Nothing else happens in an event. */
  onChange(enqueue: (key: string) => void): void {
    this.renderServices.onChange(({ metadata }) => enqueue(`${metadata.namespace}/${metadata.name}`));
    for (const informer of [this.pods, this.replicaSets, ...this.#owned.values()]) {
      informer.onChange(({ metadata }) => {
        const name = metadata.labels?.[LABEL_RENDER_SERVICE];
        if (name) enqueue(`${metadata.namespace}/${name}`);
      });
    }
  }

  /** Resolves when all caches are filled. */
  async start(): Promise<void> {
    await Promise.all(this.#all().map((informer) => informer.start()));
  }

  async stop(): Promise<void> {
    await Promise.all(this.#all().map((informer) => informer.stop()));
  }

  #all(): Informer[] {
    return [this.renderServices as unknown as Informer, this.pods, this.replicaSets, ...this.#owned.values()];
  }
}

function withoutManagedFields(object: KubeObject): KubeObject {
  const { managedFields: _unused, ...metadata } = object.metadata;
  return { ...object, metadata };
}

/** Of a pod only what status needs: a fleet of 10,000 pods must fit into the operator's memory. */
function reducePod({ apiVersion, kind, metadata, spec, status }: KubeObject): KubeObject {
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
  const workers = (spec?.containers ?? []).filter(({ name }) => /^worker-[0-9]+$/.test(name));
  return Object.fromEntries(
    workers.map(({ name, resources }) => [name, cpuCores(resources?.requests?.cpu) ?? 0] as const),
  );
}

/** Of a ReplicaSet only which ConfigMap its pods mount. */
function reduceReplicaSet({ apiVersion, kind, metadata, spec }: KubeObject): KubeObject {
  const { name, namespace, uid, resourceVersion, labels, ownerReferences } = metadata;
  const template = (spec as { template?: { metadata?: { annotations?: Record<string, string> } } }).template;
  const config = template?.metadata?.annotations?.[ANNOTATION_CONFIG];
  return {
    apiVersion,
    kind,
    metadata: { name, namespace, uid, resourceVersion, labels, ownerReferences },
    ...(config !== undefined && { config }),
  };
}
