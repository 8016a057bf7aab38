/**
 * Sees to it that pods get live settings within seconds, and knows which have them. The settings themselves are a
 * ConfigMap that each pod mounts, which kubelet looks at once a minute; an annotation of the pod that changes makes it
 * look at once. So nothing is sent to a pod that it could take for settings: a nudge that is lost costs a minute.
 *
 * To use it: `want(renderService, serial)` at each reconcile, once the API server has the ConfigMap; `of(uid)` tells
 * how far it is, and `onChange` is called when that is another thing than before.
 */
import { ANNOTATION_LIVE, LABEL_SERVING, PORTS } from '../api/names.ts';
import type { RenderService } from '../api/resource.ts';
import { kinds, objectPath } from '../kube/kinds.ts';
import { isNotFound, MERGE_PATCH, type Rest } from '../kube/rest.ts';
import type { KubeObject } from '../kube/types.ts';
import { getFromPod } from '../pods/http.ts';
import { podAddress, statusOf } from '../pods/status.ts';

/** Pods of a RenderService that are nudged and asked at a time; those of one that are out of reach hinder no other. */
const CONCURRENCY = 64;
/** And of all of them together: a new leader asks every pod that there is. */
const CONCURRENCY_IN_ALL = 512;
/** kubelet takes about a second; the first look is for pods that have them already. */
const LOOK_MS = 400;
/** kubelet's view of ConfigMaps may have been older than the nudge: another one, ever later. */
const NUDGE_AGAIN_MS = 1_500;
const NUDGE_MS_MAX = 60_000;
/** A pod that does not answer, or does not get them, is asked less and less often, but no less than so. */
const LOOK_MS_MAX = 15_000;
/** Below every generation: that of settings which are not in the ConfigMap. */
const UNWRITTEN = 0;

/** How far the settings have come. */
export interface LiveView {
  serial: string;
  /** Newest generation of the spec whose settings these are; 0 where the ConfigMap has others. */
  generation: number;
  /** Pods that are ready. */
  pods: number;
  /** Of these, those that have the settings; that have said that they have others; that have said nothing. */
  have: number;
  others: number;
  silent: number;
  /** Of those that have said nothing, those that nobody has asked yet: a new process knows nothing of them. */
  unasked: number;
  /** Of these, those whose data plane knows canaries. */
  knowing: number;
  /** And those whose data plane knows what it is to stay at a revision. */
  keeping: number;
  /** Why one of them has them not, as far as it is known. */
  problem?: string | undefined;
  /** Since when these settings are wanted, by this process' clock. */
  sinceMs: number;
}

interface PodEntry {
  /** What the pod has said that it has. */
  serial?: string | undefined;
  problem?: string | undefined;
  knowsCanary?: boolean;
  keepsPeople?: boolean;
  nudgedFor?: string;
  nudges: number;
  nextNudgeMs: number;
  lookMs: number;
  nextLookMs: number;
}

interface Entry {
  /** Of the RenderService; not all of it, for its defaulted spec takes as much as the one in the cache. */
  service: Pick<RenderService['metadata'], 'namespace' | 'name' | 'uid'>;
  serial: string;
  generation: number;
  sinceMs: number;
  pods: Map<string, PodEntry>;
  isRunning: boolean;
  /** Ends a pause. */
  wake: () => void;
  said: string;
}

export interface LiveSettingsOptions {
  rest: Rest;
  podsOf: (namespace: string, name: string) => KubeObject[];
  /** Called with namespace/name. */
  onChange: (key: string) => void;
  /** Called for the first of several failures in a row. */
  onFailed: (key: string, error: unknown) => void;
  /** Reads a page of port 8999 of a pod. */
  get?: (address: string, path: string) => Promise<string>;
  nowMs?: () => number;
  /** Waits; a test need not. */
  pause?: (ms: number) => Promise<void>;
}

export class LiveSettings {
  readonly #options: Required<LiveSettingsOptions>;
  /** By uid of the RenderService. */
  readonly #entries = new Map<string, Entry>();
  #stopped = false;
  #mayNudge = true;
  #visits = 0;
  /** Who waits for a visit to end. */
  readonly #waiting: (() => void)[] = [];

