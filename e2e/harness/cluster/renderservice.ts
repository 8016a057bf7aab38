/** RenderServices and what they own, as the stories need them. */

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually, get, kubectl, SELDOM_MS } from './cluster.ts';
import { ROOT } from './shell.ts';

interface Condition {
  type: string;
  status: string;
  reason: string;
  message: string;
}

export interface LiveRenderService {
  metadata: { name: string; namespace: string; uid: string; generation: number };
  spec: { replicas: number; workersPerPod: number };
  status?: {
    observedGeneration?: number;
    replicas?: number;
    readyReplicas?: number;
    updatedReplicas?: number;
    workers?: { total: number; ready: number; busy?: number };
    conditions?: Condition[];
  };
}

export interface LivePod {
  metadata: { name: string; deletionTimestamp?: string };
  spec: {
    nodeName: string;
    containers: { name: string }[];
    initContainers?: { name: string; restartPolicy?: string }[];
  };
  status: {
    phase: string;
    podIP: string;
    conditions?: { type: string; status: string; lastTransitionTime?: string }[];
    containerStatuses?: { name: string; restartCount: number }[];
  };
}

/** Text of a file in examples/. */
export function example(name: string): string {
  return readFileSync(join(ROOT, 'examples', name), 'utf8');
}

/** Waits until the resource is Ready at its present generation and no change is on its way. */
export async function untilReady(namespace: string, name: string, timeoutMs = 120_000): Promise<LiveRenderService> {
  try {
    const check = async () => {
      const resource = await get<LiveRenderService>('-n', namespace, 'renderservice', name);
      const holds = (type: string, status: string) =>
        resource.status?.conditions?.some((condition) => condition.type === type && condition.status === status);
      const isCurrent = resource.status?.observedGeneration === resource.metadata.generation;
      return isCurrent && holds('Ready', 'True') && holds('Reconciling', 'False') ? resource : undefined;
    };
    return await eventually(`RenderService ${namespace}/${name} to be Ready`, timeoutMs, check, SELDOM_MS);
  } catch (error) {
    const pods = await kubectl(['-n', namespace, 'get', 'pods,renderservices', '-o', 'wide']);
    const events = await kubectl(['-n', namespace, 'get', 'events', '--sort-by=.lastTimestamp']);
    throw new Error(`${(error as Error).message}\n${pods}\n${events.slice(-4_000)}`);
  }
}

/**
 * Waits until the pods themselves say that every worker is up. A pod is Ready with its first one; the others may still
 * be starting, and each of them is a write of the status.
 */
export function untilAllWorkersUp(namespace: string, name: string): Promise<LiveRenderService> {
  const check = async () => {
    const resource = await untilReady(namespace, name);
    const { total, ready, busy } = resource.status?.workers ?? {};
    return busy !== undefined && ready === total ? resource : undefined;
  };
  return eventually(`all workers of RenderService ${namespace}/${name} to be up`, 60_000, check, SELDOM_MS);
}

/** Pods of a RenderService that the Service leads to, those that are being deleted included. */
export async function podsOf(namespace: string, name: string): Promise<LivePod[]> {
  const selector = `corelane.dev/renderservice=${name},corelane.dev/serving!=false`;
  return (await get<{ items: LivePod[] }>('-n', namespace, 'pods', '-l', selector)).items;
}

export interface LiveDeployment {
  metadata: {
    name: string;
    uid: string;
    generation: number;
    labels: Record<string, string>;
    annotations: Record<string, string>;
  };
  spec: { replicas: number };
}

/** Deployments of a RenderService, the one of the revision that it asks for first. */
export async function deploymentsOf(namespace: string, name: string): Promise<LiveDeployment[]> {
  const selector = `corelane.dev/renderservice=${name}`;
  const { items } = await get<{ items: LiveDeployment[] }>('-n', namespace, 'deployments', '-l', selector);
  const numberOf = ({ metadata }: LiveDeployment) => Number(metadata.annotations['corelane.dev/revision-number'] ?? 0);
  return items.toSorted((one, other) => numberOf(other) - numberOf(one));
}

/** The Deployment of the revision that a RenderService asks for. */
export async function deploymentOf(namespace: string, name: string): Promise<LiveDeployment> {
  const [newest] = await deploymentsOf(namespace, name);
  if (!newest) throw new Error(`RenderService ${namespace}/${name} has no Deployment`);
  return newest;
}

/** Names of everything of these kinds that carries the RenderService's label. */
export async function objectsOf(namespace: string, name: string): Promise<string[]> {
  const kinds = 'deployments,replicasets,pods,services,endpointslices,configmaps,poddisruptionbudgets,networkpolicies';
  const text = await kubectl(['-n', namespace, 'get', kinds, '-l', `corelane.dev/renderservice=${name}`, '-o', 'name']);
  return text.split('\n').filter(Boolean);
}
