/** A fleet of real pods that a fault happens to, and its visitors. */
import { Fleet } from '../../e2e/harness/engine/fleet.ts';
import type { Pod } from '../../e2e/harness/engine/pod.ts';

const PODS = 3;
/** By which the commands find it, as one of `corelane run`. */
export const SERVICE = 'observed';
const SPEC = {
  workersPerPod: 2,
  queue: { maxLength: 3, timeout: '8s' },
  timeouts: { render: '7s' },
  watchdog: { stallTimeout: '5s', quarantine: { enabled: false } },
};
/** Between two pages of a visitor. */
const PAUSE_MS = 150;

export class Shop {
  readonly fleet: Fleet;
  readonly #loops: Promise<void>[] = [];
  #isOver = false;

  private constructor(fleet: Fleet) {
    this.fleet = fleet;
  }

  /** With a visitor of each pod. */
  static async start(): Promise<Shop> {
    const shop = new Shop(await Fleet.start(PODS, SPEC, { name: SERVICE }));
    for (const pod of shop.pods) shop.visit(pod, () => '/?ms=5&id=visit');
    return shop;
  }

  get pods(): Pod[] {
    return this.fleet.pods;
  }

  /** One more pod, which lacks the key of the others. */
  addStranger(): Promise<Pod> {
    return this.fleet.add(SPEC, { key: null, name: `${SERVICE}-${this.pods.length + 1}` });
  }

  /** Somebody who asks for one page after the other; what is answered is none of his business. */
  visit(pod: Pod, path: () => string, { method = 'GET', pauseMs = PAUSE_MS } = {}): void {
    const loop = async () => {
      while (!this.#isOver) {
        await pod.get(path(), { method }).catch(() => undefined);
        await new Promise((resolve) => setTimeout(resolve, pauseMs));
      }
    };
    this.#loops.push(loop());
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await this.fleet.stop();
    await Promise.allSettled(this.#loops);
  }
}
