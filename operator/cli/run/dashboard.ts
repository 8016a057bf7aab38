/** The page of `corelane dashboard` for a fleet of `corelane run`. */
import type { Engine } from '../../local/engine.ts';
import { Listener } from '../dashboard/listener.ts';
import { openSecretly } from '../dashboard/open-page.ts';
import { pageFiles } from '../dashboard/page-files.ts';
import { ASKED_HERE_MAX, LocalSource } from '../service/local-source.ts';

const INTERVAL_MS = 1_000;

export interface RunDashboardOptions {
  /** Of the service. */
  name: string;
  engine: Engine;
  print: (text: string) => void;
}

export class RunDashboard {
  readonly #with: RunDashboardOptions;
  #listener: Promise<Listener> | undefined;
  #forget = () => {};

  constructor(options: RunDashboardOptions) {
    this.#with = options;
  }

  /** Listens, and says where. */
  async start(): Promise<void> {
    const { url } = await this.#listening();
    this.#with.print(`dashboard: ${url}`);
  }

  /** Opens it in a browser, and says where it is, for there may be none. */
  async open(): Promise<void> {
    await this.start();
    const { url } = await this.#listening();
    this.#forget();
    this.#forget = openSecretly(url, () => this.#with.print('no browser could be opened: the address is above'));
  }

  close(): void {
    this.#forget();
    void this.#listener?.then((listener) => listener.close()).catch(() => {});
  }

  #listening(): Promise<Listener> {
    this.#listener ??= this.#listen();
    return this.#listener;
  }

  async #listen(): Promise<Listener> {
    const { name, engine } = this.#with;
    const source = new LocalSource(name, engine);
    const pace = { intervalMs: INTERVAL_MS, askedMax: ASKED_HERE_MAX };
    return Listener.start({ source, files: await pageFiles(), port: 0, ...pace });
  }
}
