/** Takes pods of a revision that rests out of the Service, and puts them into it again when that is asked for. */
import { LABEL_REVISION, LABEL_SERVING } from '../api/names.ts';
import { kinds, objectPath } from '../kube/kinds.ts';
import { isNotFound, MERGE_PATCH } from '../kube/rest.ts';
import type { KubeObject } from '../kube/types.ts';
import type { Caches } from './caches.ts';

/** At a time. */
const CONCURRENCY = 16;

/**
 * Gives these pods the label by which the Service tells who gets requests, where they have another one.
 * @param may whether a pod may be written now
 * @returns how many were
 */
export async function label(
  { rest, pods: cache }: Caches,
  pods: KubeObject[],
  isServing: boolean,
  may: (pod: KubeObject) => boolean,
): Promise<number> {
  const value = String(isServing);
  const others = pods
    .filter(({ metadata: { labels } }) => labels?.[LABEL_REVISION] && labels[LABEL_SERVING] !== value)
    .filter(may);
  const waiting = others.values();
  const labelNext = async () => {
    for (const { metadata } of waiting) {
      const { namespace = '', name, uid } = metadata;
      try {
        // With the uid the API server refuses when the pod is another one by now.
        const body = { metadata: { uid, labels: { [LABEL_SERVING]: value } } };
        const patch = { contentType: MERGE_PATCH, body };
        const path = objectPath(kinds.pod, namespace, name);
        cache.remember(await rest.request<KubeObject>('PATCH', path, patch));
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, labelNext));
  return others.length;
}
