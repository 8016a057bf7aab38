/**
 * How many workers a load takes by the queueing model, where renders may wait in the middle. Two bounds, of which the
 * larger one counts: a render holds a place of a worker from its begin to its end, and a core while it computes.
 *
 * The second one takes all cores for one pool. A render is bound to its worker, so several at a time need a little more
 * than the model says: `plan` simulates it.
 */
import { type Concurrency, settledLimit } from './concurrency.ts';
import { type Load, latencyQuantile, type Objective, type Times, together, workersFor } from './queueing.ts';

export interface Demand {
  rps: number;
  /** CPU of one render. */
  renderMeanS: number;
  renderCv: number;
  wait?: Times | undefined;
  /** 1 if left out. */
  concurrency?: Concurrency | undefined;
}

/** Seconds that a render waits for each second of CPU. */
export function waitRatioOf({ renderMeanS, wait }: Pick<Demand, 'renderMeanS' | 'wait'>): number {
  return (wait?.meanS ?? 0) / renderMeanS;
}

interface Bound {
  load: Load;
  /** Of one worker. */
  servers: number;
}

function boundsOf({ rps, renderMeanS, renderCv, wait, concurrency = 1 }: Demand): Bound[] {
  const places = settledLimit(concurrency, waitRatioOf({ renderMeanS, wait }));
  if (!wait || wait.meanS === 0) return [{ load: { rps, renderMeanS, renderCv }, servers: 1 }];
  const { meanS, cv } = together({ meanS: renderMeanS, cv: renderCv }, wait);
  const ofPlaces = { load: { rps, renderMeanS: meanS, renderCv: cv }, servers: places };
  if (places === 1) return [ofPlaces];
  return [ofPlaces, { load: { rps, renderMeanS, renderCv, aside: wait }, servers: 1 }];
}

/** The fewest workers that hold the objective, or undefined when no number does. */
export function workersNeeded(demand: Demand, objective: Objective): number | undefined {
  const each = boundsOf(demand).map(({ load, servers }) => {
    const needed = workersFor(load, objective);
    return needed === undefined ? Number.POSITIVE_INFINITY : Math.ceil(needed / servers);
  });
  const most = Math.max(...each);
  return Number.isFinite(most) ? most : undefined;
}

/** Latency that `quantile` of the requests stay below. */
export function quantileWith(demand: Demand, workers: number, quantile: number): number {
  return Math.max(...boundsOf(demand).map(({ load, servers }) => latencyQuantile(load, workers * servers, quantile)));
}
