/** What the pods of a RenderService tell: how many workers run. problems.ts tells what keeps a pod from running. */
import { HAPROXY_CONTAINER, isWorkerName, NGINX_CONTAINER } from '../api/names.ts';
import type { KubeObject } from '../kube/types.ts';

interface ContainerStatus {
  name: string;
  ready: boolean;
  /** Of a proxy: how often kubelet has started it again. */
  restartCount?: number;
  state?: {
    waiting?: { reason?: string; message?: string };
    running?: { startedAt?: string | null };
    terminated?: Ended;
  };
  lastState?: { terminated?: Ended };
}

/** How a container has ended. */
export interface Ended {
  reason?: string | undefined;
  exitCode?: number | undefined;
  message?: string | undefined;
}

/** The part of a pod's status that the operator keeps. */
export interface PodStatus {
  phase?: string;
  podIP?: string;
  conditions?: { type: string; status: string; reason?: string; message?: string; lastTransitionTime?: string }[];
  initContainerStatuses?: ContainerStatus[];
  containerStatuses?: ContainerStatus[];
}

/** Status of a pod, as far as it is kept. */
export function statusOf({ status }: KubeObject): PodStatus {
  return (status ?? {}) as PodStatus;
}

/** Whether a pod will never run again. */
export function hasEnded(pod: KubeObject): boolean {
  return ['Failed', 'Succeeded'].includes(statusOf(pod).phase ?? '');
}

/** Address of a pod that runs. */
export function podAddress(pod: KubeObject): string | undefined {
  const { phase, podIP } = statusOf(pod);
  return phase === 'Running' && podIP ? podIP : undefined;
}

/** A proxy that ends once may have met something; kubelet waits for 10 s, and for 20 s when it ends again. */
const RESTARTS_MIN = 2;
/** After this time kubelet starts a container again as if it were the first time. */
const FORGOTTEN_MS = 600_000;

/**
 * Whether a proxy ends again and again, in a pod that is to stay. Between two ends it runs, and its pod may be ready:
 * that alone says nothing.
 */
export function proxyEndsAgain(pods: KubeObject[], nowMs: number): boolean {
  return pods.some((pod) => {
    if (pod.metadata.deletionTimestamp) return false;
    const { initContainerStatuses = [] } = statusOf(pod);
    return initContainerStatuses.some(({ name, restartCount = 0, state }) => {
      if (!isProxyName(name) || restartCount < RESTARTS_MIN) return false;
      const since = state?.running?.startedAt;
      return !since || nowMs - Date.parse(since) < FORGOTTEN_MS;
    });
  });
}

const isProxyName = (name: string) => name === HAPROXY_CONTAINER || name === NGINX_CONTAINER;

/** Names of the workers that a pod was made with: worker-0, worker-1, ... */
export function workersOf({ workerCores }: KubeObject): string[] {
  return Object.keys((workerCores ?? {}) as Record<string, number>);
}

/** Workers in the pods that exist: all, and those that run in a ready pod. */
export function countWorkers(pods: KubeObject[]): { total: number; ready: number } {
  const counts = pods.map((pod) => {
    const { conditions = [], containerStatuses = [] } = statusOf(pod);
    const workers = containerStatuses.filter(({ name }) => isWorkerName(name));
    const isReady = conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
    return { total: workers.length, ready: isReady ? workers.filter((worker) => worker.ready).length : 0 };
  });
  return {
    total: counts.reduce((sum, { total }) => sum + total, 0),
    ready: counts.reduce((sum, count) => sum + count.ready, 0),
  };
}
