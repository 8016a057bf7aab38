/** Quantiles of what a histogram of Prometheus has counted between two looks at it. Computes only. */
import type { Exposition, Labels } from '../src/pods/exposition.ts';

/** How many were at most so long, by bound in seconds. */
export type Buckets = Map<number, number>;

/** Those of one histogram, of all its series that have these labels. */
export function bucketsOf(page: Exposition, metric: string, labels: Labels = {}): Buckets {
  const buckets: Buckets = new Map();
  for (const { labels: own, value } of page.all(`${metric}_bucket`, labels)) {
    const bound = own.le === '+Inf' ? Number.POSITIVE_INFINITY : Number(own.le);
    buckets.set(bound, (buckets.get(bound) ?? 0) + value);
  }
  return buckets;
}

/** What came between two looks; counts that have become less are of a process that has been started again. */
export function bucketsSince(now: Buckets, before: Buckets = new Map()): Buckets {
  if (countOf(before) > countOf(now)) return now;
  return new Map([...now].map(([bound, count]) => [bound, Math.max(0, count - (before.get(bound) ?? 0))]));
}

/** Of several pods together. */
export function addBuckets(all: Buckets[]): Buckets {
  const sum: Buckets = new Map();
  for (const buckets of all) for (const [bound, count] of buckets) sum.set(bound, (sum.get(bound) ?? 0) + count);
  return sum;
}

export function countOf(buckets: Buckets): number {
  return buckets.get(Number.POSITIVE_INFINITY) ?? 0;
}

/** Milliseconds, evenly spread within a bucket; undefined when nothing was counted. */
export function quantileMs(quantile: number, buckets: Buckets): number | undefined {
  const all = countOf(buckets);
  if (!(all > 0)) return undefined;
  let [lowS, lowCount] = [0, 0];
  for (const [bound, count] of [...buckets].sort(([a], [b]) => a - b)) {
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