  constructor(options: LiveSettingsOptions) {
    this.#options = {
      get: (address, path) => getFromPod(address, PORTS.stats, path),
      nowMs: () => performance.now(),
      // A process that has lost the lead must end, and a timer would keep it.
      pause: (ms) => new Promise((resolve) => void setTimeout(resolve, ms).unref()),
      ...options,
    };
  }

  /** The ConfigMap has these settings; pods are to have them, those that come later, too. */
  want(renderService: RenderService, serial: string): void {
    const { namespace, name, uid, generation } = renderService.metadata;
    const now = this.#options.nowMs();
    const known = this.#entries.get(uid);
    const entry = known ?? {
      service: { namespace, name, uid },
      serial,
      generation,
      sinceMs: now,
      pods: new Map(),
      isRunning: false,
      wake: () => {},
      said: '',
    };
    this.#entries.set(uid, entry);
    if (entry.serial !== serial) {
      for (const pod of entry.pods.values()) Object.assign(pod, { nudges: 0, ...soon(now) });
      Object.assign(entry, { serial, sinceMs: now });
    } else if (entry.generation === UNWRITTEN) {
      // A pod may have got the others meanwhile. The number of nudges stays: the next one must have another value.
      for (const pod of entry.pods.values()) {
        Object.assign(pod, { serial: undefined, problem: undefined, nudgedFor: undefined, ...soon(now) });
      }
      entry.sinceMs = now;
    }
    entry.generation = generation;
    entry.wake();
    if (!entry.isRunning) void this.#run(entry);
  }

  /**
   * The ConfigMap has settings with this serial, or none. If those are not the ones that pods are to have, no pod is
   * known to keep them: status says that they are not written, and pods are asked again once they are.
   */
  found(uid: string, serial: string | undefined): void {
    const entry = this.#entries.get(uid);
    if (entry && entry.serial !== serial) entry.generation = UNWRITTEN;
  }

  /** How far the settings of a RenderService have come; undefined where none are wanted yet. */
  of(uid: string): LiveView | undefined {
    const entry = this.#entries.get(uid);
    if (!entry) return undefined;
    const { serial, generation, sinceMs } = entry;
    // Those of a revision that rests get them, too, but nobody waits for that.
    const ready = this.#pods(entry).filter((pod) => isReady(pod) && isServing(pod));
    const known = ready.map(({ metadata }) => entry.pods.get(metadata.uid ?? ''));
    const late = ready.find((_pod, index) => known[index]?.serial !== serial);
    const problem = late && entry.pods.get(late.metadata.uid ?? '')?.problem;
    return {
      ...{ serial, generation, sinceMs },
      pods: ready.length,
      have: known.filter((pod) => pod?.serial === serial).length,
      others: known.filter((pod) => pod?.serial !== undefined && pod.serial !== serial).length,
      silent: known.filter((pod) => pod?.serial === undefined).length,
      unasked: known.filter((pod) => pod?.serial === undefined && pod?.problem === undefined).length,
      knowing: known.filter((pod) => pod?.knowsCanary).length,
      keeping: known.filter((pod) => pod?.keepsPeople).length,
      ...(late && { problem: `${late.metadata.name}: ${problem ?? 'it has not been asked yet'}` }),
    };
  }

  /** Forgets RenderServices that are gone. */
  keepOnly(uids: Set<string>): void {
    for (const uid of this.#entries.keys()) if (!uids.has(uid)) this.#entries.delete(uid);
  }

  /** Begins no nudge from now on; `Rest.endWrites` waits for those under way. */
  stop(): void {
    this.#stopped = true;
  }

  #pods({ service: { namespace, name } }: Entry): KubeObject[] {
    return this.#options.podsOf(namespace, name).filter((pod) => podAddress(pod) !== undefined);
  }

  #isWanted(entry: Entry): boolean {
    return !this.#stopped && this.#entries.get(entry.service.uid) === entry;
  }

  /** Until all pods have them. Who comes later is told of by a reconcile. */
  async #run(entry: Entry): Promise<void> {
    entry.isRunning = true;
    try {
      while (this.#isWanted(entry)) {
        const late = this.#late(entry);
        this.#tell(entry);
        if (late.length === 0) break;
        const now = this.#options.nowMs();
        const due = late.filter(([, { nextLookMs }]) => nextLookMs <= now);
        if (due.length > 0) await this.#visit(entry, due);
        else await this.#pause(entry, Math.min(...late.map(([, { nextLookMs }]) => nextLookMs - now)));
      }
    } finally {
      entry.isRunning = false;
    }
  }

  async #pause(entry: Entry, ms: number): Promise<void> {
    const woken = new Promise<void>((resolve) => {
      entry.wake = resolve;
    });
    await Promise.race([woken, this.#options.pause(ms)]);
  }

  /** Pods that have them not, as far as it is known. */
  #late(entry: Entry): [KubeObject, PodEntry][] {
    const pods = this.#pods(entry);
    const uids = new Set(pods.map(({ metadata }) => metadata.uid));
    for (const uid of entry.pods.keys()) if (!uids.has(uid)) entry.pods.delete(uid);
    const now = this.#options.nowMs();
    return pods.flatMap((pod): [KubeObject, PodEntry][] => {
      const uid = pod.metadata.uid ?? '';
      const known = entry.pods.get(uid) ?? { nudges: 0, ...soon(now) };
      entry.pods.set(uid, known);
      return known.serial === entry.serial ? [] : [[pod, known]];
    });
  }

  async #visit(entry: Entry, due: [KubeObject, PodEntry][]): Promise<void> {
    const waiting = due.values();
    const visitNext = async () => {
      for (const [pod, known] of waiting) {
        if (this.#visits >= CONCURRENCY_IN_ALL) await new Promise<void>((resolve) => this.#waiting.push(resolve));
        else this.#visits += 1;
        try {
          if (!this.#isWanted(entry)) return;
          await this.#visitOne(entry, pod, known);
        } finally {
          this.#endVisit();
        }
      }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, visitNext));
  }

  /** The next one has its place. */
  #endVisit(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#visits -= 1;
  }

  /** Asked first: a pod that has begun since the ConfigMap was written, or another leader has nudged, needs nothing. */
  async #visitOne(entry: Entry, pod: KubeObject, known: PodEntry): Promise<void> {
    const { serial } = entry;
    const isKnownLate = known.serial !== undefined && known.nudgedFor !== serial;
    if (!isKnownLate) await this.#ask(pod, known, serial);
    if (!this.#isWanted(entry)) return;
    const now = this.#options.nowMs();
    if (known.serial === serial) return;
    known.lookMs = Math.min(
      LOOK_MS_MAX,
      now - entry.sinceMs > 10_000 || known.serial === undefined ? 2 * known.lookMs : LOOK_MS,
    );
    known.nextLookMs = now + known.lookMs;
    if (known.nextNudgeMs <= now && mayLack(pod, known)) await this.#nudge(entry, pod, known, now);
  }

  async #ask(pod: KubeObject, known: PodEntry, wanted: string): Promise<void> {
    try {
      const page = await this.#options.get(podAddress(pod) as string, '/live');
      const serial = /^serial=(\w{1,64})$/m.exec(page)?.[1];
      // Of ten thousand pods that say the same one text is kept, and not each page.
      known.serial = serial === wanted ? wanted : serial;
      known.knowsCanary = /^canary=1$/m.test(page);
      known.keepsPeople = /^sticky=1$/m.test(page);
      known.problem = /^problem=([ -~]{1,256})$/m.exec(page)?.[1] ?? 'it still has those of before';
    } catch (error) {
      known.problem = `the operator cannot read its port ${PORTS.stats} (${(error as Error).message})`;
    }
  }

  async #nudge(entry: Entry, pod: KubeObject, known: PodEntry, now: number): Promise<void> {
    const { serial } = entry;
    const { namespace = '', name, uid } = pod.metadata;
    // Another value each time: the same one would be no change.
    const value = known.nudges === 0 ? serial : `${serial}.${known.nudges}`;
    known.nudgedFor = serial;
    known.nudges += 1;
    known.nextNudgeMs = now + Math.min(NUDGE_MS_MAX, NUDGE_AGAIN_MS * 2 ** (known.nudges - 1));
    try {
      await this.#options.rest.request('PATCH', objectPath(kinds.pod, namespace, name), {
        contentType: MERGE_PATCH,
        // The uid makes the API server refuse a pod of the same name that is another one.
        body: { metadata: { uid, annotations: { [ANNOTATION_LIVE]: value } } },
      });
      this.#mayNudge = true;
    } catch (error) {
      if (isNotFound(error)) return;
      if (this.#mayNudge) this.#options.onFailed(keyOf(entry), error);
      this.#mayNudge = false;
    }
  }

  #tell(entry: Entry): void {
    // The reconcile that has brought these two knows them.
    const text = JSON.stringify({ ...this.of(entry.service.uid), generation: undefined, sinceMs: undefined });
    if (text === entry.said) return;
    entry.said = text;
    this.#options.onChange(keyOf(entry));
  }
}

/**
 * One that says nothing and is not ready has just begun, with what the ConfigMap has. One that is ready may be out of
 * reach, and what one nudge does not do for it another one will not.
 */
function mayLack(pod: KubeObject, { serial, nudges }: PodEntry): boolean {
  return serial !== undefined || (nudges === 0 && isReady(pod));
}

function soon(now: number): Pick<PodEntry, 'nextNudgeMs' | 'lookMs' | 'nextLookMs'> {
  return { nextNudgeMs: now, lookMs: LOOK_MS, nextLookMs: now };
}

function keyOf({ service: { namespace, name } }: Entry): string {
  return `${namespace}/${name}`;
}

function isServing({ metadata }: KubeObject): boolean {
  return metadata.labels?.[LABEL_SERVING] !== 'false';
}

function isReady(pod: KubeObject): boolean {
  return (statusOf(pod).conditions ?? []).some(({ type, status }) => type === 'Ready' && status === 'True');
}
