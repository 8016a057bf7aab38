/** Figures of a page of metrics of the operator. Computes only. */

/** The value of a metric without labels. */
export function figure(page: string, name: string): number | undefined {
  const [, value] = new RegExp(`^${name} (\\S+)$`, 'm').exec(page) ?? [];
  return value === undefined ? undefined : Number(value);
}

/** What was written, and how often. The Lease is not among it. */
export function operatorWritesIn(page: string): [what: string, count: number][] {
  const found = page.matchAll(/^corelane_operator_writes_total\{what="([^"]*)"\} ([0-9]+)$/gm);
  return [...found].map(([, what = '', count]) => [what, Number(count)]);
}

/** Lines about RenderServices of these namespaces. */
export function linesAbout(page: string, namespaces: string[]): string[] {
  return page.split('\n').filter((line) => namespaces.some((one) => line.includes(`namespace="${one}"`)));
}
