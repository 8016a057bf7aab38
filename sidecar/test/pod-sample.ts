/** Reads pods as the operator does. */
import type { Pod } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { type PodSample, type Stall, samplePod } from '../../operator/src/pods/sample.ts';

/** Reads one pod of two workers, and notes which pages that took. */
export class Reader {
  readonly asked: string[] = [];
  /** What the last sample had of workers that were stuck. */
  lastStalls: Stall[] = [];
  readonly #pod: Pod;

  constructor(pod: Pod) {
    this.#pod = pod;
  }

  async sample(before?: PodSample): Promise<PodSample> {
    this.asked.length = 0;
    const page = async (path: string) => {
      this.asked.push(path.split('?')[0] as string);
      const { status, body } = await this.#pod.get(path, { port: PORTS.stats });
      if (status !== 200) throw new Error(`${status}`);
      return body;
    };
    const { sample, stalls } = await samplePod(page, ['worker-0', 'worker-1'], { before });
    this.lastStalls = stalls;
    return sample;
  }
}
