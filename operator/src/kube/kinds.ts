/** The kinds that the operator reads or writes, and where they live in the API. */
import { API_VERSION, KIND, PLURAL } from '../api/names.ts';

/** A kind and its place in the API. */
export interface Kind {
  apiVersion: string;
  kind: string;
  plural: string;
}

export const kinds = {
  renderService: { apiVersion: API_VERSION, kind: KIND, plural: PLURAL },
  configMap: { apiVersion: 'v1', kind: 'ConfigMap', plural: 'configmaps' },
  secret: { apiVersion: 'v1', kind: 'Secret', plural: 'secrets' },
  service: { apiVersion: 'v1', kind: 'Service', plural: 'services' },
  pod: { apiVersion: 'v1', kind: 'Pod', plural: 'pods' },
  deployment: { apiVersion: 'apps/v1', kind: 'Deployment', plural: 'deployments' },
  replicaSet: { apiVersion: 'apps/v1', kind: 'ReplicaSet', plural: 'replicasets' },
  podDisruptionBudget: { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', plural: 'poddisruptionbudgets' },
  networkPolicy: { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', plural: 'networkpolicies' },
  lease: { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', plural: 'leases' },
  event: { apiVersion: 'events.k8s.io/v1', kind: 'Event', plural: 'events' },
} as const satisfies Record<string, Kind>;

/** Path of a collection; without a namespace that of the whole cluster. */
export function collectionPath({ apiVersion, plural }: Kind, namespace?: string): string {
  const root = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const scope = namespace === undefined ? '' : `/namespaces/${encodeURIComponent(namespace)}`;
  return `${root}${scope}/${plural}`;
}

/** Path of one object. */
export function objectPath(kind: Kind, namespace: string, name: string): string {
  return `${collectionPath(kind, namespace)}/${encodeURIComponent(name)}`;
}
