/** A rollout under a steady load: shares, an abort, pods that die, go and come, and what it costs visitors. */
import { setTimeout as sleep } from 'node:timers/promises';
import { type RunningClient, startLoad } from '../lib/load.ts';
import { failuresOf } from '../lib/outcome.ts';
import {
  type Death,
  renderedBy,
  resultOf,
  type Side,
  type Stretch,
  type StretchResult,
  secondsToLast,
  shareErrorPoints,
  shareOverTime,
  wantedOverTime,
} from './sides.ts';
import type { VersionPod, Versions } from './system.ts';

/** Pods that serve everything. */
const REPLICAS = 4;
const GROUP = 'visitor';
/** Blocks the worker without burning CPU. */
const PATH = '/?id={id}&steps=b2';
/** So late a Service learns of a pod that has come, goes or is dead. */
const LAG_MS = 1_000;
const TIMEOUT_MS = 30_000;
/** So that cold code is not part of the first stretch. */
const WARM_UP_MS = 4_000;
const CURVE_EVERY_S = 2;
/** Stretches that are measured are so many; the changes between them get the rest of the requests. */
const PARTS = 10;
/** Until all pods are there and gone. */
const AROUND_SECONDS = 90;

export interface TrafficOptions {
  /** At least so many in all. */
  requests: number;
  perSecond: number;
}

export interface TrafficResult {
  system: string;
  requests: number;
  perSecond: number;
  stretches: StretchResult[];
  /** The largest of the stretches, in points. */
  shareErrorPoints: number;
  /** From an abort to the last request that a pod of the new version has rendered. */
  abortSeconds: number;
  lost: number;
  atDead: number;
  /** How often each way to fail occurred. */
  failures: Record<string, number>;
  /** Percent of the new version, as it was wanted and as it came. */
  wanted: [atS: number, percent: number][];
  curve: [atS: number, percent: number][];
}

export function trafficSeconds({ requests, perSecond }: TrafficOptions): number {
  return requests / perSecond + AROUND_SECONDS;
}

/** As the operator has it: `replicas` x share, rounded up, and one at least. */
function podsFor(share: number): number {
  return Math.max(1, Math.ceil(REPLICAS * share));
}

class Trial {
  readonly #versions: Versions;
  readonly #pods: VersionPod[] = [];
  readonly #gone: VersionPod[] = [];
  readonly #endpoints = new Set<VersionPod>();
  readonly #stretchMs: number;
  #client: RunningClient | undefined;
  /** Whatever is lost before the first stretch is the first one's. */
  #changeMs = 0;
  #fallbacks = 0;
  readonly stretches: Stretch[] = [];
  readonly deaths: Death[] = [];

  constructor(versions: Versions, { requests, perSecond }: TrafficOptions) {
    this.#versions = versions;
    this.#stretchMs = (1_000 * requests) / PARTS / perSecond;
  }

  of(side: Side): VersionPod[] {
    return this.#pods.filter((pod) => pod.side === side);
  }

  /** Notes of all pods that there have ever been. */
  notes(side: Side) {
    return [...this.#pods, ...this.#gone].filter((pod) => pod.side === side).flatMap((pod) => pod.notes());
  }

  /** Visitors come from now on, to all pods that there are. */
  async open({ perSecond }: TrafficOptions): Promise<void> {
    const targets = [...this.#endpoints].map(({ target }) => target);
    const group = { name: GROUP, perSecond, requests: [{ path: PATH }] };
    const plan = { targets, bodyBytes: 0, timeoutMs: TIMEOUT_MS, phases: [[group]] };
    await new Promise<void>((resolve, reject) => {
      this.#client = startLoad(this.#versions.network, plan, () => resolve());
      this.#client.records.catch(reject);
    });
    await sleep(WARM_UP_MS);
  }

  /** Pods of a version are started until there are so many, all at once; the Service has them when this returns. */
  async grow(side: Side, count: number): Promise<void> {
    const missing = Math.max(0, count - this.of(side).length);
    const started = await Promise.all(Array.from({ length: missing }, () => this.#versions.start(side)));
    this.#pods.push(...started);
    await this.#service(() => {
      for (const pod of started) this.#endpoints.add(pod);
    });
  }

  /** Pods leave as they are deleted: the Service learns of it while they end what they have. */
  async leave(pods: VersionPod[]): Promise<void> {
    const out = this.unlist(pods);
    await Promise.all(pods.map((pod) => pod.drain()));
    await out;
    this.#forget(pods);
  }

  /** The Service has them no more; they live on. */
  unlist(pods: VersionPod[]): Promise<void> {
    return this.#service(() => {
      for (const pod of pods) this.#endpoints.delete(pod);
    });
  }

  async kill(pod: VersionPod): Promise<void> {
    const killedMs = Date.now();
    const out = this.unlist([pod]);
    await pod.kill();
    await out;
    this.#forget([pod]);
    this.deaths.push({ host: pod.target.host, killedMs, forgottenMs: Date.now() });
  }

