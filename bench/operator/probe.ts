/** How long a change of a spec takes to its Deployment: from the request to what a watch tells. */
import { setTimeout as delay } from 'node:timers/promises';
import { pathOf } from '../../operator/test/support/api-client.ts';
import type { Row } from './arrivals.ts';
import type { Cluster } from './cluster.ts';
import { PROBE, renderService } from './objects.ts';
import { TableWatch } from './table-watch.ts';

const EVERY_MS = 1_000;
const ARRIVES_MS_MAX = 60_000;
const READY_MS_MAX = 120_000;
const [FEW, MORE] = [2, 3];

export class Probe {
  readonly #cluster: Cluster;
  readonly #namespace: string;
  readonly #watch: TableWatch;
  #replicas = FEW;
  /** Who waits for the Deployment to have so many replicas. */
  #seen: (replicas: number) => void = () => {};

  private constructor(cluster: Cluster, namespace: string) {
    this.#cluster = cluster;
    this.#namespace = namespace;
    const path = `/apis/apps/v1/namespaces/${namespace}/deployments?labelSelector=corelane.dev/renderservice%3D${PROBE}`;
    this.#watch = new TableWatch(cluster.server.adminKubeconfig, path, (row: Row) => {
      this.#seen(Number(String(row.Ready).split('/')[1]));
    });
  }

  /** A service of two pods beside the others. Resolves when its Deployment is there. */
  static async start(cluster: Cluster, namespace: string): Promise<Probe> {
    const probe = new Probe(cluster, namespace);
    const arrived = probe.#arrival(FEW, READY_MS_MAX);
    await cluster.admin.post(pathOf('RenderService', namespace), renderService({ name: PROBE, namespace }, FEW));
    await arrived;
    return probe;
  }

  /** Changes it once a second, for so long. Gives the milliseconds of each change; a minute where it did not come. */
  async measure(seconds: number): Promise<number[]> {
    const times: number[] = [];
    const untilMs = performance.now() + seconds * 1_000;
    while (performance.now() < untilMs) {
      const began = performance.now();
      times.push(await this.#change());
      await delay(Math.max(0, EVERY_MS - (performance.now() - began)));
    }
    return times;
  }

  stop(): void {
    this.#watch.stop();
  }

  async #change(): Promise<number> {
    this.#replicas = this.#replicas === FEW ? MORE : FEW;
    const began = performance.now();
    const arrived = this.#arrival(this.#replicas, ARRIVES_MS_MAX).then(
      () => performance.now() - began,
      () => ARRIVES_MS_MAX,
    );
    const path = pathOf('RenderService', this.#namespace, PROBE);
    await this.#cluster.admin.patch(path, { spec: { replicas: this.#replicas } });
    return await arrived;
  }

  #arrival(replicas: number, timeoutMs: number): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const timer = setTimeout(() => reject(new Error('the change of the probe did not arrive')), timeoutMs);
    this.#seen = (has) => {
      if (has !== replicas) return;
      clearTimeout(timer);
      resolve();
    };
    return promise;
  }
}
