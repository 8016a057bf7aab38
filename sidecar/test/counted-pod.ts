/** A pod whose page of metrics is held against its access log: it counts what is sent to it. */
import { type Answer, Pod, until } from '../../e2e/harness/engine/pod.ts';
import type { RenderServiceSpecInput } from '../../operator/src/api/spec.ts';
import { countedOf, ofNginx, pageAndLog, samplesOf } from './metrics.ts';

/** Series of a pod of four workers without the cache: twenty thousand pods are two and a half million. */
const SERIES_MAX = 120;
export const WORKERS = 4;
export const WORKER_IDS = Array.from({ length: WORKERS }, (_unused, n) => String(n));

/** Status and reason of an answer. */
export const error = ({ status, headers }: Answer) => [status, headers['x-corelane-error']];

export class CountedPod {
  readonly pod: Pod;
  /** Requests that have been sent to the pod, and have ended. */
  sent = 0;

  private constructor(pod: Pod) {
    this.pod = pod;
  }

  /** Starts one of four workers. */
  static async start(input: Partial<RenderServiceSpecInput>): Promise<CountedPod> {
    return new CountedPod(await Pod.start({ workersPerPod: WORKERS, ...input }));
  }

  get(path: string, call?: Parameters<Pod['get']>[1]): Promise<Answer> {
    this.sent += 1;
    return this.pod.get(path, call);
  }

  /** Waits until all workers are up. */
  allUp(): Promise<unknown> {
    return Promise.all(WORKER_IDS.map((n) => until(`worker-${n} is up`, () => this.pod.isUp(Number(n)))));
  }

  /** All workers have a request that is held. */
  async hold(ids: string[]): Promise<Promise<Answer>[]> {
    const held = ids.map((id) => this.get(`/?hold=1&id=${id}`));
    await Promise.all(ids.map((id) => this.pod.begun(id)));
    return held;
  }

  /** The page says what the log says, in no more series than a Prometheus of many pods can bear. */
  async expectPageOfLog(): Promise<void> {
    const [page, log] = await pageAndLog(this.pod, this.sent);
    expect(Object.fromEntries(ofNginx(page))).toEqual(Object.fromEntries(countedOf(log)));
    expect(samplesOf(page).size).toBeLessThanOrEqual(SERIES_MAX);
    expect(samplesOf(page).size).toBeGreaterThan(90);
  }
}
