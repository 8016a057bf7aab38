/**
 * Reads every pod's metrics about four times a minute and keeps the last ones: what status tells of busy workers,
 * queues and crash loops, and what scaling decides on. Only the leader does it.
 *
 * To use it: `sampler.of(pod)` gives a pod's last `PodSample`, or undefined where none is fresh (a pod that has just
 * started, one that cannot be reached). A new sample enqueues the pod's RenderService only if it differs from the last
 * one.
 */
import { PORTS } from '../api/names.ts';
import type { KubeObject } from '../kube/types.ts';
import { getFromPod } from './http.ts';
import { type PodSample, type Stall, samplePod } from './sample.ts';
import { podAddress, workersOf } from './status.ts';

const ROUND_MS = 15_000;
/**
 * Pods that are asked at the same time: 250 that stop answering at once (a zone), 2 s each, hold up the others for 8 s,
 * once.
 */
const CONCURRENCY = 64;
/** All pages of one pod together. */
const POD_MS = 5_000;
/** Three rounds without an answer. */
const STALE_MS = 50_000;

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
  /** Why the last try has failed. */
  error?: string;
}

export class PodSampler {
  readonly #options: Required<PodSamplerOptions>;
  /** By the pod's uid. */
  readonly #entries = new Map<string, Entry>();
  #hasRound = false;
  #stopped = false;
  #isAskingSilent = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: PodSamplerOptions) {
    this.#options = {
      get: (address, path, signal) => getFromPod(address, PORTS.stats, path, signal),
      onStalls: () => undefined,
      onPoison: () => undefined,
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
   * Begins with a round at once; the next one begins 15 s later, or when all have been asked that answered the last
   * time.
   */
  start(): void {
    const begin = async () => {
      const startedMs = performance.now();
      void this.#askSilent();
      await this.#askOthers();
      if (this.#stopped) return;
      // A process that has lost the lead must end, and a timer would keep it.
      this.#timer = setTimeout(begin, Math.max(0, ROUND_MS - (performance.now() - startedMs))).unref();
    };
    void begin();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  /** Asks every pod that runs, once. */
  async round(): Promise<void> {
    await Promise.all([this.#askSilent(), this.#askOthers()]);
  }

  /** Asks the pods that answered the last time, or are new, and forgets those that are gone. */
  async #askOthers(): Promise<void> {
    const pods = this.#options.pods();
    const uids = new Set(pods.map(({ metadata }) => metadata.uid));
    for (const uid of this.#entries.keys()) if (!uids.has(uid)) this.#entries.delete(uid);
    await this.#askAll(pods.filter((pod) => this.errorOf(pod) === undefined));
    const isFirst = !this.#hasRound;
    this.#hasRound = true;
    if (isFirst) for (const pod of pods) this.#options.onChange(pod);
  }

  /** Those that did not answer the last time, beside the others: nobody waits for them. */
  async #askSilent(): Promise<void> {
    if (this.#isAskingSilent) return;
    this.#isAskingSilent = true;
    await this.#askAll(this.#options.pods().filter((pod) => this.errorOf(pod) !== undefined));
    this.#isAskingSilent = false;
  }

  async #askAll(pods: KubeObject[]): Promise<void> {
    const waiting = pods.filter((pod) => podAddress(pod) !== undefined && !pod.metadata.deletionTimestamp).values();
    const askNext = async () => {
      for (const pod of waiting) {
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
    const { lastStall = new Date(Date.now() - NEWS_MS).toISOString() } = before ?? {};
    let entry: Entry;
    try {
      const signal = AbortSignal.timeout(POD_MS);
      const page = (path: string) => get(podAddress(pod) as string, path, signal);
      const options = { before: before?.sample, signal };
      const { sample, stalls, poisonTotal } = await samplePod(page, workersOf(pod), options);
      const fresh = stalls.filter(({ time }) => time > lastStall);
      const times = [lastStall, ...fresh.map(({ time }) => time)].sort();
      const poison = refusedSince(before, poisonTotal);
      entry = { sample, lastStall: times.at(-1) as string, atMs: performance.now(), poison };
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
        error: (error as Error).message,
      };
      onResult('error');
    }
    this.#entries.set(uid, entry);
    if (newsOf(before) !== newsOf(entry)) onChange(pod);
  }
}

/** Where nothing is known of before it is no news, and a HAProxy that was started again begins at 0. */
function refusedSince(before: Entry | undefined, total: number): { total: number; refused: number } {
  const last = before?.poison?.total ?? total;
  const known = total >= last ? last : 0;
  return { total, refused: total - known };
}

/** Of two entries with the same text none is news. */
function newsOf(entry: Entry | undefined): string {
  return JSON.stringify([entry?.sample, entry?.error]);
}
