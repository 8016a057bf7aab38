/**
 * The workers of a simulated fleet: how many renders each has, how many it may have, and who gets the next one.
 *
 * A worker is one event loop on one core: what is ready runs in the order in which it became ready, and to its end, as
 * in Node.js, where nothing interrupts a turn. (To share the core evenly among all would let no short turn wait behind
 * a long one: too good.) So when a turn becomes ready its end is known.
 */
import { type Concurrency, FoundLimit, settled } from './concurrency.ts';
import { Random } from './random.ts';

// Looked up once, see random.ts.
const { floor, max, min } = Math;

export interface Pod {
  name: string;
  createdS: number;
  readyS: number;
  /** Takes no more requests. */
  isLeaving: boolean;
  /** CPU seconds of all its workers. */
  cpuS: number;
  /** Renders in progress. */
  busy: number;
}

export interface Worker {
  readonly pod: Pod;
  /** Renders in progress, and how many there may be. */
  inProgress: number;
  limit: number;
  /** When the last turn that is ready will have ended. */
  coreFreeS: number;
  /** Renders that it has begun: of two that are equally busy the one that began earlier is next. */
  begun: number;
  /** With Auto. */
  found: FoundLimit | undefined;
  /** Until when `found` has been told. */
  toldS: number;
}

export interface WorkersOptions {
  perPod: number;
  concurrency: Concurrency;
  /** Time that a render waits, for each second of CPU. */
  waitRatio: number;
  seed: number;
}

export class Workers {
  readonly #options: WorkersOptions;
  readonly #byPod = new Map<Pod, Worker[]>();
  /** Those of pods that take requests. */
  #pods: Worker[][] = [];
  /** Idle workers, the longest idle one first, so that all get their share; with one render at a time. */
  #idle: Worker[] = [];
  #idleHead = 0;
  /** Not that of the renders: who gets one changes none. */
  readonly #random: Random;
  #begun = 0;

  constructor(options: WorkersOptions) {
    this.#options = options;
    this.#random = new Random(options.seed);
  }

  /** Whether every worker has one render at a time, always: then all that are free are alike. */
  get #isSingle(): boolean {
    return this.#options.concurrency === 1;
  }

  /** Renders that all may have at a time now. */
  get places(): number {
    return this.#pods.reduce((sum, workers) => workers.reduce((own, { limit }) => own + limit, sum), 0);
  }

  /**
   * Workers of a pod that begins to take requests.
   * @param isWarm they have worked before, and found their number
   */
  open(pod: Pod, nowS: number, isWarm: boolean): Worker[] {
    const workers = Array.from({ length: this.#options.perPod }, () => this.#worker(pod, nowS, isWarm));
    this.#byPod.set(pod, workers);
    this.#pods.push(workers);
    return workers;
  }

  #worker(pod: Pod, nowS: number, isWarm: boolean): Worker {
    const { concurrency, waitRatio } = this.#options;
    const isFixed = typeof concurrency === 'number';
    const found = isFixed ? undefined : isWarm ? settled(concurrency, waitRatio) : new FoundLimit(concurrency);
    const limit = isFixed ? concurrency : (found?.limit ?? concurrency.min);
    return { pod, limit, found, inProgress: 0, coreFreeS: 0, begun: 0, toldS: nowS };
  }

  /** A pod takes no more requests. */
  close(pod: Pod): void {
    const workers = this.#byPod.get(pod);
    this.#byPod.delete(pod);
    this.#pods = this.#pods.filter((one) => one !== workers);
    this.#idle = this.#idle.slice(this.#idleHead).filter((worker) => worker.pod !== pod);
    this.#idleHead = 0;
  }

  /** Who gets the next render, or undefined where all have as many as they may. */
  next(): Worker | undefined {
    return this.#isSingle ? this.#longestIdle() : this.#ofSomePod();
  }

  /** It has a place. */
  offer(worker: Worker): void {
    if (this.#isSingle) this.#idle.push(worker);
  }

  #longestIdle(): Worker | undefined {
    const worker = this.#idle[this.#idleHead];
    if (worker === undefined) return undefined;
    this.#idleHead += 1;
    if (this.#idleHead > 4096) {
      this.#idle = this.#idle.slice(this.#idleHead);
      this.#idleHead = 0;
    }
    return worker;
  }

  /**
   * As in a cluster: a Service sends to any pod, and a pod that has a place renders it itself, whether or not another
   * pod is idle; a full one hands it over.
   */
  #ofSomePod(): Worker | undefined {
    const pods = this.#pods;
    if (pods.length === 0) return undefined;
    const first = floor(this.#random.fraction() * pods.length);
    for (let index = 0; index < pods.length; index += 1) {
      const worker = leastBusy(pods[(first + index) % pods.length] as Worker[]);
      if (worker) return worker;
    }
    return undefined;
  }

  begin(worker: Worker, nowS: number): void {
    this.#tell(worker, nowS);
    this.#begun += 1;
    worker.begun = this.#begun;
    worker.inProgress += 1;
    worker.pod.busy += 1;
  }

  end(worker: Worker, nowS: number): void {
    this.#tell(worker, nowS);
    worker.inProgress -= 1;
    worker.pod.busy -= 1;
  }

  /** A turn of the worker's event loop becomes ready. Returns when it ends. */
  turn(worker: Worker, nowS: number, cpuS: number): number {
    this.#tell(worker, nowS);
    worker.coreFreeS = max(worker.coreFreeS, nowS) + cpuS;
    worker.pod.cpuS += cpuS;
    return worker.coreFreeS;
  }

  /** Each worker finds its limit anew. Returns those that have got more. */
  look(nowS: number): Worker[] {
    const risen: Worker[] = [];
    for (const workers of this.#pods) {
      for (const worker of workers) {
        const before = worker.limit;
        this.#tell(worker, nowS);
        worker.limit = worker.found?.look() ?? before;
        if (worker.limit > before) risen.push(worker);
      }
    }
    return risen;
  }

  /** What has gone by since the last change, when nothing but a turn's end can have changed. */
  #tell(worker: Worker, nowS: number): void {
    const { found, toldS, coreFreeS, inProgress } = worker;
    if (!found) return;
    const busyS = max(0, min(coreFreeS, nowS) - toldS);
    found.passed(inProgress, nowS - toldS, nowS - toldS - busyS);
    worker.toldS = nowS;
  }
}

/** leastconn, among those with a place. */
function leastBusy(workers: Worker[]): Worker | undefined {
  let best: Worker | undefined;
  for (const worker of workers) {
    if (worker.inProgress >= worker.limit) continue;
    if (
      best === undefined ||
      worker.inProgress < best.inProgress ||
      (worker.inProgress === best.inProgress && worker.begun < best.begun)
    ) {
      best = worker;
    }
  }
  return best;
}
