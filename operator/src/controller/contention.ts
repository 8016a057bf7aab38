/**
 * Objects that another controller writes again and again: what it sets we take away, which makes it set it again. Two
 * programs that do so at full speed load the API server, and neither ever wins; so the second one to notice, which is
 * us, slows down and says so.
 */
import type { Condition } from '../api/conditions.ts';
import { ANNOTATION_APPLIED_HASH, LIVE_FILE } from '../api/names.ts';
import type { Difference } from '../kube/apply.ts';
import { fieldText, foreignFields, lastWriter } from '../kube/drift.ts';
import { kinds } from '../kube/kinds.ts';
import { TokenBucket } from '../kube/token-bucket.ts';
import type { KubeObject } from '../kube/types.ts';

/**
 * Repairs of one object at once: more than a person does who tries something out, and a second or two of a program.
 * Then one in so long.
 */
const REPAIRS = { burst: 30, everyMs: 60_000 };

/** What somebody has done by hand is told for so long. */
const TAKEN_BACK_MS = 600_000;

/** Fields that are named in a message. */
const NAMED_MAX = 3;

interface Contended {
  bucket: TokenBucket;
  /** A sentence, once there were too many repairs. */
  about?: string;
}

interface Applied {
  hash: string;
  /** Of the object when it was as it should be. */
  resourceVersion: string | undefined;
}

export class Contention {
  /** By RenderService, then by object. */
  readonly #objects = new Map<string, Map<string, Contended>>();
  /** What was last applied, likewise. */
  readonly #applied = new Map<string, Map<string, Applied>>();
  /** What each pod was last labelled with, by RenderService and then by uid. */
  readonly #labelled = new Map<string, Map<string, boolean>>();
  /** What was taken back, by RenderService and then by object. */
  readonly #takenBack = new Map<string, Map<string, { about: string; atMs: number }>>();
  readonly #now: () => number;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /** Notes that `live` is what `desired` asks for: it has been applied, or was found to be. */
  applied(key: string, desired: KubeObject, live: KubeObject): void {
    const all = this.#applied.get(key) ?? new Map<string, Applied>();
    this.#applied.set(key, all);
    all.set(place(desired), { hash: hashOf(desired), resourceVersion: live.metadata.resourceVersion });
  }

  /**
   * Whether it is somebody else who has made the difference between `live` and `desired`: the plan has not changed
   * since it was last applied. Of live settings the plan may have changed because of what somebody has written there:
   * they are read from that object. Nobody but us has business with it, so another version is somebody else's.
   */
  isRepair(key: string, desired: KubeObject, live: KubeObject, todo: Difference): boolean {
    if (todo === 'edited' || todo === 'foreign-fields') return true;
    const before = this.#applied.get(key)?.get(place(desired));
    if (todo !== 'changed' || !before) return false;
    if (before.hash === hashOf(desired)) return true;
    return isLive(desired) && before.resourceVersion !== live.metadata.resourceVersion;
  }

