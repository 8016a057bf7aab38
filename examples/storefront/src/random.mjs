/**
 * Makes a seeded random number generator (mulberry32), so that every process that starts with the same seed renders the
 * same page, and two measurements render the same work.
 *
 * @param {number} seed any 32-bit integer
 * @returns {() => number} the next number, in [0, 1)
 */
export function createRandom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
