/** What the operator knows of the cluster: one cache per kind, and the client that fills them. */
import { LABEL_RENDER_SERVICE } from '../api/names.ts';
import type { RenderServiceResource } from '../api/resource.ts';
import { type Cache, NamespacesCache } from '../kube/cache.ts';
import { Informer, type InformerOptions } from '../kube/informer.ts';
import { type Kind, kinds } from '../kube/kinds.ts';
import type { Rest } from '../kube/rest.ts';
import type { KubeObject } from '../kube/types.ts';
import { hasEnded } from '../pods/status.ts';
import { reducePod, reduceReplicaSet, withoutForeignContent, withoutManagedFields } from './cached-parts.ts';

/** Kinds of which a RenderService owns objects that the operator writes. */
const OWNED_KINDS = [
  kinds.serviceAccount,
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
    this.#owned = new Map(
      OWNED_KINDS.map((kind) => [kind.kind, cache(kind, { labelSelector, reduce: withoutForeignContent })]),
    );
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
    return this.pods
      .list(namespace)
      .filter((pod) => !pod.metadata.deletionTimestamp && !hasEnded(pod) && this.ownerOf(pod)?.metadata.name === name);
  }

  /**
   * The RenderService that a pod is of, by its controllers up to it; undefined for a foreign one. Anybody may write our
   * label on a pod.
   */
  ownerOf(pod: KubeObject): (KubeObject & RenderServiceResource) | undefined {
    const replicaSet = controllerOf(pod, this.replicaSets);
    const deployment = replicaSet && controllerOf(replicaSet, this.owned('Deployment'));
    return deployment && controllerOf(deployment, this.renderServices);
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

  stop(): void {
    for (const cache of this.#all()) cache.stop();
  }

  #all(): Pick<Cache, 'onChange' | 'start' | 'stop'>[] {
    return [this.renderServices, this.pods, this.replicaSets, ...this.#owned.values()];
  }
}

/** The controller of `object`, if it is of this kind and there. */
function controllerOf<T extends KubeObject>({ metadata }: KubeObject, cache: Cache<T>): T | undefined {
  const reference = metadata.ownerReferences?.find(({ controller }) => controller);
  if (reference?.kind !== cache.kind.kind) return undefined;
  const found = cache.get(metadata.namespace ?? '', reference.name);
  return found?.metadata.uid === reference.uid ? found : undefined;
}
