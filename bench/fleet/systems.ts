/** Fleets side by side: so many pods with so many workers each. */

import { Fleet } from '../../e2e/harness/engine/fleet.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import type { RenderServiceSpecInput } from '../../operator/src/api/spec.ts';
import { INSIDE } from '../lib/inside.ts';
import type { Readiness, Target } from '../lib/load.ts';
import { type Note, Notes } from '../lib/notes.ts';
import type { InOneContainer } from '../systems/in-one-container.ts';
import { startCluster } from '../systems/node.ts';
import { QueueProxies } from '../systems/queue-proxy.ts';
import { addressOf } from '../systems/system.ts';

export interface RunningFleet {
  /** Docker network of the client. */
  network: string;
  targets: Target[];
  /** Where pods leave the Service for a while. */
  readiness?: Readiness;
  /** All that the workers have noted so far. */
  notes(): Note[];
  /** Requests that pods have handed over so far. */
  handedOver(): Promise<number>;
  stop(): Promise<void>;
}

export interface FleetKind {
  title: string;
  start(pods: number, workersPerPod: number): Promise<RunningFleet>;
}

/** Long enough that nothing is refused: what is compared is how long work takes. */
const SPEC: Partial<RenderServiceSpecInput> = { queue: { maxLength: 1000, timeout: '60s' } };

async function startPods(pods: number, workersPerPod: number, pooled: boolean): Promise<RunningFleet> {
  const spec = { ...SPEC, workersPerPod, pooling: { enabled: pooled } };
  const fleet = await Fleet.start(pods, spec, { folder: INSIDE });
  const sources = fleet.pods.map((pod) => new Notes(pod.notesFile));
  return {
    network: fleet.network,
    targets: await Promise.all(
      fleet.pods.map(async (pod) => ({ host: await addressOf(pod.holder), port: PORTS.http })),
    ),
    notes: () => sources.flatMap((source) => source.read()),
    handedOver: async () => {
      const counts = await Promise.all(fleet.pods.map((pod) => pod.handedOver()));
      return counts.reduce((sum, count) => sum + count, 0);
    },
    stop: () => fleet.stop(),
  };
}

/** As people write it by hand: a pod with a queue as long as its workers is unready; kubelet looks once a second. */
async function startWithHandmadeCheck(pods: number, workersPerPod: number): Promise<RunningFleet> {
  const fleet = await startPods(pods, workersPerPod, false);
  return { ...fleet, readiness: { port: PORTS.stats, queueLengthMax: workersPerPod, everyMs: 1000 } };
}

async function startClusters(pods: number, workersPerPod: number): Promise<RunningFleet> {
  const clusters: InOneContainer[] = [];
  for (let pod = 0; pod < pods; pod += 1) clusters.push(await startCluster(workersPerPod, '0.0.0.0'));
  return {
    network: 'bridge',
    targets: await Promise.all(
      clusters.map(async ({ container }) => ({ host: await addressOf(container), port: 9000 })),
    ),
    notes: () => clusters.flatMap(({ notes }) => notes.read()),
    handedOver: async () => 0,
    stop: async () => void (await Promise.all(clusters.map((cluster) => cluster.stop()))),
  };
}

/** One worker each, as containerConcurrency 1 has it in Knative, however the workers would be grouped elsewhere. */
async function startQueueProxies(pods: number, workersPerPod: number): Promise<RunningFleet> {
  const proxies = await QueueProxies.start(pods * workersPerPod);
  return {
    network: proxies.network,
    targets: proxies.targets,
    notes: () => proxies.notes.read(),
    handedOver: async () => 0,
    stop: () => proxies.stop(),
  };
}

/** In the order of the report. */
export const FLEETS: { [name: string]: FleetKind } = {
  corelane: { title: 'Corelane', start: (pods, workers) => startPods(pods, workers, true) },
  'no-pooling': { title: 'Corelane, pooling off', start: (pods, workers) => startPods(pods, workers, false) },
  'load-probe': { title: 'the same, unready while its queue >= workers', start: startWithHandmadeCheck },
  cluster: { title: 'Node cluster in each pod', start: startClusters },
  'queue-proxy': { title: "Knative's queue-proxy, 1 worker each", start: startQueueProxies },
};
