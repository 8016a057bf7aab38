/** Repeatable random numbers: the same seed gives the same day on every machine. */

// Looked up once: in the sandbox of a test runner every look at a global costs a microsecond, and a day has 10^8 of
// them.
const { imul, log, sqrt } = Math;

export class Random {
  #state: number;
  #spare: number | undefined;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** From 0 up to, not including, 1 (mulberry32). */
  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let bits = imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    bits ^= bits + imul(bits ^ (bits >>> 7), bits | 61);
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  }

  /** Time to the next event of a Poisson process. */
  exponential(mean: number): number {
    return -mean * log(1 - this.fraction());
  }

  /** Standard normal (Marsaglia's polar method, which makes two at a time). */
  normal(): number {
    if (this.#spare !== undefined) {
      const spare = this.#spare;
      this.#spare = undefined;
      return spare;
    }
    for (;;) {
      const x = 2 * this.fraction() - 1;
      const y = 2 * this.fraction() - 1;
      const square = x * x + y * y;
      if (square === 0 || square >= 1) continue;
      const factor = sqrt((-2 * log(square)) / square);
      this.#spare = y * factor;
      return x * factor;
    }
  }
}

/** Lognormal values of a mean and a coefficient of variation. */
export function lognormal(mean: number, cv: number): { mu: number; sigma: number } {
  const variance = Math.log(1 + cv * cv);
  return { mu: Math.log(mean) - variance / 2, sigma: Math.sqrt(variance) };
}
