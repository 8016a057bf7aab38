/** The requests of a RenderService over the last minutes, from what its pods have counted. */
import { addCounts, type RequestCounts } from './request-counts.ts';

/** The figures of status are about the requests of so many seconds. */
export const WINDOW_SECONDS = 300;
const WINDOW_MS = 1000 * WINDOW_SECONDS;
/** As often as pods are asked. Kept for each RenderService and not for each pod: there may be 20,000. */
const SLICE_MS = 15_000;

export interface Totals extends RequestCounts {
  /** Time that they are about: shorter while this process has not been looking for that long. */
  seconds: number;
}

const NONE: RequestCounts = { answered: 0, failed: 0, timed: 0, within: new Map() };

export class RequestWindow {
  readonly #beganMs: number;
  #slices: { fromMs: number; counts: RequestCounts }[] = [];

  constructor(nowMs: number) {
    this.#beganMs = nowMs;
  }

  add(counts: RequestCounts, nowMs: number): void {
    this.#forget(nowMs);
    const last = this.#slices.at(-1);
    if (last && nowMs - last.fromMs < SLICE_MS) last.counts = addCounts(last.counts, counts);
    else this.#slices.push({ fromMs: nowMs, counts });
  }

  totals(nowMs: number): Totals {
    this.#forget(nowMs);
    const counts = this.#slices.reduce((total, slice) => addCounts(total, slice.counts), NONE);
    return { ...counts, seconds: Math.round(Math.min(WINDOW_MS, nowMs - this.#beganMs) / 1000) };
  }

  #forget(nowMs: number): void {
    this.#slices = this.#slices.filter(({ fromMs }) => fromMs > nowMs - WINDOW_MS);
  }
}
