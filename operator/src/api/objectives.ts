/** Objectives as numbers: what metrics export and the planner checks. */
import { durationMs } from './scalars.ts';
import type { ObjectivesSpec } from './spec/objectives.ts';

/**
 * Upper bounds of the pods' histogram corelane_request_duration_seconds, in seconds: those of sidecar/nginx/metrics.c,
 * as sidecar/test/metrics.test.ts sees to.
 */
export const BUCKETS_S = [0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];

/** Requests up to the bound `leS` count with this weight. */
interface Weight {
  leS: number;
  weight: number;
}

export interface LatencyObjective {
  /** p50, p90, p95 or p99. */
  name: string;
  /** 0.99 for p99. */
  quantile: number;
  limitS: number;
  /** The share of requests within the limit is the sum of these buckets, each with its weight, over all requests. */
  weights: Weight[];
}

export interface Objectives {
  /** 0.999 for 99.9 %. */
  availability?: number;
  latency: LatencyObjective[];
}

/** Objectives of a checked `spec.objectives`. */
export function objectivesOf({ availability, latency = {} }: ObjectivesSpec = {}): Objectives {
  const times = Object.entries(latency).filter((entry): entry is [string, string] => entry[1] !== undefined);
  return {
    // 99.9 / 100 is not always what one would write.
    ...(availability !== undefined && { availability: Number((availability / 100).toFixed(5)) }),
    latency: times.map(([name, text]) => {
      const limitS = durationMs(text) / 1000;
      return { name, quantile: Number(name.slice(1)) / 100, limitS, weights: weightsOf(limitS) };
    }),
  };
}

/**
 * A limit between two buckets takes a part of the upper one, by where it stands: 400 ms is 0.4 of those up to 250 ms
 * and 0.6 of those up to 500 ms. histogram_quantile does the same, so its p99 is above the limit where this share is
 * below 0.99.
 */
function weightsOf(limitS: number): Weight[] {
  const index = BUCKETS_S.findIndex((bound) => limitS <= bound);
  const upper = BUCKETS_S[index] as number;
  if (limitS === upper) return [{ leS: upper, weight: 1 }];
  const lower = BUCKETS_S[index - 1] ?? 0;
  const weight = Number(((limitS - lower) / (upper - lower)).toFixed(6));
  const share = { leS: upper, weight };
  // Nothing is faster than 0.
  return lower === 0 ? [share] : [{ leS: lower, weight: Number((1 - weight).toFixed(6)) }, share];
}
