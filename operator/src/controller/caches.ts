/** What the operator knows of the cluster: one cache per kind, and the client that fills them. */
import { ANNOTATION_RETIRED, LABEL_RENDER_SERVICE } from '../api/names.ts';
import type { RenderServiceResource, ResourceMetadata } from '../api/resource.ts';
import { type Cache, NamespacesCache } from '../kube/cache.ts';
import { Informer, type InformerOptions } from '../kube/informer.ts';
import { type Kind, kinds } from '../kube/kinds.ts';
import { controllerOf } from '../kube/owner.ts';
import type { Rest } from '../kube/rest.ts';
import type { KubeObject } from '../kube/types.ts';
import { isRevisionOf } from '../plan/own-deployments.ts';
import { hasEnded } from '../pods/status.ts';
import { reducePod, reduceReplicaSet, withoutManagedFields } from './cached-parts.ts';
import { reduceOwned } from './owned-parts.ts';

/** Kinds of which a RenderService owns objects that the operator writes. */
const OWNED_KINDS = [
  kinds.configMap,
  kinds.service,
  kinds.podDisruptionBudget,
  kinds.networkPolicy,
  kinds.deployment,
] as const;

export class Caches {
  readonly rest: Rest;
  readonly renderServices: Cache<KubeObject & RenderServiceResource>;
  readonly pods: Cache;
  readonly replicaSets: Cache;
  readonly #owned: Map<string, Cache>;

  /** @param namespaces the only ones to work in; none: all */
  constructor(rest: Rest, namespaces: string[], onError: (kind: Kind, error: unknown) => void) {
    this.rest = rest;
    const cache = <T extends KubeObject>(
      kind: Kind,
      options: Pick<InformerOptions, 'reduce' | 'labelSelector'>,
    ): Cache<T> => {
      const informer = (namespace?: string) => new Informer<T>({ rest, kind, namespace, onError, ...options });
      return namespaces.length > 0 ? new NamespacesCache(kind, namespaces, informer) : informer();
    };
    const labelSelector = LABEL_RENDER_SERVICE; // the label exists, with whatever value
    this.renderServices = cache(kinds.renderService, { reduce: withoutManagedFields });
    this.pods = cache(kinds.pod, { labelSelector, reduce: reducePod });
    this.replicaSets = cache(kinds.replicaSet, { labelSelector, reduce: reduceReplicaSet });
    this.#owned = new Map(OWNED_KINDS.map((kind) => [kind.kind, cache(kind, { labelSelector, reduce: reduceOwned })]));
  }

  /** Cache of an owned kind. */
  owned(kind: string): Cache {
    const cache = this.#owned.get(kind);
    if (cache === undefined) throw new Error(`no cache for kind ${kind}`);
    return cache;
  }

  /**
   * Pods of a RenderService without those that are on their way out, or have ended: the pod of an eviction or of a node
   * that was shut down stays as an object, for people to read.
   */
  podsOf(namespace: string, name: string): KubeObject[] {
    return this.#podsOf(namespace, name).filter((pod) => !pod.metadata.deletionTimestamp && !hasEnded(pod));
  }

  /** Those that are on their way out. */
  leavingPodsOf(namespace: string, name: string): KubeObject[] {
    return this.#podsOf(namespace, name).filter((pod) => pod.metadata.deletionTimestamp);
  }

