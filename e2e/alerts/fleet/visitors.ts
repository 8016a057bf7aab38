/** Visitors of a fleet: each pod has some that ask for one page after the other. */
import type { Fleet } from '../../harness/engine/fleet.ts';
import type { Pod } from '../../harness/engine/pod.ts';

/** Milliseconds between two pages of a visitor. */
const PAUSE_MS = 50;

export class Visitors {
  readonly #fleet: Fleet;
  readonly #path: (pod: Pod) => string;
  readonly #loops: Promise<void>[] = [];
  #isOver = false;
  /** Pages that had an answer. */
  pages = 0;

  private constructor(fleet: Fleet, path: (pod: Pod) => string) {
    this.#fleet = fleet;
    this.#path = path;
  }

  /** @param path what they ask for; a status other than 200 is none of their business */
  static start(fleet: Fleet, path: (pod: Pod) => string = () => '/?ms=5&id=visit'): Visitors {
    const visitors = new Visitors(fleet, path);
    for (const pod of fleet.pods) visitors.#loops.push(visitors.#visit(pod));
    return visitors;
  }

  async #visit(pod: Pod): Promise<void> {
    while (!this.#isOver && this.#fleet.pods.includes(pod)) {
      await pod.get(this.#path(pod)).then(
        () => {
          this.pages += 1;
        },
        () => undefined,
      );
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }

  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#loops);
  }
}
