/** How a Deployment is, as its controller tells. */
import type { KubeObject } from '../kube/types.ts';

/** Part of the status of a Deployment. */
export interface DeploymentStatus {
  observedGeneration?: number;
  replicas?: number;
  readyReplicas?: number;
  updatedReplicas?: number;
  availableReplicas?: number;
  conditions?: { type: string; status: string; reason?: string; message?: string }[];
}

/** What a Deployment says of itself. */
export function deploymentStatus({ status }: KubeObject): DeploymentStatus {
  return (status ?? {}) as DeploymentStatus;
}
