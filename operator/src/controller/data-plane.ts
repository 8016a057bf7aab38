/**
 * Gives services their turn (operator/src/turns). The reconciler reports how each service stands, asks before it makes
 * other pods for one, and is told whom to look at again.
 */

import { type Pace, type Standing, type Turns, turnsOf } from '../turns/turns.ts';
import { isOpen, type Window } from '../turns/window.ts';

/** A window opens, and a pause ends, at some time: no more than so late. */
const LOOK_MS_MAX = 30_000;

export interface DataPlaneOptions {
  pace: Pace;
  window: Window | undefined;
  /** Keys of all RenderServices: nobody's turn comes before it is known how each of them stands. */
  keys: () => string[];
  /** Why nobody may begin at the moment, but for the window. */
  obstacle: () => string | undefined;
  /** Called with services that are to be looked at. */
  onTurn: (key: string) => void;
  nowMs: () => number;
}

const NOTHING_KNOWN = { isWaiting: false, isHealthy: false, wasRenewed: false, hadTurn: false, hasFailed: false };

export class DataPlane {
  readonly #options: DataPlaneOptions;
  readonly #standings = new Map<string, Standing>();
  /** Whose turn has come, and who has not reported since that it has the new pods. */
  readonly #granted = new Set<string>();
  /** Of these, whose new pods were refused. */
  readonly #refused = new Set<string>();
  /** Whether it was known of all services at a time how they stand. */
  #isKnown = false;
  #heldBy: string | undefined;
  #obstacle: string | undefined;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: DataPlaneOptions) {
    this.#options = options;
  }

  /** False until every service has reported once: one that holds the others may not have. */
  get isKnown(): boolean {
    return this.#isKnown;
  }

  get pauseMs(): number {
    return this.#options.pace.pauseMs;
  }

  /** Whether the service may have its new pods now. */
  isTurnOf(key: string): boolean {
    if (this.#granted.has(key)) return true;
    if (!this.#turns().next.includes(key)) return false;
    this.#granted.add(key);
    return true;
  }

  /** Notes how a service stands. */
  report(key: string, standing: Omit<Standing, 'key'>): void {
    if (!standing.isWaiting) this.#granted.delete(key);
    if (!standing.isWaiting) this.#refused.delete(key);
    this.#note({ key, ...standing });
  }

  /**
   * A reconcile has come to nothing.
   * @param forGood whether it is no use to try again (a spec that is none, new pods that the API server refuses), or
   *   has been for long: nobody else's turn would come, without a word
   */
  stopped(key: string, forGood: boolean): void {
    const before = this.#standings.get(key) ?? { key, ...NOTHING_KNOWN };
    if (forGood && this.#granted.has(key)) this.#refused.add(key);
    this.#note(forGood ? { ...before, isHealthy: false, hasFailed: before.hadTurn } : before);
  }

  #note(standing: Standing): void {
    const before = this.#standings.get(standing.key);
    this.#standings.set(standing.key, standing);
    if (JSON.stringify(before) !== JSON.stringify(standing) || this.#refused.has(standing.key)) this.#wake();
  }

  /** Forgets a service that is gone. */
  forget(key: string): void {
    this.#granted.delete(key);
    this.#refused.delete(key);
    if (this.#standings.delete(key)) this.#wake();
  }

  /** Why a service that waits does not begin; undefined if nothing but its turn is missing. */
  whyNot(): { heldBy?: string; obstacle?: string } {
    const { heldBy } = this.#turns();
    const obstacle = this.#closed();
    return { ...(heldBy && { heldBy }), ...(obstacle && { obstacle }) };
  }

  /** For metrics. */
  get figures(): { waiting: number; held: number } {
    const waiting = [...this.#standings.values()].filter(({ isWaiting }) => isWaiting).length;
    return { waiting, held: this.#heldBy === undefined ? 0 : 1 };
  }

  stop(): void {
    clearTimeout(this.#timer);
  }

  #turns(): Turns {
    const all = [...this.#standings.values()].map((one) => {
      const { key } = one;
      if (!this.#granted.has(key)) return one;
      return { ...one, hadTurn: true, hasFailed: this.#refused.has(key), healthySinceMs: undefined };
    });
    const areKnown = this.#areKnown();
    const { pace, nowMs } = this.#options;
    return turnsOf(all, pace, nowMs(), areKnown && this.#closed() === undefined);
  }

  #areKnown(): boolean {
    return this.#options.keys().every((key) => this.#standings.has(key));
  }

  #closed(): string | undefined {
    const { window, obstacle, nowMs } = this.#options;
    return obstacle() ?? (window && !isOpen(window, nowMs()) ? 'the window is closed' : undefined);
  }

  /** Lets those be looked at whose turn it is; all that wait when there is another reason for it. */
  #wake(): void {
    const { next, heldBy, againMs } = this.#turns();
    const obstacle = this.#closed();
    const waiting = [...this.#standings.values()].filter(({ isWaiting }) => isWaiting).map(({ key }) => key);
    const wasKnown = this.#isKnown;
    this.#isKnown ||= this.#areKnown();
    const isNews = heldBy !== this.#heldBy || obstacle !== this.#obstacle || wasKnown !== this.#isKnown;
    this.#heldBy = heldBy;
    this.#obstacle = obstacle;
    for (const key of isNews ? waiting : next) this.#options.onTurn(key);
    clearTimeout(this.#timer);
    if (waiting.length === 0) return;
    const waitMs = Math.min(Math.max(0, (againMs ?? Number.POSITIVE_INFINITY) - this.#options.nowMs()), LOOK_MS_MAX);
    // A process that has lost the lead must end, and a timer would keep it.
    this.#timer = setTimeout(() => this.#wake(), waitMs + 1).unref();
  }
}
