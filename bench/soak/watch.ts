/** Looks at all RenderServices of a run: does each come to what its last action wants, within a bound? */
import { setTimeout as delay } from 'node:timers/promises';
import { LABEL_RENDER_SERVICE } from '../../operator/src/api/names.ts';
import { collectionPath, kinds } from '../../operator/src/kube/kinds.ts';
import type { Api } from './api.ts';
import { type Expectation, keyOf } from './sequence.ts';
import { meets, type Resource, saying } from './standing.ts';
import type { Done, Finding } from './verdicts.ts';

const LOOK_MS = 1_500;
/** Nobody asserts speed: this is where something has got stuck. Pods start slowly where both cores are busy. */
const BOUND_MS = 120_000;
/** However often the cluster was disturbed meanwhile. */
const BOUND_MS_MAX = 300_000;

/** Kinds of what a RenderService owns, and of what its Deployments do. */
const OWNED = [
  kinds.deployment,
  kinds.replicaSet,
  kinds.pod,
  kinds.service,
  kinds.configMap,
  kinds.secret,
  kinds.podDisruptionBudget,
  kinds.networkPolicy,
];

interface Entry {
  expectation: Expectation;
  also: () => Promise<boolean>;
  sinceMs: number;
  deadlineMs: number;
  isSettled: boolean;
  isLate: boolean;
  /** The action that it is due to; undefined once something else has disturbed it. */
  done: Done | undefined;
}

export class Watch {
  readonly findings: Finding[] = [];
  readonly #api: Api;
  readonly #entries = new Map<string, Entry>();
  readonly #onFinding: (finding: Finding) => void;
  #isEnded = false;
  #looking: Promise<void> = Promise.resolve();

  constructor(api: Api, onFinding: (finding: Finding) => void) {
    this.#api = api;
    this.#onFinding = onFinding;
  }

  start(): void {
    this.#looking = this.#lookOn();
  }

  async stop(): Promise<void> {
    this.#isEnded = true;
    await this.#looking;
  }

  /** From now on the RenderService is to come to this. @param also what must hold beside its status */
  expect(key: string, expectation: Expectation, done: Done, also: () => Promise<boolean> = async () => true): void {
    const nowMs = Date.now();
    this.#entries.set(key, { expectation, also, done, ...fresh(nowMs) });
  }

  /** Something was done to the cluster: all are to be as they were, after a while. */
  disturbed(): void {
    const nowMs = Date.now();
    for (const entry of this.#entries.values()) {
      if (entry.isSettled) Object.assign(entry, { done: undefined, ...fresh(nowMs) });
      else entry.deadlineMs = Math.min(nowMs + BOUND_MS, entry.sinceMs + BOUND_MS_MAX);
    }
  }

  /** Waits until one of them, or all, are as they are to be, or were found to be late. */
  async settled(key?: string): Promise<void> {
    const isOpen = () =>
      [...this.#entries].some(([one, entry]) => (key ?? one) === one && !entry.isSettled && !entry.isLate);
    while (isOpen() && !this.#isEnded) await delay(LOOK_MS / 3);
  }

  find(text: string): void {
    const finding = { atMs: Date.now(), text };
    this.findings.push(finding);
    this.#onFinding(finding);
  }

  async #lookOn(): Promise<void> {
    while (!this.#isEnded) {
      await delay(LOOK_MS);
      await this.#look();
    }
  }

  async #look(): Promise<void> {
    // It may be away just now, which is no news: then this is late, and told so.
    const resources = await this.#api
      .look<{ items: Resource[] }>(collectionPath(kinds.renderService))
      .then(({ items }) => new Map(items.map((one) => [keyOf(one.metadata), one])))
      .catch(() => undefined);
    for (const [key, entry] of this.#entries) {
      const isMet = resources ? await this.#isMet(key, entry, resources.get(key)) : entry.isSettled;
      // Another action may have come meanwhile.
      if (this.#entries.get(key) === entry) this.#note(key, entry, isMet, resources?.get(key));
    }
  }

  async #isMet(key: string, entry: Entry, resource: Resource | undefined): Promise<boolean> {
    if (!meets(resource, entry.expectation)) return false;
    if (entry.isSettled) return true;
    const isAll = entry.expectation.is === 'gone' ? this.#isGone(key) : entry.also();
    return await isAll.catch(() => false);
  }

  async #isGone(key: string): Promise<boolean> {
    const [namespace, name] = key.split('/');
    for (const kind of OWNED) {
      const selector = `${LABEL_RENDER_SERVICE}=${name}`;
      if ((await this.#api.metadata(collectionPath(kind, namespace), selector)).length > 0) return false;
    }
    return true;
  }

  #note(key: string, entry: Entry, isMet: boolean, resource: Resource | undefined): void {
    const nowMs = Date.now();
    if (isMet && !entry.isSettled) {
      entry.isSettled = true;
      if (entry.done) entry.done.convergedS = (nowMs - entry.done.beginMs) / 1000;
      if (entry.expectation.is === 'gone') this.#entries.delete(key);
    } else if (!isMet && entry.isSettled) {
      // Nobody did anything that would have been told: a killed pod is seen after its action, for example.
      Object.assign(entry, fresh(nowMs));
    } else if (!isMet && !entry.isLate && nowMs > entry.deadlineMs) {
      entry.isLate = true;
      const after = entry.done ? `#${entry.done.number} ${entry.done.kind}` : 'the last disturbance';
      const seconds = Math.round((nowMs - entry.sinceMs) / 1000);
      this.find(`${key} is not ${told(entry.expectation)} ${seconds} s after ${after}: ${saying(resource)}`);
    }
  }
}

const fresh = (nowMs: number) => ({ sinceMs: nowMs, deadlineMs: nowMs + BOUND_MS, isSettled: false, isLate: false });

const told = (expectation: Expectation) =>
  expectation.is === 'stalled' ? `stalled by ${expectation.reason}` : expectation.is;
