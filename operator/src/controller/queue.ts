/**
 * Queue of keys, after client-go's workqueue. Invariants:
 *   - a key waits at most once (`dirty`), however often it is added;
 *   - a key is worked on by at most one worker (`processing`); added meanwhile, it waits again when that is done;
 *   - a failed key comes back after a delay that doubles from 50 ms to 5 min, alone: others are not held up.
 * It takes keys from `start` to `stop` only: who starts it adds all there are.
 */
const RETRY_MIN_MS = 50;
const RETRY_MAX_MS = 300_000;

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
  readonly #dirty = new Set<string>();
  readonly #processing = new Map<string, Promise<void>>();
  readonly #failures = new Map<string, number>();
  readonly #timers = new Map<string, { timer: NodeJS.Timeout; dueMs: number }>();
  #isTaking = false;

  constructor(work: Work, concurrency: number, onError: (key: string, error: unknown, retryMs: number) => void) {
    this.#work = work;
    this.#concurrency = concurrency;
    this.#onError = onError;
  }

  /** Keys that wait or are worked on. */
  get depth(): number {
    return this.#dirty.size + this.#processing.size;
  }

  start(): void {
    this.#isTaking = true;
  }

  add(key: string): void {
    if (!this.#isTaking) return;
    this.#dirty.add(key);
    this.#dispatch();
  }

  /** Adds the key after a delay; of several delays the one that ends first counts. */
  addAfter(key: string, delayMs: number): void {
    const dueMs = performance.now() + delayMs;
    const pending = this.#timers.get(key);
    if (!this.#isTaking || (pending && pending.dueMs <= dueMs)) return;
    clearTimeout(pending?.timer);
    const timer = setTimeout(() => {
      this.#timers.delete(key);
      this.add(key);
    }, delayMs);
    this.#timers.set(key, { timer, dueMs });
  }

  /** Takes nothing more and resolves when what is being worked on is done. */
  async stop(): Promise<void> {
    this.#isTaking = false;
    this.#dirty.clear();
    for (const { timer } of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
    await Promise.all(this.#processing.values());
  }

  #dispatch(): void {
    for (const key of this.#dirty) {
      if (this.#processing.size >= this.#concurrency) return;
      if (this.#processing.has(key)) continue;
      this.#dirty.delete(key);
      this.#processing.set(key, this.#run(key));
    }
  }

  async #run(key: string): Promise<void> {
    try {
      const { requeueAfterMs } = await this.#work(key, this.#failures.get(key) ?? 0);
      this.#failures.delete(key);
      if (requeueAfterMs !== undefined) this.addAfter(key, requeueAfterMs);
    } catch (error) {
      const failures = this.#failures.get(key) ?? 0;
      const retryMs = Math.min(RETRY_MIN_MS * 2 ** failures, RETRY_MAX_MS);
      this.#failures.set(key, failures + 1);
      this.#onError(key, error, retryMs);
      this.addAfter(key, retryMs);
    } finally {
      this.#processing.delete(key);
      this.#dispatch();
    }
  }
}
