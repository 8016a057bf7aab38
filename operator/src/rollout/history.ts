/** Which earlier revisions are remembered: each has a Deployment without pods, and the configuration that it needs. */
import type { Revision } from './next-replicas.ts';

/** Beside the one that is asked for. */
const HISTORY_MAX = 2;

/**
 * Revisions that nobody can need any more. Those that were all there once stay before those that never were.
 * @param others all but the one that is asked for, as they are
 */
export function forgotten(others: (Revision & { pods: number })[]): string[] {
  const order = others.toSorted(
    (one, other) => Number(other.wasComplete) - Number(one.wasComplete) || other.number - one.number,
  );
  return order
    .slice(HISTORY_MAX)
    .filter(({ replicas, pods, retiredMs }) => replicas === 0 && pods === 0 && retiredMs !== undefined)
    .map(({ id }) => id);
}
