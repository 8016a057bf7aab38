/** Reads a whole collection, page by page. */
import { collectionPath, type Kind } from './kinds.ts';
import { type Rest, TooLongError } from './rest.ts';
import type { KubeList, KubeObject } from './types.ts';

/** A list is split so that 10,000 pods do not become one answer of 100 MB. */
const PAGE_SIZE = 500;
/**
 * Of one page: 500 ordinary pods are 5 MB. Objects of 1 MB, of whoever has put our label on them, come by a few at a
 * time.
 */
const PAGE_BYTES_MAX = 8 * 1024 ** 2;

/**
 * All objects of a kind, each as `reduce` leaves it, and the resource version from which to watch.
 * @param namespace undefined: all
 * @throws ApiError, or TooLongError when a single object is longer than a page may be
 */
export async function list<T extends KubeObject>(
  rest: Rest,
  kind: Kind,
  namespace: string | undefined,
  labelSelector: string | undefined,
  reduce: (object: KubeObject) => T,
): Promise<{ items: T[]; version: string }> {
  const items: T[] = [];
  let page: KubeList | undefined;
  let limit = PAGE_SIZE;
  do {
    const query = {
      limit: String(limit),
      ...(labelSelector !== undefined && { labelSelector }),
      ...(page?.metadata.continue && { continue: page.metadata.continue }),
    };
    try {
      page = await rest.request<KubeList>('GET', collectionPath(kind, namespace), { query, bytesMax: PAGE_BYTES_MAX });
    } catch (error) {
      if (!(error instanceof TooLongError) || limit === 1) throw error;
      limit = Math.ceil(limit / 8);
      continue;
    }
    limit = Math.min(PAGE_SIZE, 2 * limit);
    // Items of a list carry neither apiVersion nor kind.
    items.push(...page.items.map((item) => reduce({ ...item, apiVersion: kind.apiVersion, kind: kind.kind })));
  } while (!page || page.metadata.continue);
  return { items, version: page.metadata.resourceVersion ?? '' };
}
