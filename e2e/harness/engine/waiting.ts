/**
 * Waiting in tests. The limits are last resorts, one longer than the other: what the product does by itself (time-outs
 * of the queue and of renders, 120 s in pod.ts) comes first, then a condition that is awaited in vain (150 s), then a
 * request without an answer (200 s), then Jest's own limit (300 s, ../cluster/time-limit.ts). None of them asserts
 * speed.
 */
import { until as untilWithin } from '../../../operator/local/http.ts';

/** `make test-mutants` gives less: there a test that waits in vain has noticed what it should. */
const WAIT_MS = Number(process.env.CORELANE_TEST_WAIT_SECONDS ?? 150) * 1000;
/** Of one request. */
export const ANSWER_MS = 200_000;

/** Waits until `condition` gives something true, and gives that. `what` may tell what there was instead. */
export function until<T>(
  what: string | (() => string),
  condition: () => T | Promise<T>,
  limitMs = WAIT_MS,
): Promise<NonNullable<T>> {
  return untilWithin(what, condition, limitMs);
}
