/** Quantiles of what one histogram of Prometheus has counted between two looks at it. Computes only. */
import type { Exposition } from '../../src/pods/exposition.ts';

/** How many were at most so long, by bound in seconds. */
export type Buckets = Map<number, number>;

export function bucketsOf(page: Exposition, metric: string, worker: string): Buckets {
  const buckets: Buckets = new Map();
  for (const { labels, value } of page.all(`${metric}_bucket`, { worker })) {
    const bound = labels.le === '+Inf' ? Number.POSITIVE_INFINITY : Number(labels.le);
    buckets.set(bound, (buckets.get(bound) ?? 0) + value);
  }
  return buckets;
}

/**
 * @param before an earlier look; one with higher counts is of a process that has ended, and is passed over
 * @returns milliseconds, evenly spread within a bucket; undefined when nothing was counted
 */
export function quantileMs(quantile: number, now: Buckets, before: Buckets = new Map()): number | undefined {
  const total = (buckets: Buckets) => buckets.get(Number.POSITIVE_INFINITY) ?? 0;
  const base = total(before) <= total(now) ? before : new Map<number, number>();
  const all = total(now) - total(base);
  if (!(all > 0)) return undefined;
  let [lowS, lowCount] = [0, 0];
  for (const [bound, value] of [...now].sort(([a], [b]) => a - b)) {
    const count = value - (base.get(bound) ?? 0);
    if (count >= quantile * all) {
      if (bound === Number.POSITIVE_INFINITY) return 1000 * lowS;
      return 1000 * (lowS + ((bound - lowS) * (quantile * all - lowCount)) / (count - lowCount || 1));
    }
    [lowS, lowCount] = [bound, count];
  }
  return 1000 * lowS;
}

/** Of values that are all known. */
export function quantileOf(quantile: number, values: number[]): number | undefined {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(quantile * sorted.length))];
}
