/** Clients of the pods of a fleet, each of which asks for one page after the other. */
import type { Fleet } from '../harness/engine/fleet.ts';

export class Load {
  #isOver = false;
  readonly #clients: Promise<void>[];

  /** @param clients of each pod */
  constructor(fleet: Fleet, clients: number, path: string) {
    this.#clients = fleet.pods.flatMap((pod) =>
      Array.from({ length: clients }, async () => {
        while (!this.#isOver) await pod.get(path);
      }),
    );
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.allSettled(this.#clients);
  }
}
