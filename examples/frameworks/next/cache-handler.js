/**
 * Next keeps no pages: each worker would have its own, and could purge no other's. The cache of the pod keeps them, and
 * a purge reaches all pods (docs/frameworks/next.md).
 */
const PURGE = 'http://127.0.0.1:9100/purge';
/** What stands before a path in the tag that revalidatePath makes of it. */
const PATH = '_N_T_';

/** What Corelane purges for a tag: its pages, a path, or all pages if the path is a pattern such as /products/[id]. */
function itemOf(tag) {
  const text = tag.replaceAll(/[^!-+\--~]/gu, encodeURIComponent);
  if (!text.startsWith(PATH)) return `tag:${text}`;
  const path = text.slice(PATH.length);
  return /\[|\/(page|layout)$/.test(path) ? '*' : path;
}

module.exports = class CacheHandler {
  async get() {
    return null;
  }

  async set() {}

  /** Next calls this for revalidateTag and for revalidatePath. */
  async revalidateTag(tags) {
    const headers = { 'X-Corelane-Purge': [tags].flat().map(itemOf).join(', ') };
    const answer = await fetch(PURGE, { method: 'POST', headers, cache: 'no-store' });
    if (!answer.ok) throw new Error(`Corelane did not purge ${headers['X-Corelane-Purge']}: ${await answer.text()}`);
  }

  resetRequestCache() {}
};
