/** Pods that there is no room for: no node has what they ask for, or a quota of the namespace is used up. */
import type { KubeObject } from '../kube/types.ts';
import { hasEnded, type PodStatus, statusOf } from './status.ts';

/**
 * How many pods of a Deployment find no room, and would not if those that are on their way out were gone.
 * @param pods of the Deployment
 * @param leaving of the service, pods that are on their way out
 */
export function podsWithoutRoom(deployment: KubeObject | undefined, pods: KubeObject[], leaving: KubeObject[]): number {
  if (!deployment) return 0;
  const unscheduled = pods.filter((pod) =>
    statusOf(pod).conditions?.some(
      ({ type, status, reason }) => type === 'PodScheduled' && status === 'False' && reason === 'Unschedulable',
    ),
  );
  const going = leaving.filter((pod) => !hasEnded(pod));
  return Math.max(0, unscheduled.length + refusedBy(deployment) - going.length);
}

/** Pods that a quota has no room for. */
function refusedBy({ spec, status }: KubeObject): number {
  const { conditions = [], replicas = 0 } = (status ?? {}) as PodStatus & { replicas?: number };
  const isRefused = conditions.some(
    ({ type, status: is, message = '' }) =>
      type === 'ReplicaFailure' && is === 'True' && /exceeded quota/.test(message),
  );
  const { replicas: wanted = 0 } = (spec ?? {}) as { replicas?: number };
  return isRefused ? Math.max(0, wanted - replicas) : 0;
}
