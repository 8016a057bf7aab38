/** Several pods in a network of their own, where they find each other by DNS as through the headless Service. */

import type { RenderServiceSpecInput } from '../../../operator/src/api/spec.ts';
import { docker, networkForTest, together } from './docker.ts';
import { Pod, type PodOptions, until, type WorkerOptions } from './pod.ts';

export class Fleet {
  readonly pods: Pod[];
  /** Docker network of the pods. */
  readonly network: string;

  private constructor(network: string, pods: Pod[]) {
    this.network = network;
    this.pods = pods;
  }

  /**
   * Starts `count` pods, and waits until each knows all others. `ipv6`: they have two addresses, and prefer that one.
   */
  static async start(
    count: number,
    input: Partial<RenderServiceSpecInput>,
    { ipv6 = false, ...options }: WorkerOptions & PodOptions & { ipv6?: boolean } = {},
  ): Promise<Fleet> {
    const network = await networkForTest({ ipv6 });
    if (ipv6) options.edit = (_file, text) => text.replace('resolve-prefer ipv4', 'resolve-prefer ipv6');
    const fleet = new Fleet(network, []);
    try {
      await together(Array.from({ length: count }, () => fleet.add(input, options)));
      await fleet.untilAllKnown();
    } catch (error) {
      await fleet.stop();
      throw error;
    }
    return fleet;
  }

  /** One more pod. */
  async add(input: Partial<RenderServiceSpecInput>, options: WorkerOptions & PodOptions = {}): Promise<Pod> {
    const pod = await Pod.start(input, { ...options, network: this.network });
    this.pods.push(pod);
    for (const worker of pod.workers.keys()) await until('all workers are up', () => pod.isUp(worker));
    return pod;
  }

  /** Waits until DNS has told every pod about every other one. */
  async untilAllKnown(): Promise<void> {
    for (const pod of this.pods) {
      await until('the pod knows its peers', async () => (await knownPeers(pod)) >= this.pods.length);
    }
  }

  /** Lets requests end, whichever pod renders them with hold=1. */
  release(...ids: string[]): void {
    for (const pod of this.pods) pod.release(...ids);
  }

  /** Removes everything. */
  async stop(): Promise<void> {
    await Promise.all(this.pods.map((pod) => pod.stop()));
    await docker('network', 'rm', this.network);
  }
}

/** Addresses that a pod has from DNS, its own among them. */
export async function knownPeers(pod: Pod): Promise<number> {
  const lines = await pod.metricLines('haproxy_server_status');
  return lines.filter((line) => /\{proxy="peers",.*state="UP"\} 1$/.test(line)).length;
}
