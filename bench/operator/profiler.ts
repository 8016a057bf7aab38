/**
 * What takes the time and the memory of the operator, by its inspector: a profile of each phase and a snapshot of the
 * heap, as Chromium's tools read them. The operator runs from its sources then, so that lines are those of the files;
 * its figures are not those of the image.
 */
import { createWriteStream, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from '../../operator/test/support/eventually.ts';
import type { OperatorProcess } from '../../operator/test/support/operator-process.ts';

const INTERVAL_US = 2_000;
const ANSWER_MS = 180_000;

export class Profiler {
  readonly #folder: string;
  #session: Session | undefined;
  #name = '';

  /** @param folder for the files */
  constructor(folder: string) {
    mkdirSync(folder, { recursive: true });
    this.#folder = folder;
  }

  /** For the operator's NODE_OPTIONS. */
  readonly nodeOptions = ['--inspect=127.0.0.1:0'];

  async begin(operator: OperatorProcess, name: string): Promise<void> {
    this.#name = name;
    this.#session = await Session.open(operator);
    await this.#session.post('Profiler.enable');
    await this.#session.post('Profiler.setSamplingInterval', { interval: INTERVAL_US });
    await this.#session.post('Profiler.start');
  }

  async end(): Promise<void> {
    const answer = await this.#session?.post('Profiler.stop');
    writeFileSync(join(this.#folder, `${this.#name}.cpuprofile`), JSON.stringify(answer?.profile));
    this.#session?.close();
  }

  async snapshot(operator: OperatorProcess, name: string): Promise<void> {
    const session = await Session.open(operator);
    const file = createWriteStream(join(this.#folder, `${name}.heapsnapshot`));
    session.onChunk = (chunk) => file.write(chunk);
    await session.post('HeapProfiler.takeHeapSnapshot');
    session.close();
    await new Promise<void>((resolve) => file.end(resolve));
  }
}

/** A conversation with an inspector. */
class Session {
  readonly #socket: WebSocket;
  readonly #waiting = new Map<number, { resolve: (result: Json) => void; reject: (error: Error) => void }>();
  onChunk: (chunk: string) => void = () => {};
  #id = 0;

  private constructor(socket: WebSocket) {
    this.#socket = socket;
    socket.onmessage = ({ data }) => {
      const { id, result, error, method, params } = JSON.parse(String(data));
      if (method === 'HeapProfiler.addHeapSnapshotChunk') this.onChunk(params.chunk);
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error) waiting?.reject(new Error(error.message));
      else waiting?.resolve(result);
    };
  }

  static async open(operator: OperatorProcess): Promise<Session> {
    const url = await eventually('the inspector listens', () => {
      const [found] = /ws:\/\/\S+/.exec(operator.log) ?? [];
      if (!found) throw new Error('it does not');
      return found;
    });
    const socket = new WebSocket(url);
    await new Promise((resolve, reject) => {
      socket.onopen = resolve;
      socket.onerror = () => reject(new Error(`no inspector at ${url}`));
    });
    return new Session(socket);
  }

  async post(method: string, params: object = {}): Promise<Json> {
    const { promise, resolve, reject } = Promise.withResolvers<Json>();
    this.#id += 1;
    this.#waiting.set(this.#id, { resolve, reject });
    const timer = setTimeout(() => reject(new Error(`${method}: no answer`)), ANSWER_MS);
    this.#socket.send(JSON.stringify({ id: this.#id, method, params }));
    return await promise.finally(() => clearTimeout(timer));
  }

  close(): void {
    this.#socket.close();
  }
}

// biome-ignore lint/suspicious/noExplicitAny: answers of the inspector
type Json = any;
