/** What many response times add up to. Computes only. */
import { percentile as nearestRank } from '../../e2e/load/stats.mjs';

export interface Latency {
  p50: number;
  p95: number;
  p99: number;
  max: number;
}

/**
 * The nearest-rank percentile of ascending values: the smallest that at least `percent` % do not exceed. NaN without
 * values.
 */
export function percentile(sorted: ArrayLike<number>, percent: number): number {
  return nearestRank(sorted, percent) ?? Number.NaN;
}

export function summarize(values: number[]): Latency {
  const sorted = Float64Array.from(values).sort();
  const at = (percent: number) => percentile(sorted, percent);
  return { p50: at(50), p95: at(95), p99: at(99), max: at(100) };
}

/** The middle value; NaN without values. */
export function median(values: number[]): number {
  return summarize(values).p50;
}
