/** A limit on how often something may happen: a burst, and a rate after it. */
export class TokenBucket {
  readonly #burst: number;
  readonly #everyMs: number;
  readonly #now: () => number;
  #tokens: number;
  #atMs: number;

  /**
   * @param burst how often at once
   * @param everyMs then once in so many milliseconds
   */
  constructor(burst: number, everyMs: number, now: () => number = () => performance.now()) {
    this.#burst = burst;
    this.#everyMs = everyMs;
    this.#now = now;
    this.#tokens = burst;
    this.#atMs = now();
  }

  /** Takes one if there is one. */
  take(): boolean {
    this.#refill();
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }

  /** As if it had never been used. */
  get isFull(): boolean {
    this.#refill();
    return this.#tokens === this.#burst;
  }

  #refill(): void {
    const now = this.#now();
    this.#tokens = Math.min(this.#burst, this.#tokens + (now - this.#atMs) / this.#everyMs);
    this.#atMs = now;
  }
}
