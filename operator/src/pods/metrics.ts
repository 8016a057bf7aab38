/** What metrics.k8s.io tells about pods: one list call for all pods of a selector. */
import { parseQuantity } from '../api/scalars.ts';
import type { Rest } from '../kube/rest.ts';

/** CPU of one pod's containers, in cores, and when it was taken. */
export interface PodMetrics {
  takenMs: number;
  coresByContainer: Map<string, number>;
}

interface PodMetricsList {
  items: {
    metadata: { name: string };
    timestamp: string;
    containers?: { name: string; usage?: { cpu?: string } }[];
  }[];
}

/** The next round comes soon; a slow answer must not hold it up. */
const TIMEOUT_MS = 5_000;
/**
 * Metrics by the pod's name.
 * @throws ApiError when the Metrics API is not there or does not answer
 */
export async function listPodMetrics(
  rest: Rest,
  namespace: string,
  labelSelector: string,
): Promise<Map<string, PodMetrics>> {
  const path = `/apis/metrics.k8s.io/v1beta1/namespaces/${encodeURIComponent(namespace)}/pods`;
  const { items } = await rest.request<PodMetricsList>('GET', path, {
    query: { labelSelector },
    timeoutMs: TIMEOUT_MS,
  });
  return new Map(
    items.map(({ metadata, timestamp, containers = [] }) => {
      const cores = containers.map(({ name, usage }) => [name, parseQuantity(usage?.cpu ?? '')] as const);
      const known = cores.filter((one): one is [string, number] => one[1] !== undefined);
      return [metadata.name, { takenMs: Date.parse(timestamp), coresByContainer: new Map(known) }];
    }),
  );
}