  /** Whether `live`, an object of the RenderService `key`, may be repaired now. */
  mayRepair(key: string, live: KubeObject): boolean {
    const objects = this.#objects.get(key) ?? new Map<string, Contended>();
    this.#objects.set(key, objects);
    const name = `${live.kind} "${live.metadata.name}"`;
    const entry = objects.get(name) ?? { bucket: new TokenBucket(REPAIRS.burst, REPAIRS.everyMs, this.#now) };
    objects.set(name, entry);
    if (entry.bucket.take()) return true;
    entry.about = `${name}: ${whoDoesWhat(live)}`;
    return false;
  }

  /** Whether a pod of the RenderService may be labelled now: without bound as often as it is to have another label. */
  mayLabel(key: string, pod: KubeObject, isServing: boolean): boolean {
    const labelled = this.#labelled.get(key) ?? new Map<string, boolean>();
    this.#labelled.set(key, labelled);
    const { uid = '' } = pod.metadata;
    if (labelled.get(uid) === isServing) return this.mayRepair(key, pod);
    labelled.set(uid, isServing);
    return true;
  }

  /** Forgets all pods but these. */
  keepPods(key: string, pods: KubeObject[]): void {
    const uids = new Set(pods.map(({ metadata }) => metadata.uid));
    const labelled = this.#labelled.get(key);
    for (const uid of labelled?.keys() ?? []) if (!uids.has(uid)) labelled?.delete(uid);
  }

  /** A sentence about each object of a RenderService that others fight for. Half an hour of peace ends it. */
  of(key: string): string[] {
    const objects = this.#objects.get(key);
    if (!objects) return [];
    for (const [name, { bucket }] of objects) if (bucket.isFull) objects.delete(name);
    if (objects.size === 0) this.#objects.delete(key);
    return [...objects.values()].flatMap(({ about }) => about ?? []);
  }

  /** Notes that somebody has written into `live`, which becomes `desired` again. */
  takenBack(key: string, live: KubeObject, desired: KubeObject): void {
    const objects = this.#takenBack.get(key) ?? new Map();
    this.#takenBack.set(key, objects);
    const name = `${live.kind} "${live.metadata.name}"`;
    objects.set(name, { about: `${name}: ${scaling(live, desired) ?? whoDoesWhat(live)}`, atMs: this.#now() });
  }

  /** A sentence about each object that somebody has written into of late. */
  takenBackOf(key: string): string[] {
    const all = [...(this.#takenBack.get(key)?.values() ?? [])];
    return all.filter(({ atMs }) => this.#now() - atMs < TAKEN_BACK_MS).map(({ about }) => about);
  }

  forget(key: string): void {
    this.#labelled.delete(key);
    this.#takenBack.delete(key);
    this.#objects.delete(key);
    this.#applied.delete(key);
  }
}

/** What another process, which led before, has told of such a write, for as long as it would tell it itself. */
export function toldBefore(conditions: Condition[] | undefined, nowMs: number): Condition | undefined {
  const told = conditions?.find(({ type, reason }) => type === 'ObjectsInSync' && reason === 'TakenBack');
  return told && nowMs - Date.parse(told.lastTransitionTime) < TAKEN_BACK_MS ? told : undefined;
}

/**
 * Which of the objects of a RenderService. Beside its live settings it has one ConfigMap at a time, whose name changes
 * with what is in it.
 */
function place(desired: KubeObject): string {
  const { kind, metadata } = desired;
  return kind === kinds.configMap.kind && !isLive(desired) ? kind : `${kind} "${metadata.name}"`;
}

/** Whether it is the ConfigMap of live settings, as planned. */
function isLive(desired: KubeObject): boolean {
  return LIVE_FILE in ((desired as { data?: object }).data ?? {});
}

function hashOf({ metadata }: KubeObject): string {
  return metadata.annotations?.[ANNOTATION_APPLIED_HASH] ?? '';
}

/** `kubectl scale` goes another way than other writes. */
function scaling(live: KubeObject, desired: KubeObject): string | undefined {
  const [is, was] = [live, desired].map(({ spec }) => (spec as { replicas?: number } | undefined)?.replicas);
  const scaler = live.metadata.managedFields?.findLast(({ subresource }) => subresource === 'scale');
  return is === was || !scaler ? undefined : `"${scaler.manager}" has scaled it from ${was} to ${is}`;
}

function whoDoesWhat(live: KubeObject): string {
  const foreign = foreignFields(live);
  if (foreign.length === 0) return `"${lastWriter(live) ?? 'somebody'}" changes what Corelane has set`;
  const fields = [...new Set(foreign.map(({ path }) => fieldText(path)))];
  const managers = [...new Set(foreign.map(({ manager }) => `"${manager}"`))];
  const rest = fields.length > NAMED_MAX ? ` and ${fields.length - NAMED_MAX} more` : '';
  return `${managers.join(', ')} sets ${fields.slice(0, NAMED_MAX).join(', ')}${rest}`;
}
