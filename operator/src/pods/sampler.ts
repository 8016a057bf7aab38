/**
 * Reads every pod's metrics about four times a minute and keeps the last ones: what status tells of busy workers,
 * queues and crash loops, and what scaling decides on. Only the leader does it.
 *
 * To use it: `sampler.of(pod)` gives a pod's last `PodSample`, or undefined where none is fresh (a pod that has just
 * started, one that cannot be reached). A new sample enqueues the pod's RenderService only if it differs from the last
 * one.
 */
import { setTimeout as startTimer } from 'node:timers';
import { setTimeout } from 'node:timers/promises';
import { PORTS } from '../api/names.ts';
import { areIdle, type Watch, watched } from '../autoscale/idle-workers.ts';
import { shared } from '../kube/shared.ts';
import type { KubeObject } from '../kube/types.ts';
import { getFromPod } from './http.ts';
import { COUNTS_PAGE, countsSince, type RequestCounts, readCounts } from './request-counts.ts';
import { RequestWindow, type Totals } from './request-window.ts';
import { isFull, type PodSample, readEventLoops, type Stall, samplePod } from './sample.ts';
import { podAddress, workersOf } from './status.ts';

const ROUND_MS = 15_000;
/**
 * Pods that are asked at the same time: 250 that stop answering at once (a zone), 2 s each, hold up the others for 8 s,
 * once.
 */
const CONCURRENCY = 64;
/**
 * From one pod to the next, but for the first round, and less where a round would not end in time: who waits for
 * something else must not wait for ten thousand pods.
 */
const GAP_MS = 1;
const SPREAD_MS_MAX = 10_000;
/** All pages of one pod together. */
const POD_MS = 5_000;
/** A pod that takes longer is asked beside the others the next time, as one is that does not answer. */
const SLOW_MS = 1_000;
/** Three rounds without an answer. */
const STALE_MS = 50_000;
/** Two rounds. */
const COUNTED_SECONDS_MIN = 30;
/** How long workers must have been taken and idle: a burst is over by then. */
const IDLE_MS = 60_000;

export interface PodSamplerOptions {
  /** All pods that belong to a RenderService. */
  pods: () => KubeObject[];
  /** Called when a pod's metrics have changed, or when it can no longer be reached. */
  onChange: (pod: KubeObject) => void;
  onResult: (result: 'ok' | 'error') => void;
  /** Called once for what has happened since the last round: event loops that were stuck. */
  onStalls?: (pod: KubeObject, stalls: Stall[]) => void;
  /**
   * Called when a pod has begun to refuse requests because their URL gets workers stuck, with how many since the last
   * round.
   */
  onPoison?: (pod: KubeObject, refused: number) => void;
  /**
   * The uid of the RenderService of which the requests of a pod are to be counted; undefined where nobody asks for
   * that, which saves reading another page.
   */
  countedFor?: (pod: KubeObject) => string | undefined;
  /** The uids of all of these, also of those that have no pods now: of no requests is known, too. */
  counted?: () => ReadonlySet<string>;
  /** Reads a page of port 8999 of a pod. */
  get?: (address: string, path: string, signal: AbortSignal) => Promise<string>;
}

/** A pod that this process has not asked before: what is older has been told by another leader, or is no news. */
const NEWS_MS = 60_000;

interface Entry {
  sample?: PodSample;
  /** Time of the last stall that is known. */
  lastStall: string;
  atMs: number;
  /** Requests refused because of their URL, in all, and since the round before. */
  poison?: { total: number; refused: number };
  /** Requests since its HAProxy has started, where they are counted. */
  counts?: RequestCounts | undefined;
  /** Whether its workers are taken and idle. */
  watch?: Watch | undefined;
  /** Whether it took long the last time, whatever came of it. */
  isSlow: boolean;
  /** Why the last try has failed. */
  error?: string;
}