  /** The share has been reached: for so many requests at least, and until what happens meanwhile is over. */
  async stretch(name: string, share: number, meanwhile = async () => {}): Promise<void> {
    const fromMs = Date.now();
    const pods = { stable: this.of('stable').length, canary: this.of('canary').length };
    await Promise.all([meanwhile(), sleep(this.#stretchMs)]);
    const toMs = Date.now();
    const fallbacks = await this.#versions.fallbacks();
    const more = fallbacks - this.#fallbacks;
    this.stretches.push({ name, share, pods, beganMs: this.#changeMs, fromMs, toMs, fallbacks: more });
    this.#fallbacks = fallbacks;
    this.#changeMs = toMs;
  }

  /** No visitor comes any more. */
  async close() {
    if (!this.#client) throw new Error('it has not begun');
    this.#client.end();
    return this.#client.records;
  }

  async stop(): Promise<void> {
    this.#client?.end();
    await this.#client?.records.catch(() => {});
    await this.#versions.stop();
  }

  #forget(pods: VersionPod[]): void {
    for (const pod of pods) this.#gone.push(...this.#pods.splice(this.#pods.indexOf(pod), 1));
  }

  async #service(change: () => void): Promise<void> {
    if (this.#client) await sleep(LAG_MS);
    change();
    this.#client?.tell([...this.#endpoints].map(({ target }) => target));
  }
}

/** What happens. Each stretch has its change before it. */
async function rollOut(trial: Trial, versions: Versions): Promise<number> {
  const to = async (share: number, name: string) => {
    await trial.grow('canary', podsFor(share));
    await versions.share(share);
    await trial.stretch(name, share);
  };
  const begin = () => versions.share(0);

  await begin();
  await to(0.05, '5 %');
  await to(0.25, '25 %');
  await to(0.5, '50 %');
  await trial.stretch('50 %, a new pod is killed', 0.5, async () => {
    await trial.kill(trial.of('canary')[0] as VersionPod);
    await trial.grow('canary', podsFor(0.5));
  });
  await trial.stretch('50 %, an old pod is drained', 0.5, async () => {
    await trial.leave(trial.of('stable').slice(0, 1));
    await trial.grow('stable', REPLICAS);
  });
  const abortMs = Date.now();
  await versions.share(0);
  await trial.leave(trial.of('canary'));
  await trial.stretch('0 %, aborted', 0);
  await begin();
  await to(0.5, '50 %, the second try');
  await trial.grow('canary', REPLICAS);
  await versions.share(1);
  // Nobody has asked for a share of all with old pods beside, where shares are numbers of pods.
  if (versions.hasShares) await trial.stretch('100 %, all pods are there', 1);
  await trial.unlist(trial.of('stable'));
  await versions.complete();
  const rests = versions.hasShares ? 1 : 0;
  await trial.leave(trial.of('stable').slice(rests));
  await trial.stretch('100 %, it is over', 1);
  return abortMs;
}

export async function runTraffic(make: () => Promise<Versions>, options: TrafficOptions): Promise<TrafficResult> {
  const versions = await make();
  const trial = new Trial(versions, options);
  try {
    await trial.grow('stable', REPLICAS);
    await trial.open(options);
    const beganMs = Date.now();
    const abortMs = await rollOut(trial, versions);
    const restMs = beganMs - WARM_UP_MS + (1_000 * options.requests) / options.perSecond - Date.now();
    await sleep(Math.max(0, restMs));
    const records = await trial.close();
    const notes = { stable: trial.notes('stable'), canary: trial.notes('canary') };
    const rendered = renderedBy(notes);
    // What was on its way when the last one ended is its own.
    const whole = trial.stretches.with(-1, { ...(trial.stretches.at(-1) as Stretch), toMs: Number.POSITIVE_INFINITY });
    const stretches = whole.map((stretch) => resultOf(stretch, records, rendered, trial.deaths));
    const aborted = trial.stretches.find(({ name }) => name.includes('aborted')) as Stretch;
    const sum = (of: (result: StretchResult) => number) => stretches.reduce((total, result) => total + of(result), 0);
    return {
      system: versions.title,
      requests: records.length,
      perSecond: options.perSecond,
      stretches,
      shareErrorPoints: shareErrorPoints(stretches),
      abortSeconds: secondsToLast(notes.canary, GROUP, abortMs, aborted.toMs),
      lost: sum(({ lost }) => lost),
      atDead: sum(({ atDead }) => atDead),
      failures: failuresOf(records, GROUP),
      wanted: wantedOverTime(trial.stretches, beganMs),
      curve: shareOverTime(records, rendered, beganMs, CURVE_EVERY_S),
    };
  } finally {
    await trial.stop();
  }
}
