/**
 * Looks at what becomes of the requests of canaries, as pods count it, every few seconds while there is one. What was
 * found is kept here; the Deployment of the canary remembers it from time to time, and another leader goes on from
 * that.
 *
 * To use it: `want(renderService, subject)` at each reconcile, without a subject where there is nothing to look at;
 * `of(uid, revision, attempt)` tells what is known, and `onChange` is called when that may lead to something.
 */
import { isWorkerName, LABEL_REVISION, LABEL_SERVING, PORTS } from '../api/names.ts';
import type { RenderService } from '../api/resource.ts';
import type { KubeObject } from '../kube/types.ts';
import { getFromPod } from '../pods/http.ts';
import {
  addSides,
  type BothClients,
  type BothSides,
  clientsSince,
  countNew,
  NO_SIDES,
  readSides,
  SIDES_PAGE,
  type SidesPage,
  sidesSince,
} from '../pods/side-counts.ts';
import { podAddress, statusOf } from '../pods/status.ts';
import { SAVED_MS, type Watched } from '../rollout/canary-world.ts';
import { atShare, type Evidence, type Look, looked, NO_CLIENTS, noEvidence } from '../rollout/evidence.ts';
import { type AnalysisPlan, judged } from '../rollout/judgement.ts';
import { borderMs, countAbove, countOf, learnt, slowBucket } from '../rollout/render-times.ts';

const LOOK_MS = 2_000;
/** A fleet of thousands is asked less often: no more than so many a second. */
const PODS_PER_SECOND = 200;
/** Pods that are asked at a time, of one RenderService and of all. */
const CONCURRENCY = 64;
const CONCURRENCY_IN_ALL = 256;
/** One that has not answered is left alone for so long. */
const SILENT_MS = 10_000;
/** What a worker renders at first is slow, whatever the revision. */
const COLD_MS = 60_000;
const COLD_RENDERS = 20;

const nobody = () => ({ canary: new Set<string>(), stable: new Set<string>() });

/** What is looked at. */
export interface WatchSubject {
  revision: string;
  attempt: number;
  stable: string;
  /** In hundredths of a percent. */
  share: number;
  /** What is remembered of before. */
  evidence?: Evidence | undefined;
  plan: AnalysisPlan;
}

interface PodEntry {
  page?: SidesPage;
  atMs: number;
  isSilent: boolean;
  /** Not before that. */
  nextMs: number;
}

interface Entry {
  renderService: RenderService;
  subject: WatchSubject;
  evidence: Evidence;
  /** Times of renders of the stable revision, of before this look. */
  usual: number[];
  pods: Map<string, PodEntry>;
  /** Clients that have failed on a side. */
  failed: Record<keyof BothSides, Set<string>>;
  /** Pods of the canary that there have been, and its renders since there was a new one. */
  seen: Set<string>;
  renders: number;
  isRunning: boolean;
  wake: () => void;
  /** What was told of it last, and when. */
  said: string;
  saidEvidence: string;
  saidMs: number;
}

export interface CanaryWatchOptions {
  podsOf: (namespace: string, name: string) => KubeObject[];
  /** Called with namespace/name. */
  onChange: (key: string) => void;
  /** Reads a page of port 8999 of a pod. */
  get?: (address: string, path: string) => Promise<string>;
  nowMs?: () => number;
  /** By the clock that pods' times are by. */
  wallMs?: () => number;
  /** Waits; a test need not. */
  pause?: (ms: number) => Promise<void>;
}

