/** How often something was written, by the API server's own count. Computes only. */

/** Writes by resource, of whoever. */
export type Writes = Record<string, number>;

/** Verbs of apiserver_request_total that change something. */
const VERBS = ['POST', 'PUT', 'PATCH', 'APPLY', 'DELETE', 'DELETECOLLECTION'];
/** Not of the fleet: who leads, whether a node lives, and questions that are asked by POST. */
const OTHERS = /^(leases|nodes|tokenreviews|.*accessreviews)$/;
const LINE = /^apiserver_request_total\{([^}]*)\} (\S+)$/;
const LABEL = /(\w+)="([^"]*)"/g;

/** The writes in a page of metrics of the API server that it has not refused: a refused one has changed nothing. */
export function writesIn(page: string): Writes {
  const writes: Writes = {};
  for (const line of page.split('\n')) {
    const [, text, count] = LINE.exec(line) ?? [];
    if (text === undefined) continue;
    const labels = Object.fromEntries([...text.matchAll(LABEL)].map(([, name, value]) => [name, value]));
    const { verb = '', code = '', resource = '', subresource } = labels;
    if (!VERBS.includes(verb) || !code.startsWith('2') || resource === '' || OTHERS.test(resource)) continue;
    if (labels.dry_run) continue;
    const what = subresource ? `${resource}/${subresource}` : resource;
    writes[what] = (writes[what] ?? 0) + Number(count);
  }
  return writes;
}

/** Subtracts two counts of writes: how often each kind of object was written between them. */
export function since(before: Writes, now: Writes): Writes {
  const all = Object.entries(now).map(([what, count]) => [what, count - (before[what] ?? 0)] as const);
  return Object.fromEntries(all.filter(([, count]) => count > 0));
}

export function total(writes: Writes): number {
  return Object.values(writes).reduce((sum, count) => sum + count, 0);
}

/** `12 renderservices/status, 3 pods`, or `none`. */
export function writesText(writes: Writes): string {
  const sorted = Object.entries(writes).toSorted(([, one], [, other]) => other - one);
  return sorted.map(([what, count]) => `${count} ${what}`).join(', ') || 'none';
}
