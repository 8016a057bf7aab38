/**
 * A few seconds of four workers, request by request, in two systems with the very same requests: each request goes to
 * the next worker in turn and waits behind it, or all wait in one queue for whoever becomes free. One request never
 * ends. For the picture in README.md. Computes only.
 */
import { lognormal, Random } from './random.ts';

export const WORKERS = 4;
/** How much of it is shown. */
export const SECONDS = 16;
const RENDER_MEAN_S = 0.4;
const RENDER_CV = 1;
const LOAD = 0.7;
/** The request that never ends, and how long the watchdog lets it (watchdog.stallTimeout). */
const STUCK_REQUEST = 28;
export const STALL_TIMEOUT_S = 2;
/** Until a worker serves again that was killed. */
const RESTART_S = 0.3;
/** Any other shows the same: a test tries many. */
const SEED = 7;

export interface Request {
  arrivesS: number;
  /** Infinite for the one that is stuck. */
  renderS: number;
}

export interface Render {
  worker: number;
  arrivesS: number;
  /** Infinite if it never begins. */
  beginsS: number;
  endsS: number;
  isStuck: boolean;
}

export interface Lanes {
  renders: Render[];
}

/** The requests of the seconds that are shown, in the order in which they arrive. */
export function requests(seed = SEED): Request[] {
  const random = new Random(seed);
  const { mu, sigma } = lognormal(RENDER_MEAN_S, RENDER_CV);
  const found: Request[] = [];
  for (let atS = 0; ; ) {
    atS += random.exponential(RENDER_MEAN_S / (LOAD * WORKERS));
    if (atS > SECONDS) return found;
    const renderS = Math.exp(mu + sigma * random.normal());
    found.push({ arrivesS: atS, renderS: found.length === STUCK_REQUEST ? Number.POSITIVE_INFINITY : renderS });
  }
}

/** Each request to the next worker in turn, as Node's cluster does it with connections. */
export function inTurn(all: Request[]): Lanes {
  const freeS = Array.from({ length: WORKERS }, () => 0);
  const renders = all.map(({ arrivesS, renderS }, index) => {
    const worker = index % WORKERS;
    const beginsS = Math.max(arrivesS, freeS[worker] as number);
    freeS[worker] = beginsS + renderS;
    return { worker, arrivesS, beginsS, endsS: beginsS + renderS, isStuck: renderS === Number.POSITIVE_INFINITY };
  });
  return { renders };
}

/** One queue, one request for each worker, and a watchdog. */
export function oneQueue(all: Request[]): Lanes {
  const freeS = Array.from({ length: WORKERS }, () => 0);
  const renders = all.map(({ arrivesS, renderS }) => {
    const worker = freeS.indexOf(Math.min(...freeS));
    const beginsS = Math.max(arrivesS, freeS[worker] as number);
    const isStuck = renderS === Number.POSITIVE_INFINITY;
    const endsS = beginsS + (isStuck ? STALL_TIMEOUT_S : renderS);
    freeS[worker] = endsS + (isStuck ? RESTART_S : 0);
    return { worker, arrivesS, beginsS, endsS, isStuck };
  });
  return { renders };
}

/** Requests that have arrived and have not begun, at each moment in which that changes. */
export function waiting({ renders }: Lanes): { atS: number; count: number }[] {
  const changes = renders
    .filter(({ arrivesS, beginsS }) => beginsS > arrivesS)
    .flatMap(({ arrivesS, beginsS }) => [
      { atS: arrivesS, by: 1 },
      { atS: beginsS, by: -1 },
    ])
    .filter(({ atS }) => atS <= SECONDS)
    .sort((one, other) => one.atS - other.atS);
  let count = 0;
  return changes.map(({ atS, by }) => {
    count += by;
    return { atS, count };
  });
}