  /**
   * By name: status names the first pod that has a problem, and after a restart that is to be the same. From the
   * service down, so that it takes no longer where there are ten thousand others.
   */
  #podsOf(namespace: string, name: string): KubeObject[] {
    const uid = this.renderServices.get(namespace, name)?.metadata.uid;
    if (uid === undefined) return [];
    return this.owned('Deployment')
      .ownedBy(namespace, uid)
      .filter((deployment) => isRevisionOf(deployment, name))
      .flatMap((deployment) => controlledBy(deployment, this.replicaSets))
      .flatMap((replicaSet) => controlledBy(replicaSet, this.pods))
      .sort((one, other) => (one.metadata.name < other.metadata.name ? -1 : 1));
  }

  /** Likewise, without pods of a revision that rests: these get no requests. */
  servingPodsOf(namespace: string, name: string): KubeObject[] {
    return this.podsOf(namespace, name).filter((pod) => {
      const { annotations = {} } = this.deploymentOf(pod)?.metadata ?? {};
      return annotations[ANNOTATION_RETIRED] === undefined;
    });
  }

  /**
   * The RenderService that a pod is of, by its controllers up to it; undefined for a foreign one. Anybody may write our
   * label on a pod.
   */
  ownerOf(pod: KubeObject): (KubeObject & RenderServiceResource) | undefined {
    const deployment = this.deploymentOf(pod);
    const owner = deployment && controllerIn(deployment, this.renderServices);
    return owner && isRevisionOf(deployment, owner.metadata.name) ? owner : undefined;
  }

  /** The Deployment that a pod is of; undefined for one of something else. */
  deploymentOf(pod: KubeObject): KubeObject | undefined {
    const replicaSet = controllerIn(pod, this.replicaSets);
    return replicaSet && controllerIn(replicaSet, this.owned('Deployment'));
  }

  /** Deployments of a RenderService, one for each revision; no copies of such. */
  deploymentsOf({ namespace, name, uid }: Pick<ResourceMetadata, 'namespace' | 'name' | 'uid'>): KubeObject[] {
    const deployments = this.owned('Deployment').ownedBy(namespace, uid);
    return deployments.filter((one) => !one.metadata.deletionTimestamp && isRevisionOf(one, name));
  }

  /**
   * Calls `enqueue` with the key of the RenderService that a change is about, and whether it is what a user has
   * changed: somebody waits for that. Nothing else happens in an event.
   */
  onChange(enqueue: (key: string, isUrgent: boolean) => void): void {
    this.renderServices.onChange((resource, before) => {
      const { namespace, name } = resource.metadata;
      enqueue(`${namespace}/${name}`, isOfUser(resource as KubeObject & RenderServiceResource, before));
    });
    for (const informer of [this.pods, this.replicaSets, ...this.#owned.values()]) {
      informer.onChange(({ metadata }) => {
        const name = metadata.labels?.[LABEL_RENDER_SERVICE];
        if (name) enqueue(`${metadata.namespace}/${name}`, false);
      });
    }
  }

  /** Resolves when all caches are filled. */
  async start(): Promise<void> {
    await Promise.all(this.#all().map((informer) => informer.start()));
  }

  /**
   * Lists RenderServices and Deployments anew, and resolves when they are as the API server had them since the call. A
   * watch may be late by any time without a sign of it: what it has not said yet, the process that led before may have
   * carried out, and to plan from the RenderService of before would undo that.
   */
  async refresh(): Promise<void> {
    await Promise.all([this.renderServices.refresh(), this.owned('Deployment').refresh()]);
  }

  stop(): void {
    for (const cache of this.#all()) cache.stop();
  }

  /** Why one of them is not filled yet, or not anew, in one line; undefined when all are. */
  get obstacle(): string | undefined {
    for (const { obstacle } of this.#all()) if (obstacle !== undefined) return obstacle;
    return undefined;
  }

  #all(): Pick<Cache, 'onChange' | 'start' | 'stop' | 'obstacle'>[] {
    return [this.renderServices, this.pods, this.replicaSets, ...this.#owned.values()];
  }
}

/** Whether a RenderService has a spec that no status speaks of yet, or other annotations than before. */
function isOfUser(resource: RenderServiceResource, before: KubeObject | undefined): boolean {
  const annotationsOf = ({ annotations = {} }: { annotations?: object | undefined }) => JSON.stringify(annotations);
  return (
    hasNewSpec(resource) || (before && annotationsOf(before.metadata) !== annotationsOf(resource.metadata)) === true
  );
}

/** Whether no status speaks of its spec yet. */
export function hasNewSpec({ metadata, status }: Pick<RenderServiceResource, 'metadata' | 'status'>): boolean {
  return status?.observedGeneration !== metadata.generation;
}

/** Objects of a kind that `owner` controls. */
function controlledBy<T extends KubeObject>(owner: KubeObject, cache: Cache<T>): T[] {
  const { namespace = '', name, uid = '' } = owner.metadata;
  return cache.ownedBy(namespace, uid).filter((one) => {
    const reference = controllerOf(one);
    return reference?.kind === owner.kind && reference.name === name;
  });
}

/** The controller of `object`, if it is of this kind and there. */
function controllerIn<T extends KubeObject>(object: KubeObject, cache: Cache<T>): T | undefined {
  const reference = controllerOf(object);
  if (reference?.kind !== cache.kind.kind) return undefined;
  const found = cache.get(object.metadata.namespace ?? '', reference.name);
  return found?.metadata.uid === reference.uid ? found : undefined;
}
