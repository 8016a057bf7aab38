/** Several pods in a network of their own, where they find each other by DNS as through the headless Service. */
import type { Engine } from './engine.ts';
import { until } from './http.ts';
import type { LocalPod } from './pod.ts';

export class LocalFleet<P extends LocalPod> {
  readonly pods: P[] = [];
  readonly engine: Engine;
  /** The engine's network of the pods. */
  readonly network: string;

  constructor(engine: Engine, network: string) {
    this.engine = engine;
    this.network = network;
  }

  /** Takes a pod in that has been started in this network. */
  protected join(pod: P): P {
    this.pods.push(pod);
    return pod;
  }

  /** Waits until DNS has told every pod about every other one. */
  async untilAllKnown(): Promise<void> {
    for (const pod of this.pods) {
      await until('the pod knows its peers', async () => (await pod.knownPeers()) >= this.pods.length);
    }
  }

  /** Removes everything. */
  async stop(): Promise<void> {
    await Promise.all(this.pods.map((pod) => pod.stop()));
    await this.engine.run('network', 'rm', this.network);
  }
}
