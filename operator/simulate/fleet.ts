/**
 * A fleet of pods that share one queue, render by render: Poisson arrivals, lognormal renders, first come first served.
 * Pods take a while to start, and young ones render more slowly (their JIT compiler is at work). A render that waits
 * does so once, in the middle: half of its CPU comes before, half after.
 */
import type { Concurrency } from './concurrency.ts';
import { EndHeap } from './heap.ts';
import { Queue } from './queue.ts';
import type { Times } from './queueing.ts';
import { lognormal, Random } from './random.ts';
import { type Pod, type Worker, Workers } from './workers.ts';

// Looked up once, see random.ts.
const { exp, min } = Math;

export interface FleetModel {
  workersPerPod: number;
  /** CPU of one render on a warm worker. */
  renderMeanS: number;
  renderCv: number;
  /** What it waits for others in the middle; not at all if left out. */
  wait?: Times | undefined;
  /** Renders that a worker has at a time: 1 if left out. */
  concurrency?: Concurrency | undefined;
  /** From the decision to the first request. */
  startS: number;
  /** A render on a worker of age a takes 1 + (warmFactor - 1) * e^(-a / warmS) times as long. */
  warmFactor: number;
  warmS: number;
  /** CPU of a young worker beside its renders, as a part of its core, falling likewise. */
  warmCpu: number;
  queueLengthPerPod: number;
  queueTimeoutS: number;
}

/** Called for every answered or refused request. */
export type OnDone = (arrivedS: number, latencyS: number, isRefused: boolean) => void;

/** A render that has begun. */
interface Render {
  worker: Worker;
  arrivedS: number;
  /** CPU that it takes after it has waited; 0 for its last turn. */
  leftS: number;
}

/** Beside the seed of arrivals and renders: who gets them. */
const WORKERS_SEED = 0x5eed;
/** As often as a supervisor does. */
const LOOK_S = 1;

export class Fleet {
  readonly model: FleetModel;
  readonly pods: Pod[] = [];
  readonly #random: Random;
  readonly #onDone: OnDone;
  readonly #mu: number;
  readonly #sigma: number;
  /** Undefined where renders do not wait. */
  readonly #wait: { mu: number; sigma: number } | undefined;
  readonly #workers: Workers;
  readonly #running = new EndHeap<Render>();
  readonly #queue = new Queue();
  #nowS = 0;
  /** When workers of Auto look at what they have seen. */
  #lookS: number;
  #created = 0;
  /** Integral of requests in the fleet, waiting ones included. */
  concurrencyS = 0;
  /** Of those in progress. */
  takenS = 0;
  coreS = 0;
  refused = 0;

  constructor(model: FleetModel, seed: number, onDone: OnDone) {
    this.model = model;
    this.#random = new Random(seed);
    this.#onDone = onDone;
    const { mu, sigma } = lognormal(model.renderMeanS, model.renderCv);
    this.#mu = mu;
    this.#sigma = sigma;
    const { wait, concurrency = 1, workersPerPod: perPod } = model;
    this.#wait = wait && wait.meanS > 0 ? lognormal(wait.meanS, wait.cv) : undefined;
    const waitRatio = (wait?.meanS ?? 0) / model.renderMeanS;
    this.#workers = new Workers({ perPod, concurrency, waitRatio, seed: seed ^ WORKERS_SEED });
    this.#lookS = typeof concurrency === 'number' ? Number.POSITIVE_INFINITY : LOOK_S;
  }

  get inFleet(): number {
    return this.#running.size + this.#queue.length;
  }

  /** Renders that the ready pods may have at a time now. */
  get places(): number {
    return this.#workers.places;
  }

  /** Pods that are there or coming. */
  get replicas(): number {
    return this.pods.filter(({ isLeaving }) => !isLeaving).length;
  }

  /** @param isWarm true for the pods that the day begins with */
  scaleTo(replicas: number, isWarm = false): void {
    let missing = replicas - this.replicas;
    for (; missing > 0; missing -= 1) this.#add(isWarm);
    // As a ReplicaSet does: those that are not ready first, then the youngest.
    for (; missing < 0; missing += 1) this.#remove();
  }

