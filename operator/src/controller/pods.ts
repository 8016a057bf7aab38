/** What the pods of a RenderService tell: how many workers run, and what keeps a pod from running. */
import type { KubeObject } from '../kube/types.ts';

interface ContainerStatus {
  name: string;
  ready: boolean;
  state?: { waiting?: { reason?: string; message?: string }; running?: { startedAt?: string | null } };
}

/** The part of a pod's status that the operator keeps. */
export interface PodStatus {
  phase?: string;
  podIP?: string;
  conditions?: { type: string; status: string; reason?: string; message?: string }[];
  initContainerStatuses?: ContainerStatus[];
  containerStatuses?: ContainerStatus[];
}

/** Reasons for waiting that are the normal course of a start. */
const NORMAL_WAITS = new Set(['ContainerCreating', 'PodInitializing']);

function statusOf({ status }: KubeObject): PodStatus {
  return (status ?? {}) as PodStatus;
}

/** Address of a pod that runs. */
export function podAddress(pod: KubeObject): string | undefined {
  const { phase, podIP } = statusOf(pod);
  return phase === 'Running' && podIP ? podIP : undefined;
}

/** Workers in the pods that exist: all, and those that run in a ready pod. */
export function countWorkers(pods: KubeObject[]): { total: number; ready: number } {
  const counts = pods.map((pod) => {
    const { conditions = [], containerStatuses = [] } = statusOf(pod);
    const workers = containerStatuses.filter(({ name }) => /^worker-[0-9]+$/.test(name));
    const isReady = conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
    return { total: workers.length, ready: isReady ? workers.filter((worker) => worker.ready).length : 0 };
  });
  return {
    total: counts.reduce((sum, { total }) => sum + total, 0),
    ready: counts.reduce((sum, count) => sum + count.ready, 0),
  };
}

/** A sentence about the first pod that cannot run, or undefined: what a user would look for with kubectl describe. */
export function podProblem(pods: KubeObject[]): string | undefined {
  for (const pod of pods) {
    const { conditions = [], initContainerStatuses = [], containerStatuses = [] } = statusOf(pod);
    const unscheduled = conditions.find(({ type, status }) => type === 'PodScheduled' && status === 'False');
    if (unscheduled)
      return `pod ${pod.metadata.name} cannot be scheduled: ${unscheduled.message ?? unscheduled.reason}`;
    for (const { name, state } of [...initContainerStatuses, ...containerStatuses]) {
      const { reason, message } = state?.waiting ?? {};
      if (!reason || NORMAL_WAITS.has(reason)) continue;
      // The message of a crash loop has its growing back-off: it would change the status at every restart.
      const detail = message && reason !== 'CrashLoopBackOff' ? ` (${message})` : '';
      return `container ${name} of pod ${pod.metadata.name}: ${reason}${detail}`;
    }
  }
  return undefined;
}
