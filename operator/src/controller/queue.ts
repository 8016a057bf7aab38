/**
 * Queue of keys, after client-go's workqueue. Invariants:
 *   - a key waits at most once (`dirty`), however often it is added;
 *   - a key is worked on by at most one worker (`processing`); added meanwhile, it waits again when that is done;
 *   - an urgent key goes before those that are not, but after so many of them in a row one that is not is taken;
 *   - what is not urgent leaves a place free, so that what is begins at once;
 *   - a failed key comes back after a delay that doubles from 50 ms to 5 min, alone: others are not held up;
 *   - what fails again before that, because of an event, does not double it: ten events in a second, at an API server
 *     whose watch is late, would else mean five minutes.
 * It takes keys from `start` to `stop` only: who starts it adds all there are.
 */
const RETRY_MIN_MS = 50;
const RETRY_MAX_MS = 300_000;
/** Urgent keys in a row while others wait. */
const URGENT_MAX = 4;
/** Of so many places one is left to urgent keys. */
const PLACES_PER_URGENT = 4;
/** What a timer can wait; of more it makes one millisecond. */
const DELAY_MAX_MS = 2 ** 31 - 1;

export interface Outcome {
  /** Work on the key again after this time although nothing has changed. */
  requeueAfterMs?: number;
  /** Nothing more can be done until somebody changes something. */
  isStalled?: boolean;
}

/** @param failures how often the key has failed in a row */
export type Work = (key: string, failures: number) => Promise<Outcome>;

export class WorkQueue {
  readonly #work: Work;
  readonly #concurrency: number;
  readonly #onError: (key: string, error: unknown, retryMs: number) => void;
  /** Keys that wait, in the order of their coming. Each is in one of them. */
  readonly #urgent = new Set<string>();
  readonly #dirty = new Set<string>();
  /** Urgent keys that were taken since one that is not. */
  #urgentInRow = 0;
  /** Keys that are worked on and are not urgent. */
  #ordinary = 0;
  readonly #processing = new Map<string, Promise<void>>();
  readonly #failures = new Map<string, number>();
  readonly #timers = new Map<string, { timer: NodeJS.Timeout; dueMs: number; isRetry: boolean }>();
  #isTaking = false;

  constructor(work: Work, concurrency: number, onError: (key: string, error: unknown, retryMs: number) => void) {
    this.#work = work;
    this.#concurrency = concurrency;
    this.#onError = onError;
  }

  /** Keys that wait or are worked on. */
  get depth(): number {
    return this.#urgent.size + this.#dirty.size + this.#processing.size;
  }

  start(): void {
    this.#isTaking = true;
  }

  /** @param isUrgent whether somebody waits for it; what waits already becomes so */
  add(key: string, isUrgent = false): void {
    if (!this.#isTaking) return;
    if (isUrgent) this.#dirty.delete(key);
    if (isUrgent || this.#urgent.has(key)) this.#urgent.add(key);
    else this.#dirty.add(key);
    this.#dispatch();
  }

  /** Adds the key after a delay, of 24 days at most; of several delays the one that ends first counts. */
  addAfter(key: string, wantedMs: number): void {
    this.#addAfter(key, wantedMs, { isRetry: false, isUrgent: false });
  }

  #addAfter(key: string, wantedMs: number, { isRetry, isUrgent }: { isRetry: boolean; isUrgent: boolean }): void {
    const delayMs = Math.min(wantedMs, DELAY_MAX_MS);
    const dueMs = performance.now() + delayMs;
    const pending = this.#timers.get(key);
    if (!this.#isTaking || (pending && pending.dueMs <= dueMs)) return;
    clearTimeout(pending?.timer);
    const timer = setTimeout(() => {
      this.#timers.delete(key);
      this.add(key, isUrgent);
    }, delayMs);
    this.#timers.set(key, { timer, dueMs, isRetry });
  }

  /** Takes nothing more and resolves when what is being worked on is done. */
  async stop(): Promise<void> {
    this.#isTaking = false;
    this.#urgent.clear();
    this.#dirty.clear();
    for (const { timer } of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
    await Promise.all(this.#processing.values());
  }

  #dispatch(): void {
    for (let next = this.#take(); next; next = this.#take())
      this.#processing.set(next.key, this.#run(next.key, next.isUrgent));
  }

  /** What is to be worked on next, and then no longer waits. */
  #take(): { key: string; isUrgent: boolean } | undefined {
    if (this.#processing.size >= this.#concurrency) return undefined;
    const isTheirTurn = this.#urgentInRow >= URGENT_MAX;
    const hasPlace = this.#ordinary < this.#concurrency - Math.floor(this.#concurrency / PLACES_PER_URGENT);
    const ordinary = isTheirTurn || hasPlace ? this.#firstIdle(this.#dirty) : undefined;
    const urgent = isTheirTurn && ordinary !== undefined ? undefined : this.#firstIdle(this.#urgent);
    const key = urgent ?? ordinary;
    if (key === undefined) return undefined;
    this.#urgent.delete(key);
    this.#dirty.delete(key);
    const isUrgent = urgent !== undefined;
    this.#urgentInRow = isUrgent ? this.#urgentInRow + 1 : 0;
    return { key, isUrgent };
  }

  /** The first that is not being worked on. */
  #firstIdle(keys: Set<string>): string | undefined {
    for (const key of keys) if (!this.#processing.has(key)) return key;
    return undefined;
  }

  async #run(key: string, isUrgent: boolean): Promise<void> {
    if (!isUrgent) this.#ordinary += 1;
    try {
      const { requeueAfterMs } = await this.#work(key, this.#failures.get(key) ?? 0);
      this.#succeeded(key);
      if (requeueAfterMs !== undefined) this.addAfter(key, requeueAfterMs);
    } catch (error) {
      this.#onError(key, error, this.#retry(key, isUrgent));
    } finally {
      if (!isUrgent) this.#ordinary -= 1;
      this.#processing.delete(key);
      this.#dispatch();
    }
  }

  #succeeded(key: string): void {
    this.#failures.delete(key);
    const pending = this.#timers.get(key);
    if (!pending?.isRetry) return;
    clearTimeout(pending.timer);
    this.#timers.delete(key);
  }

  /** Returns the time until the next try. */
  #retry(key: string, isUrgent: boolean): number {
    const pending = this.#timers.get(key);
    if (pending?.isRetry) return Math.max(0, Math.round(pending.dueMs - performance.now()));
    const failures = this.#failures.get(key) ?? 0;
    const retryMs = Math.min(RETRY_MIN_MS * 2 ** failures, RETRY_MAX_MS);
    this.#failures.set(key, failures + 1);
    this.#addAfter(key, retryMs, { isRetry: true, isUrgent });
    return retryMs;
  }
}
