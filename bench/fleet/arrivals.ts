/** The work of the fleet bench: Poisson arrivals, lognormal renders, a random pod for each. Computes only. */
import { createRandom, type Random } from '../lib/random.ts';

export interface Arrival {
  /** Milliseconds after the begin, and how long the render takes. */
  at: number;
  service: number;
  /** Uniform in [0, 1): which of the targets. */
  choice: number;
}

const MEAN_MS = 100;
/** Coefficient of variation 1. */
const SIGMA = Math.sqrt(Math.log(2));
const MU = Math.log(MEAN_MS) - SIGMA ** 2 / 2;

/**
 * @param load share of the workers' time that the renders take
 * @returns the same for the same arguments
 */
export function arrivals(workers: number, load: number, seconds: number, seed: number): Arrival[] {
  const random = createRandom(seed);
  const perMs = (load * workers) / MEAN_MS;
  const list: Arrival[] = [];
  for (let at = exponential(random) / perMs; at < seconds * 1000; at += exponential(random) / perMs) {
    list.push({ at, service: Math.exp(MU + SIGMA * normal(random)), choice: random() });
  }
  return list;
}

function exponential(random: Random): number {
  return -Math.log(1 - random());
}

/** Box and Muller. */
function normal(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}
