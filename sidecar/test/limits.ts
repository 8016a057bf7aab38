/** What a pod answers past its limits. */
import type { Pod } from '../../e2e/harness/engine/pod.ts';

/** Status, reason, and when to come back. */
export function error({ status, headers }: Awaited<ReturnType<Pod['get']>>) {
  return [status, headers['x-corelane-error'], headers['retry-after']];
}
