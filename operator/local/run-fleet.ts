/** The pods of `corelane run`: come, go, and are replaced as a Deployment does it. */
import { randomBytes } from 'node:crypto';
import { PORTS } from '../src/api/names.ts';
import type { Service } from './documents.ts';
import type { Engine } from './engine.ts';
import { LocalFleet } from './fleet.ts';
import { until } from './http.ts';
import { RunPod } from './run-pod.ts';

/** As the readiness probe looks. */
const READY_EVERY_MS = 200;
/** So often in a row it must have failed: 2 s, as with the readiness probe in a cluster. */
const FAILURES = 10;
/** A pod that is not ready by then does not replace another one. */
const READY_MS_MAX = 60_000;

export interface RunFleetOptions {
  sidecarImage: string;
  service: Service;
  /** Of this machine, where clients ask for the service. */
  sitePort: number;
  workerOptions: string[];
  /** Told of each pod that comes; what follows its logs begins there. */
  onPod?: (pod: RunPod) => void;
}

export class RunFleet extends LocalFleet<RunPod> {
  service: Service;
  readonly #options: RunFleetOptions;
  readonly #key = randomBytes(32).toString('base64');
  /** How often each was not ready since it last was. */
  readonly #failures = new WeakMap<RunPod, number>();
  readonly #taking = new Set<RunPod>();
  readonly #leaving = new Set<RunPod>();
  readonly #timer: NodeJS.Timeout;
  #isLooking = false;
  #number = 0;
  #revision = 1;

  private constructor(engine: Engine, network: string, options: RunFleetOptions) {
    super(engine, network);
    this.#options = options;
    this.service = options.service;
    this.#timer = setInterval(() => void this.#look(), READY_EVERY_MS);
  }

  /** A fleet without pods. */
  static async make(engine: Engine, options: RunFleetOptions): Promise<RunFleet> {
    return new RunFleet(engine, await engine.network(), options);
  }

  /** One more pod; its workers are not up yet. */
  async add(): Promise<RunPod> {
    this.#number += 1;
    const { sidecarImage, sitePort, workerOptions, onPod } = this.#options;
    const pod = new RunPod(this.engine, {
      ...{ name: `${this.service.name}-${this.#number}`, service: this.service, sitePort },
      ...{ workerOptions, sidecarImage },
      ...{ network: this.network, key: this.#key, revision: `r${this.#revision}` },
    });
    this.join(pod);
    try {
      await pod.start();
    } catch (error) {
      await this.#forget(pod);
      throw error;
    }
    onPod?.(pod);
    return pod;
  }

  /** Local ports of the pods that take connections. */
  endpoints(): number[] {
    return [...this.#taking].map((pod) => pod.port(PORTS.http));
  }

  /** Pods that stay. */
  get staying(): RunPod[] {
    return this.pods.filter((pod) => !this.#leaving.has(pod));
  }

  /**
   * Waits until a pod takes connections.
   * @param why says what keeps it from that for good
   */
  async untilReady(pod: RunPod, why: (pod: RunPod) => string | undefined = () => undefined): Promise<void> {
    const isDecided = () => this.#taking.has(pod) || why(pod) !== undefined;
    await until(`${pod.name} is ready`, isDecided, READY_MS_MAX);
    if (!this.#taking.has(pod)) throw new Error(why(pod));
  }

  /** Takes a pod out of the Service, lets it end what it has, and removes it. */
  async remove(pod: RunPod): Promise<void> {
    this.#leaving.add(pod);
    this.#taking.delete(pod);
    await pod.drain();
    await this.#forget(pod);
  }

  async #forget(pod: RunPod): Promise<void> {
    this.#leaving.add(pod);
    this.pods.splice(this.pods.indexOf(pod), 1);
    await pod.stop();
    this.#leaving.delete(pod);
  }

  /**
   * Replaces all pods, one after the other: a new one first, which must be ready.
   * @param why says what keeps a pod from that for good
   * @throws Error when a new pod does not become ready; the old ones go on
   */
  async rollOut(service: Service, why?: (pod: RunPod) => string | undefined): Promise<void> {
    this.service = service;
    this.#revision += 1;
    for (const old of this.staying) {
      const pod = await this.add();
      try {
        await this.untilReady(pod, why);
      } catch (error) {
        await this.remove(pod);
        throw error;
      }
      await this.remove(old);
    }
  }

  /** Ends looking after the pods; the engine removes them. */
  close(): void {
    clearInterval(this.#timer);
  }

  async #look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    await Promise.all(
      this.staying.map(async (pod) => {
        const isTaking = await pod.isTaking();
        const failures = isTaking ? 0 : (this.#failures.get(pod) ?? 0) + 1;
        this.#failures.set(pod, failures);
        if (isTaking && !this.#leaving.has(pod)) this.#taking.add(pod);
        else if (failures >= FAILURES) this.#taking.delete(pod);
      }),
    );
    this.#isLooking = false;
  }
}
