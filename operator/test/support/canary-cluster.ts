/** A cluster in which a canary goes on, without any: what an operator decides is written, and pods do as they do. */

import { nextRollout } from '../../src/rollout/canary.ts';
import { type Facts, readFacts } from '../../src/rollout/canary-facts.ts';
import { type CanaryState, isActive } from '../../src/rollout/canary-state.ts';
import {
  type CanaryPlan,
  type CanaryRevision,
  type CanaryWanted,
  hasState,
  LEASE_MS,
  type RolloutNext,
  type Shares,
  type Watched,
} from '../../src/rollout/canary-world.ts';

import { atShare, type Evidence, looked, noEvidence, type SideFigures } from '../../src/rollout/evidence.ts';
import type { AnalysisPlan } from '../../src/rollout/judgement.ts';

export const [A, B, C] = ['aaaaaaaaaa', 'bbbbbbbbbb', 'cccccccccc'] as const;
export const PLAN: CanaryPlan = {
  steps: [
    { share: 500, forMs: 300_000, approval: false },
    { share: 2_500, forMs: 300_000, approval: true },
    { share: 5_000, forMs: 0, approval: true },
  ],
  minReplicas: 1,
};
export const ANALYSIS: AnalysisPlan = {
  ...{ minRequests: 300, maxWaitMs: 3_600_000, ratio: 1.5, errorFloor: 0.005, slowerThan: 1.25, isPausing: false },
};
const RENEWED_MS = LEASE_MS / 2;
const ROUND_MS = 1_000;

export const wants = (id: string, replicas: number, more: Partial<CanaryWanted> = {}): CanaryWanted => ({
  ...{ id, replicas, maxSurge: '25%', maxUnavailable: 0, isPaused: false, retain: { forMs: 900_000, replicas: 1 } },
  ...{ canary: PLAN, isTurn: false },
  ...more,
});

/** What becomes of requests, by side: parts of one. */
export interface Traffic {
  perSecond: number;
  errors?: Partial<Record<'canary' | 'stable', number>>;
  slow?: Partial<Record<'canary' | 'stable', number>>;
}

/** As pods have it: the serial is that of a share and of who rests. */
interface File {
  shares: Shares | undefined;
  untilMs: number;
  serial: string;
}

const serialOf = (shares: Shares | undefined, resting: string | undefined) => JSON.stringify([shares, resting]);

export class CanaryCluster {
  now = 1_000_000_000;
  all: CanaryRevision[] = [];
  facts: Facts = {};
  file: File = { shares: undefined, untilMs: 0, serial: '' };
  /** What pods have said that they have. */
  said = '';
  /** Whether pods know canaries, can be asked, and get what is written. */
  knows = true;
  reachable = true;
  delivers = true;
  readonly broken = new Set<string>();
  traffic: Traffic | undefined;
  /** Pods that do not tell what becomes of requests. */
  silent = 0;
  /** What an operator knows of it: gone when it is killed. */
  watch: { key: string; evidence: Evidence } | undefined;
  /** Requests of the canary that have failed. */
  failed = 0;
  /** What must never be, and was. */
  readonly wrong: string[] = [];
  /** Each share that pods were told, in order. */
  readonly shares: string[] = [];

  next(wanted: CanaryWanted): RolloutNext {
    const { shares, untilMs } = this.file;
    const ready = this.all.filter(({ isOut }) => !isOut).reduce((sum, { available }) => sum + available, 0);
    return nextRollout(this.all, wanted, {
      ...{ facts: this.facts, nowMs: this.now, deadlineMs: 600_000 },
      told: shares && { ...shares, untilMs },
      watchedOf: (revision, attempt) => this.#watched(revision, attempt),
      acksOf: (wantedShares, resting) => {
        const has = this.reachable && this.said === serialOf(wantedShares, resting);
        const silent = this.reachable ? 0 : ready;
        return { pods: ready, have: has ? ready : 0, silent, knowing: this.knows ? ready : 0 };
      },
    });
  }

  /** What the operator does once. With `writes` it is killed after so many of them. */
  operate(wanted: CanaryWanted, writes = Number.POSITIVE_INFINITY): RolloutNext {
    const next = this.next(wanted);
    const resting = next.revisions.find(({ retiredMs, wasComplete }) => retiredMs !== undefined && wasComplete)?.id;
    const todo = [
      () => this.#write(next.shares, serialOf(next.shares, resting)),
      ...next.revisions.map((one) => () => this.#apply(one, next.states.get(one.id))),
      () => this.#label(),
    ];
    for (const write of todo.slice(0, writes)) {
      write();
      this.#look(wanted);
    }
    if (writes < todo.length) this.watch = undefined;
    else this.#want(next);
    return next;
  }

  /** What is to be looked at; a new process goes on from what is remembered. */
  #want({ canary, states }: RolloutNext): void {
    const state = canary && states.get(canary.revision);
    const key = state && isActive(state) ? `${canary.revision}#${state.attempt}` : undefined;
    if (!state || key === undefined) this.watch = undefined;
    else if (this.watch?.key !== key) this.watch = { key, evidence: state.evidence ?? noEvidence(state.share) };
  }

