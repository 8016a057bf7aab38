/** A service looked at again and again: what `corelane top` keeps from look to look. */
import { inOrder, type Lane, markOf } from '../../live/lanes.ts';
import type { PodNow, Snapshot } from '../../live/snapshot.ts';
import type { Source } from '../../live/source.ts';
import { type Window, windowOf } from '../../live/window.ts';
import { inTurn } from './in-turn.ts';

/** Looks that a lane of a terminal shows. */
const MARKS = 20;
/** Looks that the numbers of the first line go back. */
const LOOKS = 6;
/** Busy workers that are asked what they render, those that stand still first. */
const ASKED_MAX = 40;
const AT_A_TIME = 8;

export class Watching {
  readonly #source: Source;
  #looks: Snapshot[] = [];
  readonly #marks = new Map<string, string>();
  readonly #marksMax: number;
  readonly #askedMax: number;

  constructor(source: Source, { marksMax = MARKS, askedMax = ASKED_MAX } = {}) {
    this.#source = source;
    this.#marksMax = marksMax;
    this.#askedMax = askedMax;
  }

  /** @throws Error when the service cannot be looked at */
  async look(): Promise<{ snapshot: Snapshot; window: Window; lanes: Lane[] }> {
    const snapshot = await this.#source.look();
    const last = this.#looks.at(-1);
    const window = windowOf(snapshot, this.#looks[0]);
    this.#looks = [...this.#looks, snapshot].slice(-LOOKS);
    const lanes = snapshot.pods.flatMap((pod) => this.#lanesOf(pod, last));
    this.#forget(lanes);
    const busy = inOrder(
      lanes.filter(({ worker }) => worker.busy > 0 || worker.blocked),
      'stuck',
    ).slice(0, this.#askedMax);
    await inTurn(busy, AT_A_TIME, async (lane) => {
      // One that has no runtime, or is just going, does not say.
      lane.requests = await this.#source.requests(lane.pod, indexOf(lane)).catch(() => []);
    });
    return { snapshot, window, lanes };
  }

  /** Marks of workers that are no more. */
  #forget(lanes: Lane[]): void {
    const known = new Set(lanes.map(keyOf));
    for (const key of this.#marks.keys()) if (!known.has(key)) this.#marks.delete(key);
  }

  #lanesOf({ name: pod, figures }: PodNow, last: Snapshot | undefined): Lane[] {
    const before = last?.pods.find(({ name }) => name === pod)?.figures;
    return (figures?.workers ?? []).map((worker) => {
      const key = keyOf({ pod, worker });
      const marks = `${this.#marks.get(key) ?? ''}${markOf(worker)}`.slice(-this.#marksMax);
      this.#marks.set(key, marks);
      const earlier = before?.workers.find(({ name }) => name === worker.name)?.cpuS;
      const seconds = ((figures?.atMs ?? 0) - (before?.atMs ?? 0)) / 1000;
      const hasCpu = worker.cpuS !== undefined && earlier !== undefined && worker.cpuS >= earlier && seconds > 0;
      return {
        pod,
        worker,
        marks,
        requests: [],
        cpu: hasCpu ? ((worker.cpuS as number) - earlier) / seconds : undefined,
      };
    });
  }
}

function keyOf({ pod, worker }: Pick<Lane, 'pod' | 'worker'>): string {
  return `${pod} ${worker.name}`;
}

/** Number of a lane's worker. */
export function indexOf({ worker: { name } }: Lane): number {
  return Number(name.slice(name.lastIndexOf('-') + 1));
}
