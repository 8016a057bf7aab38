/** `corelane top` on a terminal: looks, keys, and one frame after the other. */

import { frame, inOrder, type Lane, ORDERS, type View } from '../../live/lanes.ts';
import type { Source } from '../../live/source.ts';
import { FullScreen } from '../full-screen.ts';
import { fileName, writeProfile } from '../profile.ts';
import { readKeys } from '../run/keys.ts';
import { SIGNALS } from '../signals.ts';
import { drawn } from './drawn.ts';
import { indexOf, Watching } from './watching.ts';

const PROFILE_SECONDS = 10;

/** What a key does to a view. */
type Change = Partial<Pick<View, 'order' | 'chosen' | 'panel' | 'message'>>;

export class LiveTop {
  readonly #source: Source;
  readonly #intervalMs: number;
  readonly #watching: Watching;
  readonly #screen: FullScreen;
  #view: View | undefined;
  #error = '';
  #isProfiling = false;
  #timer: NodeJS.Timeout | undefined;
  #isOver = false;
  #end!: () => void;

  constructor(source: Source, intervalMs: number) {
    this.#source = source;
    this.#intervalMs = intervalMs;
    this.#watching = new Watching(source);
    this.#screen = new FullScreen(process.stdout, () => this.#draw());
  }

  /** Until somebody presses q, or a signal comes. @throws Error when the first look fails */
  async run(): Promise<void> {
    const isOver = new Promise<void>((resolve) => {
      this.#end = resolve;
    });
    const end = () => this.#end();
    for (const signal of SIGNALS) process.on(signal, end);
    // What it cannot find is said where it stays.
    await this.#look();
    if (!this.#view) throw new Error(this.#error);
    this.#screen.open();
    const unread = readKeys(process.stdin, (key) => this.#press(key));
    try {
      this.#draw();
      this.#lookAgain();
      await isOver;
    } finally {
      this.#isOver = true;
      clearTimeout(this.#timer);
      unread();
      this.#screen.close();
      for (const signal of SIGNALS) process.off(signal, end);
    }
  }

  #lookAgain(): void {
    this.#timer = setTimeout(async () => {
      await this.#look();
      this.#draw();
      if (!this.#isOver) this.#lookAgain();
    }, this.#intervalMs);
  }

  async #look(): Promise<void> {
    try {
      const seen = await this.#watching.look();
      const { order = 'stuck', chosen = 0, panel = [], message = '' } = this.#view ?? {};
      this.#view = { ...seen, order, panel, message, chosen: Math.min(chosen, Math.max(0, seen.lanes.length - 1)) };
      this.#error = '';
    } catch (error) {
      // The last view stays.
      this.#error = (error as Error).message;
    }
  }

  #draw(): void {
    if (!this.#view || this.#isOver) return;
    const message = this.#error || this.#view.message;
    const lines = frame({ ...this.#view, message }, { ...this.#screen.size, hasKeys: true });
    this.#screen.draw(lines.map(drawn));
  }

  #change(change: Change): void {
    if (this.#view) this.#view = { ...this.#view, ...change };
    this.#draw();
  }

  #press(key: string): void {
    const view = this.#view;
    if (key === 'q') this.#end();
    if (!view) return;
    const lane = inOrder(view.lanes, view.order)[view.chosen];
    if (key === 'j' || key === 'down') this.#choose(view, 1);
    else if (key === 'k' || key === 'up') this.#choose(view, -1);
    else if (key === 'o')
      this.#change({ order: ORDERS[(ORDERS.indexOf(view.order) + 1) % ORDERS.length], message: '' });
    else if (key === 's' && lane) void this.#showStack(lane);
    else if (key === 'p' && lane) void this.#profile(lane);
  }

  /** A panel is about the lane that was chosen when it came. */
  #choose({ chosen, lanes }: View, step: number): void {
    this.#change({ chosen: Math.max(0, Math.min(chosen + step, lanes.length - 1)), panel: [], message: '' });
  }

  async #showStack({ pod, worker, ...lane }: Lane): Promise<void> {
    const who = `${worker.name} of ${pod}`;
    this.#change({ panel: [], message: `asking for the last stack of ${who}` });
    try {
      const last = (await this.#source.stalls(pod, indexOf({ pod, worker, ...lane }))).at(-1);
      const panel = last
        ? [
            '',
            `${who} stuck ${last.seconds} s at ${last.time} in ${last.in}; requests: ${last.requests.join(', ') || 'none'}`,
            ...last.stack.map((one) => `    at ${one}`),
          ]
        : ['', `${who} has not been stuck since its supervisor began`];
      this.#change({ panel, message: '' });
    } catch (error) {
      this.#change({ message: `no stack of ${who}: ${(error as Error).message}` });
    }
  }

  async #profile(lane: Lane): Promise<void> {
    if (this.#isProfiling) return;
    this.#isProfiling = true;
    const who = `${lane.worker.name} of ${lane.pod}`;
    this.#change({ message: `profiling ${who} for ${PROFILE_SECONDS} s` });
    try {
      const json = await this.#source.profile(lane.pod, indexOf(lane), PROFILE_SECONDS);
      const { files } = writeProfile(json, fileName(lane.pod, lane.worker.name), who);
      this.#change({ message: `profile of ${who}: ${files.join(', ')}` });
    } catch (error) {
      this.#change({ message: `no profile of ${who}: ${(error as Error).message}` });
    }
    this.#isProfiling = false;
  }
}
