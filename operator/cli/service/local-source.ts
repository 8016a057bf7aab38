/** A service of `corelane run` on this machine: the engine knows its containers. */

import { readFigures } from '../../live/figures.ts';
import type { PodNow, Snapshot } from '../../live/snapshot.ts';
import { type RequestNow, readNow, readStalls, type Source, type WholeStall } from '../../live/source.ts';
import type { Engine } from '../../local/engine.ts';
import { findEngine } from '../../local/find-engine.ts';
import { request } from '../../local/http.ts';
import { supervisorPage } from '../../local/node-in.ts';
import { type PodParts, podParts } from '../../local/parts.ts';
import { PORTS, workerName } from '../../src/api/names.ts';
import { linesOf } from '../run/each-line.ts';

const PAGE_MS_MAX = 3_000;
const LINE_LENGTH_MAX = 8_192;
/** Busy workers that are to be asked in one look what they render: each question is a process in a container. */
export const ASKED_HERE_MAX = 8;

export class LocalSource implements Source {
  readonly #wanted: string | undefined;
  #engine: Engine | undefined;

  /**
   * @param name of the service; undefined: the only one that there is
   * @param engine undefined: the first that answers
   */
  constructor(name: string | undefined, engine?: Engine) {
    this.#wanted = name;
    this.#engine = engine;
  }

  async look(): Promise<Snapshot> {
    const { name, pods } = await this.#pods();
    return {
      ...{ name, atMs: Date.now(), status: {}, podsNotAsked: 0 },
      // A run has as many pods as its user wants; the workers say how many requests they take.
      bounds: { queueLength: 0, peersMax: 64, latencyMs: {} },
      pods: await Promise.all(pods.map(podNow)),
    };
  }

  async podNames(): Promise<string[]> {
    return (await this.#pods()).pods.map(({ name }) => name);
  }

  async requests(pod: string, worker: number): Promise<RequestNow[]> {
    return readNow(await this.#page(pod, worker, '/now'));
  }

  async stalls(pod: string, worker: number): Promise<WholeStall[]> {
    return readStalls(await this.#page(pod, worker, '/stalls'));
  }

  profile(pod: string, worker: number, seconds: number): Promise<string> {
    return this.#page(pod, worker, `/profile?seconds=${seconds}`);
  }

  async accessLog(pod: string, sinceSeconds: number, onLine: (line: string) => void): Promise<void> {
    const { nginx } = await this.#pod(pod);
    const child = (await this.#findEngine()).spawn(['logs', '--since', `${sinceSeconds}s`, nginx]);
    child.stderr.resume(); // errors of nginx
    await linesOf(child.stdout, LINE_LENGTH_MAX, onLine);
  }

  /** No operator runs here. */
  async events(): Promise<[]> {
    return [];
  }

  async close(): Promise<void> {}

  async #findEngine(): Promise<Engine> {
    this.#engine ??= (await findEngine()).engine;
    return this.#engine;
  }

  async #pods(): Promise<{ name: string; pods: PodParts[] }> {
    const all = await podParts(await this.#findEngine());
    const names = [...new Set(all.map(({ name }) => serviceOf(name)))];
    const [name = this.#wanted] = this.#wanted === undefined ? names : [this.#wanted];
    const pods = all.filter((pod) => serviceOf(pod.name) === name);
    if (name === undefined || pods.length === 0) {
      const others = names.length > 0 ? `; there is ${names.join(', ')}` : '; start one: corelane run FILE';
      throw new Error(`corelane run has no service${name === undefined ? '' : ` ${name}`} on this machine${others}`);
    }
    if (this.#wanted === undefined && names.length > 1)
      throw new Error(`corelane run has several services on this machine, name one: ${names.join(', ')}`);
    return { name, pods };
  }

  async #pod(name: string): Promise<PodParts> {
    const found = (await this.#pods()).pods.find((pod) => pod.name === name);
    if (!found) throw new Error(`pod ${name} is gone`);
    return found;
  }

  async #page(pod: string, worker: number, path: string): Promise<string> {
    const container = (await this.#pod(pod)).workers.get(workerName(worker)) ?? '';
    return supervisorPage(await this.#findEngine(), container, PORTS.firstWorkerRuntime + worker, path);
  }
}

/** Pods are numbered: storefront-1. */
function serviceOf(pod: string): string {
  return pod.replace(/-[0-9]+$/, '');
}

async function podNow({ name, statsPort, workers }: PodParts): Promise<PodNow> {
  const page = async (path: string) => {
    const { status, body } = await request(statsPort, path, { signal: AbortSignal.timeout(PAGE_MS_MAX) });
    if (status !== 200) throw new Error(`${path} answers ${status}`);
    return body;
  };
  const now = { name, revision: '', state: 'ready' as const };
  return readFigures(page, [...workers.keys()].toSorted(), Date.now()).then(
    (figures) => ({ ...now, figures }),
    (error: Error) => ({ ...now, state: 'not ready' as const, silence: error.message }),
  );
}