export class CanaryWatch {
  readonly #options: Required<CanaryWatchOptions>;
  /** By uid of the RenderService. */
  readonly #entries = new Map<string, Entry>();
  #stopped = false;
  #asking = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(options: CanaryWatchOptions) {
    this.#options = {
      get: (address, path) => getFromPod(address, PORTS.stats, path),
      nowMs: () => performance.now(),
      wallMs: () => Date.now(),
      // A process that has lost the lead must end, and a timer would keep it.
      pause: (ms) => new Promise((resolve) => void setTimeout(resolve, ms).unref()),
      ...options,
    };
  }

  /** What is to be looked at from now on. */
  want(renderService: RenderService, subject: WatchSubject | undefined): void {
    const { uid } = renderService.metadata;
    const known = this.#entries.get(uid);
    if (!subject) {
      this.#entries.delete(uid);
      known?.wake();
      return;
    }
    const entry = known ?? this.#begin(renderService, subject);
    const isSame = isOf(entry.subject, subject.revision, subject.attempt);
    if (entry.subject.stable !== subject.stable) entry.usual = [];
    if (!isSame) {
      entry.evidence = subject.evidence ?? noEvidence(subject.share);
      entry.failed = nobody();
    }
    Object.assign(entry, { renderService, subject });
    if (!entry.isRunning) void this.#run(entry);
  }

  /** What is known of a try of a revision. */
  of(uid: string, revision: string, attempt: number): Watched | undefined {
    const entry = this.#entries.get(uid);
    if (!entry || !isOf(entry.subject, revision, attempt)) return undefined;
    const pods = [...entry.pods.values()];
    const silent = pods.filter(({ isSilent }) => isSilent).length;
    return { evidence: entry.evidence, pods: pods.length, silent };
  }

  /** Forgets RenderServices that are gone. */
  keepOnly(uids: Set<string>): void {
    for (const uid of this.#entries.keys()) if (!uids.has(uid)) this.#entries.delete(uid);
  }

  stop(): void {
    this.#stopped = true;
  }

  #begin(renderService: RenderService, subject: WatchSubject): Entry {
    const entry: Entry = {
      ...{ renderService, subject, evidence: subject.evidence ?? noEvidence(subject.share) },
      ...{ usual: [], pods: new Map(), failed: nobody(), seen: new Set<string>(), renders: 0 },
      ...{ isRunning: false, wake: () => {}, said: '', saidEvidence: '', saidMs: this.#options.nowMs() },
    };
    this.#entries.set(renderService.metadata.uid, entry);
    return entry;
  }

  async #run(entry: Entry): Promise<void> {
    entry.isRunning = true;
    const isWanted = () => !this.#stopped && this.#entries.get(entry.renderService.metadata.uid) === entry;
    while (isWanted()) {
      const pods = this.#pods(entry);
      await this.#look(entry, pods);
      if (!isWanted()) break;
      this.#tell(entry);
      const woken = new Promise<void>((resolve) => {
        entry.wake = resolve;
      });
      await Promise.race([woken, this.#options.pause(LOOK_MS + (1_000 * pods.length) / PODS_PER_SECOND)]);
    }
    entry.isRunning = false;
  }

  /** Those that decide about requests, and can be asked. */
  #pods({ renderService: { metadata }, pods: known }: Entry): KubeObject[] {
    const pods = this.#options.podsOf(metadata.namespace, metadata.name).filter(isAsked);
    const uids = new Set(pods.map(({ metadata: { uid } }) => uid));
    for (const uid of known.keys()) if (!uids.has(uid)) known.delete(uid);
    return pods;
  }

  async #look(entry: Entry, pods: KubeObject[]): Promise<void> {
    let all = NO_SIDES;
    const clients = { canary: NO_CLIENTS, stable: NO_CLIENTS };
    const waiting = pods.values();
    const askNext = async () => {
      for (const pod of waiting) {
        const counts = await this.#ask(entry, pod);
        if (!counts) continue;
        all = addSides(all, counts.sides);
        for (const side of ['canary', 'stable'] as const) {
          const { seen, failed } = counts.clients[side];
          clients[side] = {
            seen: clients[side].seen + seen,
            failed: clients[side].failed + countNew(failed, entry.failed[side]),
          };
        }
      }
    };
    await Promise.all(Array.from({ length: Math.min(CONCURRENCY, pods.length) }, askNext));
    this.#weigh(entry, all, clients, this.#isWarm(entry, pods));
    entry.renders += countOf(all.canary.times);
  }

  /** What is new of a pod; at the first look nothing is. */
  async #ask(entry: Entry, pod: KubeObject): Promise<{ sides: BothSides; clients: BothClients } | undefined> {
    const { uid = '' } = pod.metadata;
    const known = entry.pods.get(uid) ?? { atMs: 0, isSilent: false, nextMs: 0 };
    entry.pods.set(uid, known);
    if (this.#options.nowMs() < known.nextMs) return undefined;
    const page = await this.#read(pod);
    const now = this.#options.nowMs();
    known.isSilent = page === undefined;
    if (!page) {
      known.nextMs = now + SILENT_MS;
      return undefined;
    }
    const { page: before, atMs } = known;
    Object.assign(known, { page, atMs: now });
    if (!before || page.revision !== Number.parseInt(entry.subject.revision, 16)) return undefined;
    const sides = sidesSince(before, page, now - atMs);
    return sides && { sides, clients: clientsSince(before, page) };
  }

  async #read(pod: KubeObject): Promise<SidesPage | undefined> {
    if (this.#asking >= CONCURRENCY_IN_ALL) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#asking += 1;
    try {
      return readSides(await this.#options.get(podAddress(pod) as string, SIDES_PAGE));
    } catch {
      return undefined;
    } finally {
      // The next one has its place.
      const next = this.#waiting.shift();
      if (next) next();
      else this.#asking -= 1;
    }
  }

  /** Whether nothing of what the canary takes is for its being new: its workers are old enough, and have rendered. */
  #isWarm(entry: Entry, pods: KubeObject[]): boolean {
    const own = pods.filter(({ metadata }) => metadata.labels?.[LABEL_REVISION] === entry.subject.revision);
    const isGrown = own.some(({ metadata: { uid = '' } }) => !entry.seen.has(uid));
    for (const { metadata } of own) entry.seen.add(metadata.uid ?? '');
    if (isGrown) entry.renders = 0;
    const workers = own.flatMap(
      (pod) => statusOf(pod).containerStatuses?.filter(({ name }) => isWorkerName(name)) ?? [],
    );
    const wallMs = this.#options.wallMs();
    const isOld = workers.every(({ state }) => wallMs - Date.parse(state?.running?.startedAt ?? '') >= COLD_MS);
    return isOld && entry.renders >= COLD_RENDERS * workers.length;
  }

  #weigh(entry: Entry, { canary, stable }: BothSides, clients: Look['clients'], isWarm: boolean): void {
    const { plan, share } = entry.subject;
    // By what was known before: what is slow must not depend on what is judged.
    const bucket = plan.slowerThan === undefined ? undefined : slowBucket(entry.usual, plan.slowerThan);
    const figuresOf = ({ requests, errors, times }: BothSides['canary']) => {
      const isTimed = isWarm && bucket !== undefined;
      return {
        ...{ requests, errors },
        renders: isTimed ? countOf(times) : 0,
        slow: isTimed ? countAbove(times, bucket) : 0,
      };
    };
    const look = { canary: figuresOf(canary), stable: figuresOf(stable), clients };
    const evidence = looked(atShare(entry.evidence, share), look, plan.ratio);
    entry.evidence = { ...evidence, ...(bucket !== undefined && { slowMs: Math.round(10 * borderMs(bucket)) / 10 }) };
    entry.usual = learnt(entry.usual, stable.times);
  }

  #tell(entry: Entry): void {
    const { renderService, subject, evidence, saidMs } = entry;
    const now = this.#options.nowMs();
    const silent = [...entry.pods.values()].filter(({ isSilent }) => isSilent).length;
    const judgement = JSON.stringify([judged(evidence, subject.plan), silent]);
    const text = JSON.stringify(evidence);
    const isOld = text !== entry.saidEvidence && now - saidMs >= SAVED_MS;
    if (judgement === entry.said && !isOld) return;
    Object.assign(entry, { said: judgement, saidEvidence: text, saidMs: now });
    const { namespace, name } = renderService.metadata;
    this.#options.onChange(`${namespace}/${name}`);
  }
}

function isOf(subject: WatchSubject, revision: string, attempt: number): boolean {
  return subject.revision === revision && subject.attempt === attempt;
}

/** A pod that rests decides about nobody, and one that ends soon neither. */
function isAsked(pod: KubeObject): boolean {
  const { metadata } = pod;
  const isReady = (statusOf(pod).conditions ?? []).some(({ type, status }) => type === 'Ready' && status === 'True');
  return isReady && podAddress(pod) !== undefined && metadata.labels?.[LABEL_SERVING] !== 'false';
}
