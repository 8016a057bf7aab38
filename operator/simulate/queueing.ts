/**
 * How long a request takes in a fleet with one common queue: M/G/c in the usual approximation (Erlang's C for the
 * chance to wait; an exponential wait, stretched by (1 + cv^2) / 2 as Allen and Cunneen do), plus a lognormal render.
 */
import { lognormal } from './random.ts';

/** Lognormal times. */
export interface Times {
  meanS: number;
  cv: number;
}

export interface Load {
  rps: number;
  /** Time that a request holds a server. */
  renderMeanS: number;
  renderCv: number;
  /** Time that it takes beside, holding none. */
  aside?: Times | undefined;
}

/** One after the other; the sum of two lognormal times is nearly one. */
export function together(one: Times, other: Times): Times {
  const meanS = one.meanS + other.meanS;
  return { meanS, cv: Math.hypot(one.meanS * one.cv, other.meanS * other.cv) / meanS };
}

export interface Objective {
  /** 0.99 for p99. */
  quantile: number;
  limitS: number;
}

const SERVERS_MAX = 100_000;
const INTEGRATION_STEPS = 200;

/** Chance that a request waits. `offered` is rps x render time, in workers. */
export function erlangC(servers: number, offered: number): number {
  if (offered >= servers) return 1;
  // Erlang's B by its recursion, which neither overflows nor cancels.
  let blocking = 1;
  for (let count = 1; count <= servers; count += 1) blocking = (offered * blocking) / (count + offered * blocking);
  const utilization = offered / servers;
  return blocking / (1 - utilization * (1 - blocking));
}

/** Chance that a render alone takes longer than `limitS`. */
function renderExceeds({ renderMeanS, renderCv, aside }: Load, limitS: number): number {
  if (limitS <= 0) return 1;
  const held = { meanS: renderMeanS, cv: renderCv };
  const { meanS, cv } = aside ? together(held, aside) : held;
  if (cv === 0) return meanS > limitS ? 1 : 0;
  const { mu, sigma } = lognormal(meanS, cv);
  return 0.5 * erfc((Math.log(limitS) - mu) / (sigma * Math.SQRT2));
}

/** Chance that wait and render together take longer than `limitS`. */
export function latencyExceeds(load: Load, servers: number, limitS: number): number {
  const offered = load.rps * load.renderMeanS;
  const waits = erlangC(servers, offered);
  if (offered >= servers) return 1;
  const rate = (2 * (servers - offered)) / ((1 + load.renderCv ** 2) * load.renderMeanS);
  // The wait's density times the chance that the render takes the rest, up to the limit; beyond it nothing can help.
  let late = Math.exp(-rate * limitS);
  const width = limitS / INTEGRATION_STEPS;
  for (let step = 0; step < INTEGRATION_STEPS; step += 1) {
    const weight = Math.exp(-rate * step * width) - Math.exp(-rate * (step + 1) * width);
    late += weight * renderExceeds(load, limitS - (step + 0.5) * width);
  }
  return (1 - waits) * renderExceeds(load, limitS) + waits * late;
}

/** Latency that `quantile` of the requests stay below. */
export function latencyQuantile(load: Load, servers: number, quantile: number): number {
  let low = 0;
  let high = 1000 * (load.renderMeanS + (load.aside?.meanS ?? 0));
  for (let round = 0; round < 60; round += 1) {
    const middle = (low + high) / 2;
    if (latencyExceeds(load, servers, middle) > 1 - quantile) low = middle;
    else high = middle;
  }
  return high;
}

/** The fewest workers that hold the objective, or undefined when no number does: the render alone is too slow. */
export function workersFor(load: Load, { quantile, limitS }: Objective): number | undefined {
  if (renderExceeds(load, limitS) >= 1 - quantile) return undefined;
  const holds = (servers: number) => latencyExceeds(load, servers, limitS) <= 1 - quantile;
  let low = Math.floor(load.rps * load.renderMeanS);
  let high = Math.max(1, low + 1);
  while (!holds(high)) {
    low = high;
    high *= 2;
    if (high > SERVERS_MAX) return undefined;
  }
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (holds(middle)) high = middle;
    else low = middle;
  }
  return high;
}

/** Complementary error function (Numerical Recipes' Chebyshev fit, relative error below 1.2e-7). */
function erfc(x: number): number {
  const z = Math.abs(x);
  const t = 1 / (1 + z / 2);
  const coefficients = [
    -1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398, 1.48851587, -0.82215223,
    0.17087277,
  ];
  const series = coefficients.reduceRight((sum, coefficient) => coefficient + t * sum, 0);
  const result = t * Math.exp(-z * z + series);
  return x >= 0 ? result : 2 - result;
}
