/**
 * A fleet as the recommender wants to see it: pods from the cache, CPU from the Metrics API, the rest from the pods.
 */
import type { PodReading } from '../autoscale/measure.ts';
import type { KubeObject } from '../kube/types.ts';
import type { PodMetrics } from './metrics.ts';
import type { PodSample } from './sample.ts';
import type { PodStatus } from './status.ts';

export interface ReadingSources {
  /** Undefined when the Metrics API was not asked or has not answered. */
  metrics: ReadonlyMap<string, PodMetrics> | undefined;
  sampleOf: (pod: KubeObject) => PodSample | undefined;
  /** Requests that one worker takes at a time, where its pod does not say how many that is now. */
  concurrency: number;
  /** By the wall clock, as the times in pods are. */
  wallMs: number;
}

/** Reading of one pod. Only worker containers count: a proxy that is busy is no reason for more workers. */
export function podReading(pod: KubeObject, { metrics, sampleOf, concurrency, wallMs }: ReadingSources): PodReading {
  const { conditions = [], containerStatuses = [] } = (pod.status ?? {}) as PodStatus;
  const is = (wanted: string, value: string) =>
    conditions.some(({ type, status }) => type === wanted && status === value);
  const own = metrics?.get(pod.metadata.name);
  const sample = sampleOf(pod);
  const workers = Object.entries((pod.workerCores ?? {}) as Record<string, number>).map(([name, cores]) => {
    const startedAt = containerStatuses.find((container) => container.name === name)?.state?.running?.startedAt;
    const used = own?.coresByContainer.get(name);
    const worker = sample?.workers.find((worker) => worker.name === name);
    const places = worker && (worker.places ?? concurrency);
    return {
      ageMs: startedAt ? wallMs - Date.parse(startedAt) : Number.POSITIVE_INFINITY,
      cpu: used === undefined || !(cores > 0) ? undefined : used / cores,
      occupancy: worker && places && (worker.blocked ? 1 : worker.busy / places),
      places,
    };
  });
  return {
    name: pod.metadata.uid ?? pod.metadata.name,
    state: is('Ready', 'True') ? 'ready' : is('PodScheduled', 'False') ? 'stuck' : 'starting',
    workers,
    takenMs: own?.takenMs,
    refusedTotal: sample && sample.queueFullTotal + sample.queueTimeoutTotal,
  };
}
