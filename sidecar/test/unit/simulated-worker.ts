/**
 * A worker on one CPU, simulated: an event loop that runs what is ready in the order in which it became ready, to its
 * end. A render is CPU, wait, CPU, wait ... CPU. It counts time and idle time by requests in progress, as the
 * concurrency limiter does.
 */
import { lognormal, type Random } from '../../../operator/simulate/random.ts';

/** Milliseconds of CPU and of waiting in turn; begins and ends with CPU. */
export type Phases = number[];

interface Render {
  cpuMs: number;
  variation?: number;
  waitMs?: number;
  waits?: number;
  waitVariation?: number;
}

/** Reading the request and sending the response: so long idles every render. */
const IO_MS = 0.3;

/** One of the values of that mean and variation. */
function varied(random: Random, mean: number, variation: number): number {
  const { mu, sigma } = lognormal(mean, variation);
  return Math.exp(mu + sigma * random.normal());
}

/** A render whose CPU and waits vary as those of real pages do. */
export function render(
  random: Random,
  { cpuMs, variation = 0.7, waitMs = 0, waits = 1, waitVariation = 1 }: Render,
): Phases {
  const cpu = varied(random, cpuMs, variation);
  if (waitMs === 0) return [cpu / 2, IO_MS, cpu / 2];
  const parts = Array.from({ length: waits + 1 }, () => 0.2 + random.fraction());
  const sum = parts.reduce((one, other) => one + other, 0);
  return parts.flatMap((part, index) => {
    const own = (cpu * part) / sum;
    return index < waits ? [own, varied(random, waitMs / waits, waitVariation)] : [own];
  });
}

interface Going {
  phases: Phases;
  next: number;
}

export class SimulatedWorker {
  nowMs = 0;
  limit = 1;
  ended = 0;
  activeMax = 0;
  readonly timeMs: number[];
  readonly idleMs: number[];
  #active = 0;
  #queued = 0;
  #nextArrivalMs: number;
  #ready: Going[] = [];
  #waiting: { untilMs: number; going: Going }[] = [];
  readonly #make: () => Phases;
  readonly #gapMs: () => number;

  /**
   * @param make the next render
   * @param gapMs until the next request comes; undefined: there are always some in the queue
   */
  constructor(levels: number, make: () => Phases, gapMs?: () => number) {
    this.timeMs = new Array(levels + 1).fill(0);
    this.idleMs = new Array(levels + 1).fill(0);
    this.#make = make;
    this.#gapMs = gapMs ?? (() => 0);
    this.#nextArrivalMs = gapMs ? gapMs() : Number.POSITIVE_INFINITY;
    if (!gapMs) this.#queued = Number.POSITIVE_INFINITY;
  }

  run(ms: number): void {
    const endMs = this.nowMs + ms;
    while (this.nowMs < endMs) this.#step(endMs);
  }

  #step(endMs: number): void {
    this.#admit();
    const going = this.#ready.shift();
    if (going) {
      this.#compute(going);
      return;
    }
    const wakes = this.#waiting.reduce((least, { untilMs }) => Math.min(least, untilMs), this.#nextArrivalMs);
    this.#pass(Math.min(wakes, endMs) - this.nowMs, true);
    this.#wake();
  }

  #admit(): void {
    for (; this.#nextArrivalMs <= this.nowMs; this.#nextArrivalMs += this.#gapMs()) this.#queued += 1;
    for (; this.#queued > 0 && this.#active < this.limit; this.#queued -= 1) {
      this.#active += 1;
      this.activeMax = Math.max(this.activeMax, this.#active);
      this.#ready.push({ phases: this.#make(), next: 0 });
    }
  }

  #compute(going: Going): void {
    this.#pass(going.phases[going.next] ?? 0, false);
    const waitMs = going.phases[going.next + 1];
    if (waitMs === undefined) {
      this.#active -= 1;
      this.ended += 1;
    } else this.#waiting.push({ untilMs: this.nowMs + waitMs, going: { ...going, next: going.next + 2 } });
    this.#wake();
  }

  #pass(ms: number, isIdle: boolean): void {
    this.nowMs += ms;
    this.timeMs[this.#active] = (this.timeMs[this.#active] ?? 0) + ms;
    if (isIdle) this.idleMs[this.#active] = (this.idleMs[this.#active] ?? 0) + ms;
  }

  #wake(): void {
    const due = this.#waiting.filter(({ untilMs }) => untilMs <= this.nowMs);
    if (due.length === 0) return;
    this.#waiting = this.#waiting.filter(({ untilMs }) => untilMs > this.nowMs);
    due.sort((one, other) => one.untilMs - other.untilMs);
    this.#ready.push(...due.map(({ going }) => going));
  }
}
