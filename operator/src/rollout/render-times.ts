/**
 * Times of renders, counted in buckets whose borders are an eighth of an octave apart: 1 ms, 1.09 ms, 1.19 ms and so
 * on, so that what takes half as long again as usual is told from it. Pods count like that
 * (sidecar/haproxy/canary/judged.lua): a bucket has what is no longer than its border and longer than the one before;
 * the last one has all that is longer than that, too.
 */

/** Up to 131 s; no render that is waited for takes longer. */
export const TIME_BUCKETS = 137;
const PER_OCTAVE = 8;

/** Of whom too few have been seen nobody knows what is slow. */
const LEARNT_MIN = 100;
/** Beyond that what was seen first counts for less and less. */
const LEARNT_MAX = 10_000;
const USUAL = 0.95;
/** Nobody minds less, however quick the renders are. */
const NOTICED_MS = 5;

/** How many renders each bucket has; those at the end may be missing. */
export type RenderTimes = readonly number[];

/** The longest time of a bucket. */
export function borderMs(bucket: number): number {
  return 2 ** (bucket / PER_OCTAVE);
}

export function countOf(times: RenderTimes): number {
  return times.reduce((sum, count) => sum + count, 0);
}

/** How many are in higher buckets than this one. */
export function countAbove(times: RenderTimes, bucket: number): number {
  return countOf(times.slice(bucket + 1));
}

/** What is known of renders by now, with those of another look. */
export function learnt(before: RenderTimes, more: RenderTimes): number[] {
  const all = Array.from({ length: TIME_BUCKETS }, (_unused, bucket) => (before[bucket] ?? 0) + (more[bucket] ?? 0));
  const fade = Math.min(1, LEARNT_MAX / Math.max(1, countOf(all)));
  return fade < 1 ? all.map((count) => count * fade) : all;
}

/**
 * The last bucket that is not slow: up to `factor` times what 95 of 100 renders of the stable side take, and 5 ms more
 * than that at least. Undefined where that is not known yet, or nothing can be slower.
 */
export function slowBucket(stable: RenderTimes, factor: number): number | undefined {
  const total = countOf(stable);
  if (total < LEARNT_MIN) return undefined;
  let seen = 0;
  const usual = stable.findIndex((count) => {
    seen += count;
    return seen >= USUAL * total;
  });
  const longestMs = Math.max(borderMs(usual) * factor, borderMs(usual) + NOTICED_MS);
  const bucket = Math.ceil(PER_OCTAVE * Math.log2(longestMs) - 1e-9);
  return bucket < TIME_BUCKETS - 1 ? bucket : undefined;
}
