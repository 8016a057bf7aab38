/** Pages of pods through the API server, without a process for each: every kubectl costs some 70 ms of CPU. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { KUBECONFIG } from './cluster.ts';

const ANSWER_MS_MAX = 10_000;

/** `kubectl proxy`, for as long as a story needs it. */
export class ApiProxy {
  #child?: ChildProcess;
  #url = '';

  /** @throws Error when kubectl does not tell where it listens */
  async start(): Promise<void> {
    const child = spawn('kubectl', ['--kubeconfig', KUBECONFIG, 'proxy', '--port=0'], {
      env: process.env,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    this.#child = child;
    const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string];
    const address = /^Starting to serve on ([0-9.]+:[0-9]+)$/.exec(line)?.[1];
    if (!address) throw new Error(`kubectl proxy does not say where it listens: ${line}`);
    this.#url = `http://${address}`;
  }

  /**
   * A page of a pod.
   * @throws Error with the status and the answer when it is not 2xx
   */
  async page(namespace: string, pod: string, port: number, path: string): Promise<string> {
    const url = `${this.#url}/api/v1/namespaces/${namespace}/pods/${pod}:${port}/proxy${path}`;
    const response = await fetch(url, { signal: AbortSignal.timeout(ANSWER_MS_MAX) });
    const text = await response.text();
    if (!response.ok) throw new Error(`${pod}:${port}${path}: ${response.status} ${text.slice(0, 500)}`);
    return text;
  }

  stop(): void {
    this.#child?.kill();
  }
}
