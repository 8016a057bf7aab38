/** A page of a process of this machine, read again and again, for who cannot reach it. */
import { setTimeout as sleep } from 'node:timers/promises';

const EVERY_MS = 300;
const ANSWER_MS = 2_000;

export class Mirror {
  readonly #url: () => string;
  readonly #onPage: (text: string) => void;
  readonly #over = new AbortController();
  readonly #looking: Promise<void>;

  /**
   * @param url where it is now; the process may be replaced by another one
   * @param onPage gets the page, empty while nobody answers
   */
  constructor(url: () => string, onPage: (text: string) => void) {
    this.#url = url;
    this.#onPage = onPage;
    this.#looking = this.#look();
  }

  /** One that is just asking gives that up: a question that outlives its asker asks for ever. */
  async stop(): Promise<void> {
    this.#over.abort();
    await this.#looking;
  }

  async #look(): Promise<void> {
    const { signal } = this.#over;
    while (!signal.aborted) {
      const text = await this.#page(AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)]));
      if (signal.aborted) return;
      this.#onPage(text);
      await sleep(EVERY_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  async #page(signal: AbortSignal): Promise<string> {
    try {
      return await (await fetch(this.#url(), { signal })).text();
    } catch {
      return '';
    }
  }
}
