/** Reads a whole collection, page by page. */
import { collectionPath, type Kind } from './kinds.ts';
import { type Rest, TooLongError } from './rest.ts';
import type { KubeList, KubeObject } from './types.ts';

/**
 * Objects of the first page. How large those of a kind are is not known before: a pod has 20 kB, a configuration 60, an
 * account one.
 */
const FIRST_PAGE_SIZE = 50;
/** What the API server can take from its own cache at a time. */
const PAGE_SIZE_MAX = 500;
/**
 * Of a page, as far as those before tell. As objects of JavaScript it is five times as much, nine kinds are listed at
 * the same time, and 10,000 pods in one answer would be 200 MB.
 */
const PAGE_BYTES = 2 * 1024 ** 2;
/** Objects of 1 MB, of whoever has put our label on them, come by a few at a time. */
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
  let metadata: KubeList['metadata'] | undefined;
  let limit = FIRST_PAGE_SIZE;
  do {
    const query = {
      limit: String(limit),
      ...(labelSelector !== undefined && { labelSelector }),
      ...(metadata?.continue && { continue: metadata.continue }),
    };
    let bytes = 0;
    const onBytes = (count: number) => {
      bytes = count;
    };
    try {
      const path = collectionPath(kind, namespace);
      const page = await rest.request<KubeList>('GET', path, { query, bytesMax: PAGE_BYTES_MAX, onBytes });
      metadata = page.metadata;
      // Items of a list carry neither apiVersion nor kind.
      for (const item of page.items) {
        items.push(reduce(Object.assign(item, { apiVersion: kind.apiVersion, kind: kind.kind })));
      }
      limit = nextLimit(limit, bytes / Math.max(1, page.items.length));
    } catch (error) {
      if (!(error instanceof TooLongError) || limit === 1) throw error;
      limit = Math.ceil(limit / 8);
    }
  } while (!metadata || metadata.continue);
  return { items, version: metadata.resourceVersion ?? '' };
}

/** No more than twice as many at a time: those that follow may be larger. */
function nextLimit(limit: number, bytesEach: number): number {
  return Math.max(1, Math.min(PAGE_SIZE_MAX, 2 * limit, Math.ceil(PAGE_BYTES / Math.max(1, bytesEach))));
}
