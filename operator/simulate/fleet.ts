/**
 * A fleet of pods that share one queue, render by render: Poisson arrivals, lognormal renders, first come first served.
 * Pods take a while to start, and young ones render more slowly (their JIT compiler is at work).
 */
import { EndHeap } from './heap.ts';
import { lognormal, Random } from './random.ts';

// Looked up once, see random.ts.
const { exp, min } = Math;

export interface FleetModel {
  workersPerPod: number;
  /** Of one render on a warm worker. */
  renderMeanS: number;
  renderCv: number;
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

export interface Pod {
  name: string;
  createdS: number;
  readyS: number;
  /** Takes no more requests. */
  isLeaving: boolean;
  /** CPU seconds of all its workers. */
  cpuS: number;
  /** Workers that render. */
  busy: number;
}

/** Called for every answered or refused request. */
export type OnDone = (arrivedS: number, latencyS: number, isRefused: boolean) => void;

/** Ring of arrival times that wait. */
class Queue {
  #times = new Float64Array(1024);
  #head = 0;
  length = 0;

  push(time: number): void {
    if (this.length === this.#times.length) this.#grow();
    this.#times[(this.#head + this.length) & (this.#times.length - 1)] = time;
    this.length += 1;
  }

  shift(): number {
    const time = this.#times[this.#head] as number;
    this.#head = (this.#head + 1) & (this.#times.length - 1);
    this.length -= 1;
    return time;
  }

  #grow(): void {
    const times = new Float64Array(2 * this.#times.length);
    for (let index = 0; index < this.length; index += 1) {
      times[index] = this.#times[(this.#head + index) & (this.#times.length - 1)] as number;
    }
    this.#times = times;
    this.#head = 0;
  }
}

export class Fleet {
  readonly model: FleetModel;
  readonly pods: Pod[] = [];
  readonly #random: Random;
  readonly #onDone: OnDone;
  readonly #mu: number;
  readonly #sigma: number;
  /** Worker number w belongs to #owner[w]. */
  readonly #owner: Pod[] = [];
  /** Idle workers, the longest idle one first, so that all get their share. */
  #idle: number[] = [];
  #idleHead = 0;
  readonly #running = new EndHeap();
  readonly #queue = new Queue();
  #nowS = 0;
  #created = 0;
  /** Integral of requests in the fleet, waiting ones included. */
  concurrencyS = 0;
  coreS = 0;
  refused = 0;

  constructor(model: FleetModel, seed: number, onDone: OnDone) {
    this.model = model;
    this.#random = new Random(seed);
    this.#onDone = onDone;
    const { mu, sigma } = lognormal(model.renderMeanS, model.renderCv);
    this.#mu = mu;
    this.#sigma = sigma;
  }

  get inFleet(): number {
    return this.#running.size + this.#queue.length;
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
      const nextS = min(arrivalS, endS, untilS);
      this.#pass(nextS);
      if (nextS === untilS) break;
      if (endS <= arrivalS) this.#end();
      else {
        this.#arrive();
        arrivalS = this.#nowS + this.#random.exponential(gap);
      }
    }
    for (const pod of this.pods) if (pod.readyS > 0 && pod.readyS <= this.#nowS) this.#open(pod);
  }

  #pass(toS: number): void {
    this.concurrencyS += (toS - this.#nowS) * this.inFleet;
    this.#nowS = toS;
  }

  #add(isWarm: boolean): void {
    const { startS } = this.model;
    const createdS = isWarm ? -3600 : this.#nowS;
    const readyS = isWarm ? -3600 + startS : createdS + startS * (0.8 + 0.4 * this.#random.fraction());
    this.#created += 1;
    const pod: Pod = { name: `pod-${this.#created}`, createdS, readyS, isLeaving: false, cpuS: 0, busy: 0 };
    this.pods.push(pod);
    if (isWarm) this.#open(pod);
  }

  /** Its workers begin to take requests; once. */
  #open(pod: Pod): void {
    if (this.#opened.has(pod) || pod.isLeaving) return;
    this.#opened.add(pod);
    for (let count = 0; count < this.model.workersPerPod; count += 1) {
      this.#owner.push(pod);
      this.#free(this.#owner.length - 1);
    }
  }
  readonly #opened = new Set<Pod>();

  #remove(): void {
    const staying = this.pods.filter(({ isLeaving }) => !isLeaving);
    const isOpen = (pod: Pod) => this.#opened.has(pod);
    const pod = staying.findLast((one) => !isOpen(one)) ?? staying.at(-1);
    if (pod === undefined) return;
    pod.isLeaving = true;
    this.#idle = this.#idle.slice(this.#idleHead).filter((server) => this.#owner[server] !== pod);
    this.#idleHead = 0;
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
    if (this.#idleHead < this.#idle.length) this.#begin(this.#takeIdle(), this.#nowS);
    else if (this.#queue.length >= this.model.queueLengthPerPod * Math.max(1, this.#opened.size))
      this.#refuse(this.#nowS);
    else this.#queue.push(this.#nowS);
  }

  #takeIdle(): number {
    const server = this.#idle[this.#idleHead] as number;
    this.#idleHead += 1;
    if (this.#idleHead > 4096) {
      this.#idle = this.#idle.slice(this.#idleHead);
      this.#idleHead = 0;
    }
    return server;
  }

  #begin(server: number, arrivedS: number): void {
    const { warmFactor, warmS } = this.model;
    const pod = this.#owner[server] as Pod;
    const young = exp(-(this.#nowS - pod.readyS) / warmS);
    const slowness = 1 + (warmFactor - 1) * young;
    const renderS = exp(this.#mu + this.#sigma * this.#random.normal()) * slowness;
    pod.cpuS += renderS;
    pod.busy += 1;
    this.#running.push(this.#nowS + renderS, server);
    this.#onDone(arrivedS, this.#nowS + renderS - arrivedS, false);
  }

  #end(): void {
    const server = this.#running.pop();
    const pod = this.#owner[server] as Pod;
    pod.busy -= 1;
    if (!pod.isLeaving) this.#free(server);
    else if (pod.busy === 0) this.#gone(pod);
  }

  /** Gives a free worker to who waits longest, or lets it idle. */
  #free(server: number): void {
    while (this.#queue.length > 0) {
      const arrivedS = this.#queue.shift();
      if (this.#nowS - arrivedS <= this.model.queueTimeoutS) {
        this.#begin(server, arrivedS);
        return;
      }
      this.#refuse(arrivedS);
    }
    this.#idle.push(server);
  }

  #refuse(arrivedS: number): void {
    this.refused += 1;
    this.#onDone(arrivedS, this.#nowS - arrivedS, true);
  }
}
