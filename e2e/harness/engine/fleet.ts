/** A fleet of operator/local with the pods that tests and benches want. */

import { together } from '../../../operator/local/engine.ts';
import { LocalFleet } from '../../../operator/local/fleet.ts';
import type { RenderServiceSpecInput } from '../../../operator/src/api/spec.ts';
import { engine } from './docker.ts';
import { Pod, type PodOptions, until, type WorkerOptions } from './pod.ts';

export class Fleet extends LocalFleet<Pod> {
  /**
   * Starts `count` pods, and waits until each knows all others. `ipv6`: they have two addresses, and prefer that one.
   * `name`: the pods are NAME-1, NAME-2, ...
   */
  static async start(
    count: number,
    input: Partial<RenderServiceSpecInput>,
    { ipv6 = false, name, ...options }: WorkerOptions & PodOptions & { ipv6?: boolean } = {},
  ): Promise<Fleet> {
    const network = await engine.network({ ipv6 });
    if (ipv6) options.edit = (_file, text) => text.replace('resolve-prefer ipv4', 'resolve-prefer ipv6');
    const fleet = new Fleet(engine, network);
    try {
      const named = (number: number) => (name === undefined ? options : { ...options, name: `${name}-${number}` });
      await together(Array.from({ length: count }, (_unused, index) => fleet.add(input, named(index + 1))));
      await fleet.untilAllKnown();
    } catch (error) {
      await fleet.stop();
      throw error;
    }
    return fleet;
  }

  /** One more pod. */
  async add(input: Partial<RenderServiceSpecInput>, options: WorkerOptions & PodOptions = {}): Promise<Pod> {
    const pod = this.join(await Pod.start(input, { ...options, network: this.network }));
    for (const worker of pod.workers.keys()) await until('all workers are up', () => pod.isUp(worker));
    return pod;
  }

  /** Lets requests end, whichever pod renders them with hold=1. */
  release(...ids: string[]): void {
    for (const pod of this.pods) pod.release(...ids);
  }
}

/** Addresses that a pod has from DNS, its own among them. */
export function knownPeers(pod: Pod): Promise<number> {
  return pod.knownPeers();
}
