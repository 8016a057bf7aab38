/** Random numbers that are the same in every run. Computes only. */

/** Uniform in [0, 1). */
export type Random = () => number;

/** Mulberry32: small, and good enough to choose workers and times. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A whole number from 0 to below `count`. */
export function pick(random: Random, count: number): number {
  return Math.floor(random() * count);
}
