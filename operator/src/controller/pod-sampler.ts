/**
 * Reads every pod's figures about four times a minute and keeps the last ones: what status tells of busy workers, queues
 * and crash loops, and what scaling decides on. Only the leader does it.
 *
 * To use it: `sampler.of(pod)` gives a pod's last `PodSample`, or undefined where none is fresh (a pod that has just
 * started, one that cannot be reached). A new sample enqueues the pod's RenderService only if it differs from the last one.
 */
import { PORTS } from '../api/names.ts';
import { getFromPod } from '../kube/pod-http.ts';
import type { KubeObject } from '../kube/types.ts';
import { type PodSample, samplePod } from './pod-sample.ts';
import { podAddress } from './pods.ts';

const ROUND_MS = 15_000;
/** Pods that are asked at the same time: a few that do not answer must not hold up the others for long. */
const CONCURRENCY = 10;
/** Three rounds without an answer. */
const STALE_MS = 50_000;

export interface PodSamplerOptions {
  /** All pods there are. */
  pods: () => KubeObject[];
  /** Called when a pod's figures have changed, or when it can no longer be reached. */
  onChange: (pod: KubeObject) => void;
  onResult: (result: 'ok' | 'error') => void;
  /** Reads a page of port 8999 of a pod. */
  get?: (address: string, path: string) => Promise<string>;
}

interface Entry {
  sample?: PodSample;
  atMs: number;
  /** Why the last try has failed. */
  error?: string;
}

export class PodSampler {
  readonly #options: Required<PodSamplerOptions>;
  /** By the pod's uid. */
  readonly #entries = new Map<string, Entry>();
  #hasRound = false;
  #stopped = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: PodSamplerOptions) {
    this.#options = { get: (address, path) => getFromPod(address, PORTS.stats, path), ...options };
  }

  /** False until every pod has been asked once: a new leader knows nothing yet, which is no news about the pods. */
  get hasRound(): boolean {
    return this.#hasRound;
  }

  /** A pod's last figures, if they are fresh. */
  of({ metadata }: KubeObject): PodSample | undefined {
    const entry = this.#entries.get(metadata.uid ?? '');
    return entry && performance.now() - entry.atMs < STALE_MS ? entry.sample : undefined;
  }

  /** Why a pod that should answer did not, or undefined. */
  errorOf({ metadata }: KubeObject): string | undefined {
    return this.#entries.get(metadata.uid ?? '')?.error;
  }

  /** Begins with a round at once; the next one begins 15 s later, or when this one has ended. */
  start(): void {
    const begin = async () => {
      const startedMs = performance.now();
      await this.round();
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

  /** Asks every pod that runs, and forgets those that are gone. */
  async round(): Promise<void> {
    const pods = this.#options.pods();
    const uids = new Set(pods.map(({ metadata }) => metadata.uid));
    for (const uid of this.#entries.keys()) if (!uids.has(uid)) this.#entries.delete(uid);
    const waiting = pods.filter((pod) => podAddress(pod) !== undefined && !pod.metadata.deletionTimestamp).values();
    const askNext = async () => {
      for (const pod of waiting) {
        if (this.#stopped) return;
        await this.#ask(pod);
      }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, askNext));
    const isFirst = !this.#hasRound;
    this.#hasRound = true;
    if (isFirst) for (const pod of pods) this.#options.onChange(pod);
  }

  async #ask(pod: KubeObject): Promise<void> {
    const { get, onChange, onResult } = this.#options;
    const uid = pod.metadata.uid ?? '';
    const before = this.#entries.get(uid);
    let entry: Entry;
    try {
      const sample = await samplePod((path) => get(podAddress(pod) as string, path), before?.sample);
      entry = { sample, atMs: performance.now() };
      onResult('ok');
    } catch (error) {
      // The last figures stay in use for two more rounds.
      const { sample, atMs = Number.NEGATIVE_INFINITY } = before ?? {};
      const isStale = performance.now() - atMs >= STALE_MS;
      entry = { ...(!isStale && sample && { sample }), atMs, error: (error as Error).message };
      onResult('error');
    }
    this.#entries.set(uid, entry);
    if (newsOf(before) !== newsOf(entry)) onChange(pod);
  }
}

/** Of two entries with the same text none is news. */
function newsOf(entry: Entry | undefined): string {
  return JSON.stringify([entry?.sample, entry?.error]);
}