  /** Lets time pass, with Poisson arrivals of this rate. */
  run(untilS: number, rps: number): void {
    const gap = rps > 0 ? 1 / rps : Number.POSITIVE_INFINITY;
    let arrivalS = rps > 0 ? this.#nowS + this.#random.exponential(gap) : Number.POSITIVE_INFINITY;
    for (;;) {
      const endS = this.#running.next;
      const nextS = min(arrivalS, endS, untilS, this.#lookS);
      this.#pass(nextS);
      if (nextS === this.#lookS) this.#look();
      else if (nextS === untilS) break;
      else if (endS <= arrivalS) this.#next();
      else {
        this.#arrive();
        arrivalS = this.#nowS + this.#random.exponential(gap);
      }
    }
    for (const pod of this.pods) if (pod.readyS > 0 && pod.readyS <= this.#nowS) this.#open(pod);
  }

  #pass(toS: number): void {
    this.concurrencyS += (toS - this.#nowS) * this.inFleet;
    this.takenS += (toS - this.#nowS) * this.#running.size;
    this.#nowS = toS;
  }

  #add(isWarm: boolean): void {
    const { startS } = this.model;
    const createdS = isWarm ? -3600 : this.#nowS;
    const readyS = isWarm ? -3600 + startS : createdS + startS * (0.8 + 0.4 * this.#random.fraction());
    this.#created += 1;
    const pod: Pod = { name: `pod-${this.#created}`, createdS, readyS, isLeaving: false, cpuS: 0, busy: 0 };
    this.pods.push(pod);
    if (isWarm) this.#open(pod, isWarm);
  }

  /** Its workers begin to take requests; once. */
  #open(pod: Pod, isWarm = false): void {
    if (this.#opened.has(pod) || pod.isLeaving) return;
    this.#opened.add(pod);
    for (const worker of this.#workers.open(pod, this.#nowS, isWarm)) this.#fill(worker);
  }
  readonly #opened = new Set<Pod>();

  #remove(): void {
    const staying = this.pods.filter(({ isLeaving }) => !isLeaving);
    const isOpen = (pod: Pod) => this.#opened.has(pod);
    const pod = staying.findLast((one) => !isOpen(one)) ?? staying.at(-1);
    if (pod === undefined) return;
    pod.isLeaving = true;
    this.#workers.close(pod);
    if (pod.busy === 0) this.#gone(pod);
  }

  #gone(pod: Pod): void {
    this.pods.splice(this.pods.indexOf(pod), 1);
    this.#opened.delete(pod);
    this.coreS += (this.#nowS - Math.max(pod.createdS, 0)) * this.model.workersPerPod;
  }

  /** Core seconds until now, those of running pods included. */
  coreSecondsUntil(nowS: number): number {
    const running = this.pods.reduce((sum, { createdS }) => sum + nowS - Math.max(createdS, 0), 0);
    return this.coreS + running * this.model.workersPerPod;
  }

  #arrive(): void {
    const worker = this.#workers.next();
    if (worker) this.#begin(worker, this.#nowS);
    else if (this.#queue.length >= this.model.queueLengthPerPod * Math.max(1, this.#opened.size))
      this.#refuse(this.#nowS);
    else this.#queue.push(this.#nowS);
  }

  #begin(worker: Worker, arrivedS: number): void {
    const { warmFactor, warmS } = this.model;
    const young = exp(-(this.#nowS - worker.pod.readyS) / warmS);
    const slowness = 1 + (warmFactor - 1) * young;
    const renderS = exp(this.#mu + this.#sigma * this.#random.normal()) * slowness;
    this.#workers.begin(worker, this.#nowS);
    if (!this.#wait) {
      this.#lastTurn({ worker, arrivedS, leftS: renderS });
      return;
    }
    const waitS = exp(this.#wait.mu + this.#wait.sigma * this.#random.normal());
    const endS = this.#workers.turn(worker, this.#nowS, renderS / 2);
    this.#running.push(endS + waitS, { worker, arrivedS, leftS: renderS / 2 });
  }

  #lastTurn(render: Render): void {
    const endS = this.#workers.turn(render.worker, this.#nowS, render.leftS);
    render.leftS = 0;
    this.#running.push(endS, render);
    this.#onDone(render.arrivedS, endS - render.arrivedS, false);
  }

  /** A render has waited, or has ended. */
  #next(): void {
    const render = this.#running.pop();
    const { worker, leftS } = render;
    if (leftS > 0) {
      this.#lastTurn(render);
      return;
    }
    const { pod } = worker;
    this.#workers.end(worker, this.#nowS);
    if (!pod.isLeaving) this.#fill(worker);
    else if (pod.busy === 0) this.#gone(pod);
  }

  #look(): void {
    this.#lookS += LOOK_S;
    for (const worker of this.#workers.look(this.#nowS)) this.#fill(worker);
  }

  /** Gives the free places of a worker to who waits longest. */
  #fill(worker: Worker): void {
    while (worker.inProgress < worker.limit) {
      if (this.#queue.length === 0) {
        this.#workers.offer(worker);
        return;
      }
      const arrivedS = this.#queue.shift();
      if (this.#nowS - arrivedS <= this.model.queueTimeoutS) this.#begin(worker, arrivedS);
      else this.#refuse(arrivedS);
    }
  }

  #refuse(arrivedS: number): void {
    this.refused += 1;
    this.#onDone(arrivedS, this.#nowS - arrivedS, true);
  }
}