  #watched(revision: string, attempt: number): Watched | undefined {
    if (this.watch?.key !== `${revision}#${attempt}`) return undefined;
    return { evidence: this.watch.evidence, pods: this.all.length, silent: this.silent };
  }

  /** Those of so long a time, at the share that pods know. */
  #serve(ms: number): void {
    const { shares } = this.file;
    if (!this.traffic || !shares || shares.share === 0 || this.silent > 0) return;
    const { perSecond, errors = {}, slow = {} } = this.traffic;
    const all = (perSecond * ms) / 1_000;
    const ofCanary = Math.round((all * shares.share) / 10_000);
    const figures = (side: 'canary' | 'stable', requests: number): SideFigures => {
      const failed = Math.round(requests * (errors[side] ?? 0));
      const renders = requests - failed;
      return { requests, errors: failed, renders, slow: Math.round(renders * (slow[side] ?? 0)) };
    };
    const look = { canary: figures('canary', ofCanary), stable: figures('stable', Math.round(all) - ofCanary) };
    this.failed += look.canary.errors;
    if (this.watch) this.watch.evidence = looked(atShare(this.watch.evidence, shares.share), look, ANALYSIS.ratio);
  }

  #write(shares: Shares | undefined, serial: string): void {
    const isSame = serial === this.file.serial && this.file.untilMs - this.now > RENEWED_MS;
    if (!isSame) this.file = { shares, serial, untilMs: this.now + LEASE_MS };
    const text = shares ? `${shares.revision[0]}${shares.share / 100}` : '-';
    if (this.shares.at(-1) !== text) this.shares.push(text);
  }

  #apply(revision: RolloutNext['revisions'][number], state: CanaryState | undefined): void {
    const before = this.all.find(({ id }) => id === revision.id);
    const available = Math.min(before?.available ?? 0, revision.replicas);
    // Pods of a Deployment that is made are in the Service by their label.
    const isOut = before && before.replicas > 0 ? before.isOut : revision.retiredMs !== undefined;
    const after = { ...revision, available, pods: revision.replicas, isOut, state };
    this.all = [...this.all.filter(({ id }) => id !== revision.id), after];
  }

  #label(): void {
    this.all = this.all.map((one) => ({ ...one, isOut: one.retiredMs !== undefined }));
  }

  /** What must hold after every single write. */
  #look(wanted: CanaryWanted): void {
    const active = this.all.filter(hasState).filter(({ state, wasComplete }) => isActive(state) && !wasComplete);
    if (active.length > 1) this.wrong.push(`two canaries: ${active.map(({ id }) => id)}`);
    for (const { id, replicas, state } of active) {
      const { shares } = this.file;
      if (replicas > 0 && shares?.revision !== id) this.wrong.push(`${id} has pods, and pods do not know of it`);
      if ((shares?.share ?? 0) > 0 && state.share < (shares?.share ?? 0) && state.phase !== 'Aborting')
        this.wrong.push(`${id} was told ${shares?.share} before it was remembered`);
      const stable = this.all.find((one) => one.id === state.stable);
      if (wanted.replicas > 0 && stable && stable.replicas < Math.min(wanted.replicas, this.least))
        this.wrong.push(`${state.stable} has ${stable.replicas} pods while ${id} is a canary`);
    }
  }

  /** Pods of the stable revision that there must be. */
  least = 0;

  /** What pods and time do. */
  pass(ms = ROUND_MS): void {
    this.now += ms;
    this.all = this.all.map((one) => {
      if (this.broken.has(one.id)) return { ...one, available: 0 };
      return { ...one, available: Math.min(one.replicas, one.available + 1) };
    });
    if (this.delivers) this.said = this.file.serial;
    this.#serve(ms);
  }

  /** Until `done`, or nothing changes for long. */
  run(wanted: CanaryWanted, done: (next: RolloutNext) => boolean, ms = 10_000, writes?: () => number): RolloutNext {
    for (let round = 0; round < 3_000; round += 1) {
      const next = this.operate(wanted, writes?.());
      if (done(next)) return next;
      this.pass(ms);
    }
    throw new Error(`it never came: ${this.text}`);
  }

  /** Until there is nothing to do any more. */
  settle(wanted: CanaryWanted, writes?: () => number): RolloutNext {
    return this.run(wanted, ({ phase }) => phase === 'Complete' || phase === 'Aborted', 10_000, writes);
  }

  fact(texts: Parameters<typeof readFacts>[0]): void {
    this.facts = readFacts(texts);
  }

  /** `a4 b1/2z`: pods of each revision. */
  get text(): string {
    return this.all
      .map(({ id, replicas, available, retiredMs }) => {
        const count = available === replicas ? replicas : `${available}/${replicas}`;
        return `${id[0]}${count}${retiredMs === undefined ? '' : 'z'}`;
      })
      .toSorted()
      .join(' ');
  }
}

/** With a revision A that has all of its pods. */
export function running(replicas = 4): CanaryCluster {
  const cluster = new CanaryCluster();
  cluster.settle(wants(A, replicas));
  for (let round = 0; round < replicas; round += 1) cluster.pass();
  cluster.operate(wants(A, replicas));
  cluster.least = replicas;
  cluster.shares.length = 0;
  return cluster;
}
