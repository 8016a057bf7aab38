/** What the pages of `corelane dashboard` are told: looks while somebody watches, and what the last minutes were. */
import { type PageFrame, type Point, pageFrame } from '../../live/page-frame.ts';
import type { Snapshot } from '../../live/snapshot.ts';
import type { Source } from '../../live/source.ts';
import { type Entry, entriesOf, entriesOfEvents, merged } from '../../live/timeline.ts';
import { Watching } from '../service/watching.ts';

/** Looks that a lane shows. */
const MARKS = 60;
/** A quarter of an hour of looks, two seconds apart. */
const POINTS_MAX = 450;
const ENTRIES_MAX = 200;
/** Events change seldom. */
const EVENTS_EVERY_MS = 15_000;

/** What a page is told, by the name of the event. */
export interface Told {
  /** To one that has just come. */
  history: { points: Point[]; entries: Entry[] };
  frame: PageFrame;
  /** A look has failed. The last frame stays. */
  trouble: { message: string };
}

export type Listener = <Name extends keyof Told>(name: Name, value: Told[Name]) => void;

export class Feed {
  readonly #source: Source;
  readonly #intervalMs: number;
  readonly #watching: Watching;
  readonly #listeners = new Set<Listener>();
  #points: Point[] = [];
  #entries: Entry[] = [];
  #notes: string[] = [];
  #last: Snapshot | undefined;
  #frame: PageFrame | undefined;
  #trouble: string | undefined;
  #eventsAtMs = Number.NEGATIVE_INFINITY;
  #timer: NodeJS.Timeout | undefined;
  #isLooking = false;

  /** @param askedMax busy workers that are asked what they render, those that stand still first */
  constructor(source: Source, { intervalMs, askedMax }: { intervalMs: number; askedMax: number }) {
    this.#source = source;
    this.#intervalMs = intervalMs;
    this.#watching = new Watching(source, { marksMax: MARKS, askedMax });
  }

  /**
   * Calls the listener for what is known, and for each look from now on. Nobody is looked at for nobody.
   * @returns ends that
   */
  listen(listener: Listener): () => void {
    listener('history', { points: this.#points, entries: this.#entries });
    if (this.#frame) listener('frame', { ...this.#frame, entries: [] });
    if (this.#trouble !== undefined) listener('trouble', { message: this.#trouble });
    this.#listeners.add(listener);
    if (!this.#timer && !this.#isLooking) void this.#lookAgain();
    return () => this.#listeners.delete(listener);
  }

  /** Whether there is such a worker, as far as the last look has seen. */
  knows(pod: string, worker: number): boolean {
    return this.#frame?.lanes.some((lane) => lane.pod === pod && lane.worker.name === `worker-${worker}`) === true;
  }

  close(): void {
    this.#listeners.clear();
    clearTimeout(this.#timer);
  }

  async #lookAgain(): Promise<void> {
    this.#timer = undefined;
    if (this.#listeners.size === 0) return;
    this.#isLooking = true;
    await this.#look();
    this.#isLooking = false;
    if (this.#listeners.size > 0) this.#timer = setTimeout(() => void this.#lookAgain(), this.#intervalMs);
  }

  async #look(): Promise<void> {
    try {
      const looked = await this.#watching.look();
      const entries = [...(await this.#events()), ...entriesOf(looked.snapshot, this.#last)];
      const before = new Set(this.#entries);
      this.#entries = merged(this.#entries, entries, ENTRIES_MAX);
      this.#frame = pageFrame(looked, this.#last, {
        entries: this.#entries.filter((entry) => !before.has(entry)),
        notes: this.#notes,
      });
      this.#points = [...this.#points, this.#frame.point].slice(-POINTS_MAX);
      this.#last = looked.snapshot;
      this.#trouble = undefined;
      this.#tell('frame', this.#frame);
    } catch (error) {
      this.#trouble = (error as Error).message;
      this.#tell('trouble', { message: this.#trouble });
    }
  }

  /**
   * Who may not list Events, or cannot, because somebody has made more of them than are read, has the steps that the
   * status tells, and is told so.
   */
  async #events(): Promise<Entry[]> {
    const now = performance.now();
    if (now - this.#eventsAtMs < EVENTS_EVERY_MS) return [];
    this.#eventsAtMs = now;
    const events = await this.#source.events().catch((error: Error) => error);
    if (Array.isArray(events)) {
      this.#notes = [];
      return entriesOfEvents(events);
    }
    this.#notes = [`Events are not shown: ${events?.message ?? 'listing them is not allowed'}`];
    return [];
  }

  #tell<Name extends keyof Told>(name: Name, value: Told[Name]): void {
    for (const listener of this.#listeners) listener(name, value);
  }
}
