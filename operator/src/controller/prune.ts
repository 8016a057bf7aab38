/** Removes owned objects that the plan no longer has. */
import type { RenderService } from '../api/resource.ts';
import { objectPath } from '../kube/kinds.ts';
import { isNotFound } from '../kube/rest.ts';
import type { KubeObject } from '../kube/types.ts';
import type { PlannedObject } from '../plan/index.ts';
import type { Cluster } from './cluster.ts';

/**
 * Owned objects beyond the plan. A ConfigMap stays as long as a ReplicaSet could start pods that mount it, and until the
 * Deployment controller has seen the newest template: before that it may still make a ReplicaSet of an earlier one.
 */
export function superfluous(cluster: Cluster, renderService: RenderService, planned: PlannedObject[]): KubeObject[] {
  const { namespace, name, uid } = renderService.metadata;
  const wanted = new Set(planned.map(({ kind, metadata }) => `${kind}/${metadata.name}`));
  const mounted = new Set(cluster.replicaSets.list(namespace).map((replicaSet) => replicaSet.config));
  const { metadata, status } = (cluster.owned('Deployment').get(namespace, name) ?? {}) as Partial<KubeObject>;
  const settled = (status as { observedGeneration?: number } | undefined)?.observedGeneration === metadata?.generation;
  return ['ConfigMap', 'PodDisruptionBudget', 'NetworkPolicy']
    .flatMap((kind) => cluster.owned(kind).list(namespace))
    .filter((object) => object.metadata.ownerReferences?.some((reference) => reference.uid === uid))
    .filter(({ metadata }) => !metadata.deletionTimestamp)
    .filter(({ kind, metadata }) => !wanted.has(`${kind}/${metadata.name}`))
    .filter(({ kind, metadata }) => kind !== 'ConfigMap' || (settled && !mounted.has(metadata.name)));
}

/** Deletes them, each only if it is still the very object that was seen. */
export async function prune(cluster: Cluster, objects: KubeObject[]): Promise<void> {
  for (const { kind, metadata } of objects) {
    const informer = cluster.owned(kind);
    const { namespace = '', name, uid } = metadata;
    try {
      await cluster.rest.request('DELETE', objectPath(informer.kind, namespace, name), {
        body: { preconditions: { uid } },
      });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
    informer.forget(namespace, name);
  }
}