export class PodSampler {
  readonly #options: Required<PodSamplerOptions>;
  /** By the pod's uid. */
  readonly #entries = new Map<string, Entry>();
  /** By the uid of the RenderService. */
  readonly #windows = new Map<string, RequestWindow>();
  #hasRound = false;
  #stopped = false;
  #isAskingSilent = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: PodSamplerOptions) {
    this.#options = {
      get: (address, path, signal) => getFromPod(address, PORTS.stats, path, signal),
      onStalls: () => undefined,
      onPoison: () => undefined,
      countedFor: () => undefined,
      counted: () => new Set(),
      ...options,
    };
  }

  /** False until every pod has been asked once: a new leader knows nothing yet, which is no news about the pods. */
  get hasRound(): boolean {
    return this.#hasRound;
  }

  /** A pod's last metrics, if they are fresh. */
  of({ metadata }: KubeObject): PodSample | undefined {
    const entry = this.#entries.get(metadata.uid ?? '');
    return entry && performance.now() - entry.atMs < STALE_MS ? entry.sample : undefined;
  }

  /** Why a pod that should answer did not, or undefined. */
  errorOf({ metadata }: KubeObject): string | undefined {
    return this.#entries.get(metadata.uid ?? '')?.error;
  }

  /**
   * Requests of a RenderService over the last minutes, by its uid; undefined where they have not been counted for long
   * enough: what another leader has found says more.
   */
  requestsOf(uid: string): Totals | undefined {
    const totals = this.#windows.get(uid)?.totals(performance.now());
    return totals && totals.seconds >= COUNTED_SECONDS_MIN ? totals : undefined;
  }

  /**
   * Begins with a round at once; the next one begins 15 s later, or when all have been asked that answered soon the
   * last time.
   */
  start(): void {
    const begin = async () => {
      const startedMs = performance.now();
      void this.#askSilent();
      await this.#askOthers(this.#hasRound);
      if (this.#stopped) return;
      // A process that has lost the lead must end, and a timer would keep it.
      this.#timer = startTimer(begin, Math.max(0, ROUND_MS - (performance.now() - startedMs))).unref();
    };
    void begin();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  /** Asks every pod that runs, once. */
  async round(): Promise<void> {
    await Promise.all([this.#askSilent(), this.#askOthers(false)]);
  }

  /** Nobody waits for those that did not answer the last time, or not soon. */
  #isAside(pod: KubeObject): boolean {
    const entry = this.#entries.get(pod.metadata.uid ?? '');
    return entry !== undefined && (entry.error !== undefined || entry.isSlow);
  }

  /** Asks the pods that answered soon the last time, or are new, and forgets those that are gone. */
  async #askOthers(isSpread: boolean): Promise<void> {
    const pods = this.#options.pods();
    const uids = new Set(pods.map(({ metadata }) => metadata.uid));
    for (const uid of this.#entries.keys()) if (!uids.has(uid)) this.#entries.delete(uid);
    const counted = this.#options.counted();
    for (const uid of this.#windows.keys()) if (!counted.has(uid)) this.#windows.delete(uid);
    const others = pods.filter((pod) => !this.#isAside(pod));
    await this.#askAll(others, isSpread ? Math.min(GAP_MS, SPREAD_MS_MAX / others.length) : 0);
    const isFirst = !this.#hasRound;
    this.#hasRound = true;
    if (isFirst) for (const pod of pods) this.#options.onChange(pod);
  }

  /** The others, beside these. */
  async #askSilent(): Promise<void> {
    if (this.#isAskingSilent) return;
    this.#isAskingSilent = true;
    await this.#askAll(this.#options.pods().filter((pod) => this.#isAside(pod)));
    this.#isAskingSilent = false;
  }

  /** @param gapMs between two of them, in milliseconds */
  async #askAll(pods: KubeObject[], gapMs = 0): Promise<void> {
    const waiting = pods.filter((pod) => podAddress(pod) !== undefined && !pod.metadata.deletionTimestamp).entries();
    const beganMs = performance.now();
    const askNext = async () => {
      for (const [index, pod] of waiting) {
        const earlyMs = beganMs + index * gapMs - performance.now();
        // Timers are not more exact than that.
        if (earlyMs >= 1) await setTimeout(earlyMs, undefined, { ref: false });
        if (this.#stopped) return;
        await this.#ask(pod);
      }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, askNext));
  }

  async #ask(pod: KubeObject): Promise<void> {
    const { get, onChange, onResult, onStalls, onPoison } = this.#options;
    const uid = pod.metadata.uid ?? '';
    const before = this.#entries.get(uid);
    const { lastStall = new Date(1_000 * Math.floor((Date.now() - NEWS_MS) / 1_000)).toISOString() } = before ?? {};
    const beganMs = performance.now();
    const isSlow = () => performance.now() - beganMs >= SLOW_MS;
    let entry: Entry;
    try {
      const signal = AbortSignal.timeout(POD_MS);
      const page = (path: string) => get(podAddress(pod) as string, path, signal);
      const options = { before: before?.sample, signal };
      const { sample: found, stalls, poisonTotal } = await samplePod(page, workersOf(pod), options);
      const watch = await watchOf(before, found, page);
      const sample = areIdle(watch, IDLE_MS) ? { ...found, areWorkersIdle: true as const } : found;
      const fresh = stalls.filter(({ time }) => time > lastStall);
      const times = [lastStall, ...fresh.map(({ time }) => time)].sort();
      const poison = shared(refusedSince(before, poisonTotal));
      const counts = await this.#count(pod, page, before?.counts);
      const atMs = performance.now();
      // Pods at peace have the same to tell.
      const said = { sample: shared(sample), poison };
      entry = { ...said, lastStall: shared(times.at(-1) as string), atMs, counts, watch, isSlow: isSlow() };
      onResult('ok');
      // Once for each time that it begins.
      if (poison.refused > 0 && !before?.poison?.refused) onPoison(pod, poison.refused);
      if (fresh.length > 0) onStalls(pod, fresh);
    } catch (error) {
      // The last metrics stay in use for two more rounds.
      const { sample, atMs = Number.NEGATIVE_INFINITY } = before ?? {};
      const isStale = performance.now() - atMs >= STALE_MS;
      entry = {
        ...(!isStale && sample && { sample }),
        lastStall,
        atMs,
        poison: before?.poison,
        counts: before?.counts,
        watch: before?.watch,
        isSlow: isSlow(),
        error: (error as Error).message,
      };
      onResult('error');
    }
    if (before && newsOf(before) === newsOf(entry)) {
      // What is no news takes no other place: ten thousand new objects four times a minute are old when they are thrown
      // away.
      Object.assign(before, entry, before.sample && { sample: before.sample });
      return;
    }
    this.#entries.set(uid, entry);
    onChange(pod);
  }

  /** What a pod has counted by now; what is new of it goes to its RenderService. At the first look nothing is. */
  async #count(
    pod: KubeObject,
    page: (path: string) => Promise<string>,
    before: RequestCounts | undefined,
  ): Promise<RequestCounts | undefined> {
    const owner = this.#options.countedFor(pod);
    if (owner === undefined) return undefined;
    // Pods of older versions have no such page; their sample is good all the same.
    const counts = await page(COUNTS_PAGE).then(readCounts, () => undefined);
    if (!counts) return before;
    const now = performance.now();
    let window = this.#windows.get(owner);
    if (!window) {
      window = new RequestWindow(now);
      this.#windows.set(owner, window);
    }
    if (before) window.add(countsSince(before, counts), now);
    return counts;
  }
}

/** The watch after this look. Only a pod that is full is asked for another page. */
async function watchOf(
  before: Entry | undefined,
  sample: PodSample,
  page: (path: string) => Promise<string>,
): Promise<Watch | undefined> {
  if (!isFull(sample, before?.sample)) return undefined;
  // Pods of older versions have no such page; their sample is good all the same.
  const loops = await page(COUNTS_PAGE).then(readEventLoops, () => undefined);
  return watched(before?.watch, { atMs: performance.now(), loops });
}

/** Where nothing is known of before it is no news, and a HAProxy that was started again begins at 0. */
function refusedSince(before: Entry | undefined, total: number): { total: number; refused: number } {
  const last = before?.poison?.total ?? total;
  const known = total >= last ? last : 0;
  return { total, refused: total - known };
}

/** Of two entries with the same text none is news. */
function newsOf(entry: Entry | undefined): string {
  return JSON.stringify([entry?.sample, entry?.error, entry?.counts?.answered]);
}
