/**
 * How many renders a simulated worker has at a time: a number, or what it finds by itself. The rule is the one that
 * runs beside each worker (sidecar/runtime/concurrency-rule.cjs), not a second one.
 */
import {
  type Bounds,
  decide,
  type Figures,
  firstState,
  learn,
  type State,
} from '../../sidecar/runtime/concurrency-rule.cjs';
import { busyShares } from '../../sidecar/runtime/wait-ratio.cjs';

/** `spec.concurrency`; bounds for Auto. */
export type Concurrency = number | Bounds;

/** What a worker of Auto has seen, and what it makes of it once a second. */
export class FoundLimit {
  readonly #bounds: Bounds;
  #state: State;
  #fresh: Figures;

  constructor(bounds: Bounds) {
    this.#bounds = bounds;
    this.#state = firstState(bounds);
    this.#fresh = none(bounds);
  }

  get limit(): number {
    return this.#state.limit;
  }

  /** So much time has gone by with so many in progress, and for so much of it the event loop was idle. */
  passed(inProgress: number, seconds: number, idleSeconds: number): void {
    const { timeMs, idleMs } = this.#fresh;
    timeMs[inProgress] = (timeMs[inProgress] ?? 0) + 1000 * seconds;
    idleMs[inProgress] = (idleMs[inProgress] ?? 0) + 1000 * idleSeconds;
  }

  /** The next limit. Without a render since the last look nothing is asked, as in a worker. */
  look(): number {
    if (this.#fresh.timeMs.some((ms, inProgress) => inProgress > 0 && ms > 0)) {
      this.#state = decide(learn(this.#state, this.#fresh), this.#bounds);
      this.#fresh = none(this.#bounds);
    }
    return this.limit;
  }
}

function none({ max }: Bounds): Figures {
  return { timeMs: new Array<number>(max + 1).fill(0), idleMs: new Array<number>(max + 1).fill(0) };
}

/** Long enough for a worker that is never without work to find its number. */
const SETTLING_S = 30;

/** A worker that has found its number, of renders that wait so long for each second of CPU. */
export function settled(bounds: Bounds, waitRatio: number): FoundLimit {
  const shares = busyShares(waitRatio, bounds.max);
  const found = new FoundLimit(bounds);
  for (let second = 0; second < SETTLING_S; second += 1) {
    found.passed(found.limit, 1, 1 - (shares[found.limit] ?? 1));
    found.look();
  }
  return found;
}

/** Renders at a time of a worker that has found its number. */
export function settledLimit(concurrency: Concurrency, waitRatio: number): number {
  return typeof concurrency === 'number' ? concurrency : settled(concurrency, waitRatio).limit;
}

/** Share of its core that a worker uses which is never without work: what 100 % of its capacity is in per-core CPU. */
export function mostCpu(concurrency: Concurrency, waitRatio: number): number {
  const limit = settledLimit(concurrency, waitRatio);
  return busyShares(waitRatio, limit)[limit] ?? 1;
}
