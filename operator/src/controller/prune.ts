/** Removes owned objects that the plan no longer has. */
import type { RenderService } from '../api/resource.ts';
import { objectPath } from '../kube/kinds.ts';
import { isNotFound } from '../kube/rest.ts';
import type { KubeObject } from '../kube/types.ts';
import type { PlannedObject } from '../plan/index.ts';
import { reduceReplicaSet } from './cached-parts.ts';
import type { Caches } from './caches.ts';
import { deploymentStatus } from './deployment-status.ts';

/**
 * Owned objects beyond the plan. The ConfigMap that pods of an older template need stays as long as a Deployment or a
 * ReplicaSet could start some, and until the Deployment controller has seen the newest templates: before that it may
 * still make a ReplicaSet of an earlier one.
 */
export function superfluous(
  caches: Caches,
  renderService: RenderService,
  planned: PlannedObject[],
  configName: string,
): KubeObject[] {
  const { namespace, uid } = renderService.metadata;
  const wanted = new Set(planned.map(({ kind, metadata }) => `${kind}/${metadata.name}`));
  // Pods that stay as they are have theirs, which the plan cannot make.
  wanted.add(`ConfigMap/${configName}`);
  const deployments = caches.deploymentsOf(renderService.metadata);
  const settled = deployments.every((one) => deploymentStatus(one).observedGeneration === one.metadata.generation);
  const others = ['ConfigMap', 'PodDisruptionBudget', 'NetworkPolicy']
    .flatMap((kind) => caches.owned(kind).ownedBy(namespace, uid))
    .filter(({ metadata }) => !metadata.deletionTimestamp)
    .filter(({ kind, metadata }) => !wanted.has(`${kind}/${metadata.name}`));
  // Whoever has made them: those of the whole namespace are looked at for these only.
  const needed = others.some(isForPods)
    ? neededBy([...caches.replicaSets.list(namespace), ...deployments.map(reduceReplicaSet)])
    : new Set<string>();
  return others.filter((object) => !isForPods(object) || (settled && !needed.has(keyOf(object))));
}

/**
 * Deletes them, each only if it is still the very object that was seen.
 * @param may asked for each that would be deleted
 */
export async function prune(
  caches: Caches,
  objects: KubeObject[],
  may: (object: KubeObject) => boolean,
): Promise<void> {
  if (objects.length === 0) return;
  // The cache of ReplicaSets may lag behind that of Deployments, and a pod without its ConfigMap does not start: the
  // API server is asked.
  const needed = objects.some(isForPods)
    ? neededBy(await caches.replicaSets.listNow(objects[0]?.metadata.namespace ?? ''))
    : new Set<string>();
  for (const object of objects.filter((one) => !needed.has(keyOf(one)))) {
    // Not asked of all beforehand: one that cannot be deleted keeps the others from it, and is the only one tried.
    if (!may(object)) continue;
    const { kind, metadata } = object;
    const informer = caches.owned(kind);
    const { namespace = '', name, uid } = metadata;
    try {
      await caches.rest.request('DELETE', objectPath(informer.kind, namespace, name), {
        body: { preconditions: { uid } },
      });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
    informer.forget(namespace, name);
  }
}

function isForPods({ kind }: KubeObject): boolean {
  return kind === 'ConfigMap';
}

function keyOf({ kind, metadata }: KubeObject): string {
  return `${kind}/${metadata.name}`;
}

/** What pods of these ReplicaSets need. */
function neededBy(replicaSets: KubeObject[]): Set<string> {
  return new Set(replicaSets.flatMap(({ configs }) => (configs as string[]).map((name) => `ConfigMap/${name}`)));
}
