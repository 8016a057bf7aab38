/**
 * Rows of a collection as they change, in the words of `kubectl get --watch`: a few hundred bytes for each change,
 * where the objects would keep both ends busy. The API server ends a watch now and then; the next one tells all there
 * is, so a row may come more than once.
 */
import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { Agent, fetch } from 'undici';
import { parse } from 'yaml';
import type { Row } from './arrivals.ts';

const ACCEPT = 'application/json;as=Table;v=v1;g=meta.k8s.io';
const AGAIN_MS = 200;

interface TableEvent {
  type: string;
  object: { columnDefinitions?: { name: string }[] | null; rows?: { cells: (string | number)[] }[] | null };
}

export class TableWatch {
  readonly #stop = new AbortController();
  readonly #agent: Agent;
  readonly #headers: Record<string, string>;
  readonly #url: string;

  /** @param path of the collection, with a query that may narrow it */
  constructor(kubeconfig: string, path: string, onRow: (row: Row, type: string) => void) {
    const { clusters, users } = parse(readFileSync(kubeconfig, 'utf8'));
    const { server, 'certificate-authority-data': authority } = clusters[0].cluster;
    this.#agent = new Agent({ bodyTimeout: 0, connect: { ca: Buffer.from(authority, 'base64') } });
    this.#headers = { authorization: `Bearer ${users[0].user.token}`, accept: ACCEPT };
    this.#url = `${server}${path}${path.includes('?') ? '&' : '?'}watch=true&includeObject=None`;
    void this.#run(onRow);
  }

  stop(): void {
    this.#stop.abort();
    void this.#agent.destroy();
  }

  async #run(onRow: (row: Row, type: string) => void): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      await this.#once(onRow).catch(() => undefined);
      await delay(AGAIN_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  async #once(onRow: (row: Row, type: string) => void): Promise<void> {
    const options = { headers: this.#headers, dispatcher: this.#agent, signal: this.#stop.signal };
    const { ok, body } = await fetch(this.#url, options);
    if (!ok || !body) return;
    const read = rowReader();
    let rest = '';
    const decoder = new TextDecoder();
    for await (const chunk of body) {
      const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) for (const { row, type } of read(line)) onRow(row, type);
    }
  }
}

/** Reads the lines of one watch: only the first has the names of the columns. */
export function rowReader(): (line: string) => { row: Row; type: string }[] {
  let names: string[] = [];
  return (line) => {
    const { type, object } = JSON.parse(line) as TableEvent;
    if (object.columnDefinitions?.length) names = object.columnDefinitions.map(({ name }) => name);
    return (object.rows ?? []).map(({ cells }) => ({
      type,
      row: Object.fromEntries(cells.map((cell, index) => [names[index] ?? '', cell])),
    }));
  };
}
