/**
 * Objects of a RenderService that others write, too. What they set is taken back, and told. A program sets it again:
 * two that do so at full speed load the API server, and neither ever wins. So Corelane slows down, and says so. One
 * record for each object holds all that is remembered of it.
 */
import type { V1PodTemplateSpec } from '@kubernetes/client-node';
import type { Condition } from '../api/conditions.ts';
import {
  ANNOTATION_APPLIED_HASH,
  ANNOTATION_CANARY,
  ANNOTATION_COMPLETED,
  ANNOTATION_MADE_OF,
  ANNOTATION_NUMBER,
  ANNOTATION_RENEWED,
  ANNOTATION_RETIRED,
  GROUP,
  KIND,
  LABEL_SERVING,
  LIVE_FILE,
} from '../api/names.ts';
import type { RenderServiceResource } from '../api/resource.ts';
import type { Difference } from '../kube/apply.ts';
import { foreignFields } from '../kube/drift.ts';
import { kinds } from '../kube/kinds.ts';
import { digestOf } from '../kube/packed.ts';
import { TokenBucket } from '../kube/token-bucket.ts';
import type { KubeObject } from '../kube/types.ts';
import { type Admission, admissionOf, podHurts } from './admission.ts';
import { foreignState, foreignWrite } from './foreign-writes.ts';

/**
 * Repairs of one object at once: more than a person does who tries something out, and a second or two of a program.
 * Then one in so long.
 */
const REPAIRS = { burst: 30, everyMs: 60_000 };

/** What somebody has done by hand is told for so long. */
const TAKEN_BACK_MS = 600_000;

/** Reasons of `ObjectsInSync` that tell of others who write. */
const OF_OTHERS = ['TakenBack', 'Contended'];

/** Annotations of a Deployment from which the next plan is made. */
const READ_BY_THE_PLAN = [
  ANNOTATION_CANARY,
  ANNOTATION_COMPLETED,
  ANNOTATION_MADE_OF,
  ANNOTATION_NUMBER,
  ANNOTATION_RENEWED,
  ANNOTATION_RETIRED,
];

interface Remembered {
  /** What was last applied, or found to be. */
  applied?: {
    hash: string;
    /** Uid of the RenderService: another one of the same name has objects of its own. */
    owner: string | undefined;
    resourceVersion: string | undefined;
  };
  admission?: Admission;
  /** Repairs that are left; there since the first one. */
  repairs?: TokenBucket;
  /** A sentence, once there were too many repairs. */
  contended?: string;
  takenBack?: { about: string; atMs: number };
}

/** Of a RenderService. */
interface Service {
  /** By kind and name. */
  objects: Map<string, Remembered>;
  /** When this process first saw what another one had told; undefined where it has told something itself. */
  inheritedMs?: number | undefined;
  /** A sentence about what admission has made of its pods. */
  podHurts?: string | undefined;
  /** Whether all of its objects have been looked at: until then less is known of them than status says. */
  isKnown?: boolean;
  /** What is asked for: a user's change is written at once, whoever else writes. */
  asked?: string;
  /** What the plan reads of Deployments, by kind and name: as this process has left it, and as this reconcile has. */
  left: Map<string, string>;
  seen: Map<string, string>;
  /** A sentence about a write of somebody else from which the plan may have changed. */
  meddled?: string | undefined;
  /** Whether a repair waits. */
  isHeld?: boolean;
  /** As this process has last written it. */
  status?: { generation: number; digest: string } | undefined;
}

export class Contention {
  readonly #services = new Map<string, Service>();
  readonly #now: () => number;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  /**
   * Begins a reconcile. Looks for Deployments from which the plan would be another one because of what somebody has
   * written into them: then each change of the plan is a repair, whichever object it is for. Compares what the plan
   * reads, and no resource versions: a Deployment gets a new one with every pod that becomes ready.
   */
  begin(key: string, { metadata }: Pick<RenderServiceResource, 'metadata'>, deployments: KubeObject[]): void {
    const service = this.#service(key);
    const asked = hashed([metadata.uid, metadata.generation, ownAnnotations(metadata.annotations)]);
    const isSame = service.asked === asked;
    service.asked = asked;
    service.isHeld = false;
    service.seen = new Map(deployments.map((one) => [nameOf(one), stateOf(one)]));
    const other = deployments.find((one) => {
      const left = service.left.get(nameOf(one));
      return left !== undefined && left !== service.seen.get(nameOf(one));
    });
    service.meddled = isSame && other ? foreignState(other) : undefined;
  }

  /** Notes that `live` is what `desired` asks for: it has been applied, or was found to be. */
  applied(key: string, desired: KubeObject, live: KubeObject): void {
    const object = this.#object(key, desired);
    const { hash, resourceVersion } = object.applied ?? {};
    const applied = { hash: hashOf(desired), owner: ownerOf(desired), resourceVersion: live.metadata.resourceVersion };
    // To look costs a template that is unpacked: at rest nothing new is to be seen.
    const isSame = hash === applied.hash && resourceVersion === applied.resourceVersion;
    if (!isSame || resourceVersion === undefined) object.admission = admissionOf(desired, live);
    object.applied = applied;
    if (desired.kind !== kinds.deployment.kind) return;
    const { left, seen } = this.#service(key);
    for (const states of [left, seen]) states.set(nameOf(desired), stateOf(live));
  }

  /** Notes that the answer to a write of an object, or of the status, is lost: what is there may be our own. */
  lost(key: string, desired?: KubeObject): void {
    const service = this.#service(key);
    if (!desired) service.status = undefined;
    else for (const states of [service.left, service.seen]) states.delete(nameOf(desired));
  }

  /** Notes what admission has made of pods, where that hurts. */
  podsAdmitted(key: string, template: V1PodTemplateSpec, pods: KubeObject[]): void {
    const service = this.#service(key);
    service.podHurts = podHurts(template, pods, service.podHurts);
  }

  /**
   * Whether it is somebody else who has made the difference between `live` and `desired`: the plan has not changed
   * since it was last applied. Of live settings the plan may have changed because of what somebody has written there:
   * they are read from that object. Nobody but us has business with it, so another version is somebody else's. So it
   * may have because of what somebody has written into a Deployment (`begin`).
   */
  isRepair(key: string, desired: KubeObject, live: KubeObject | undefined, todo: Difference): boolean {
    if (todo === 'edited' || todo === 'foreign-fields') return true;
    const { applied } = this.#object(key, desired);
    if (todo === 'none' || !applied) return false;
    if (!live) return applied.owner === ownerOf(desired);
    if (applied.hash === hashOf(desired)) return true;
    if (isLive(desired) && applied.resourceVersion !== live.metadata.resourceVersion) return true;
    return this.#service(key).meddled !== undefined;
  }

  /** Whether an object of the RenderService `key` may be repaired now. `live` is undefined where it is gone. */
  mayRepair(key: string, desired: KubeObject, live: KubeObject | undefined): boolean {
    const service = this.#service(key);
    const object = this.#object(key, desired);
    const isPlanned = object.applied !== undefined && object.applied.hash !== hashOf(desired);
    const may = this.#mayWrite(object, () => (live && isPlanned && service.meddled) || foreignWrite(desired, live));
    service.isHeld ||= !may;
    return may;
  }

  /**
   * Whether a pod of the RenderService may be labelled now. Every label counts, whatever its value: one that goes back
   * and forth is a fight, too, and a revision does so a few times in its life.
   */
  mayLabel(key: string, pod: KubeObject): boolean {
    const about = `Pod "${pod.metadata.name}": somebody changes its label ${LABEL_SERVING}`;
    return this.#mayWrite(this.#object(key, pod), () => about);
  }

  /**
   * Whether the status of `resource` may be written now: without bound over what this process has written itself, and
   * after a change of the spec.
   */
  mayWriteStatus(key: string, { metadata, status }: RenderServiceResource): boolean {
    const { status: written } = this.#service(key);
    if (!written || written.generation !== metadata.generation || written.digest === hashed(status)) return true;
    const about = `${KIND} "${metadata.name}": somebody changes its status, which the operator decides`;
    return this.#mayWrite(this.#object(key, { kind: KIND, metadata: metadata as KubeObject['metadata'] }), () => about);
  }

  /** Notes what the API server has made of a status that this process has written. */
  statusWritten(key: string, { metadata, status }: RenderServiceResource): void {
    this.#service(key).status = { generation: metadata.generation, digest: hashed(status) };
  }

  /** Whether an object that the plan does not have may be deleted now. */
  mayRemove(key: string, object: KubeObject): boolean {
    const about = `${nameOf(object)}: somebody makes it, and the RenderService does not ask for it`;
    return this.#mayWrite(this.#object(key, object), () => about);
  }

  #mayWrite(object: Remembered, about: () => string): boolean {
    object.repairs ??= new TokenBucket(REPAIRS.burst, REPAIRS.everyMs, this.#now);
    if (object.repairs.take()) return true;
    object.contended = about();
    return false;
  }

  /** Notes that somebody has written into `live`, or deleted it, and that it has become `desired` again. */
  takenBack(key: string, desired: KubeObject, live: KubeObject | undefined): void {
    const object = this.#object(key, desired);
    // The plan of live settings has changed, and somebody may have written them or not.
    const isPlanned = object.applied !== undefined && object.applied.hash !== hashOf(desired);
    if (live && isPlanned && foreignFields(live).length === 0) return;
    object.takenBack = { about: foreignWrite(desired, live), atMs: this.#now() };
    this.#service(key).inheritedMs ??= Number.NEGATIVE_INFINITY;
  }

  /**
   * Ends a reconcile: forgets all objects but these, which have been looked at, unless something is to be told of them.
   */
  keepOnly(key: string, objects: Pick<KubeObject, 'kind' | 'metadata'>[]): void {
    const service = this.#service(key);
    service.isKnown = true;
    if (!service.isHeld) service.left = service.seen;
    const names = new Set(objects.map(nameOf));
    for (const [name, object] of service.objects) {
      if (names.has(name)) continue;
      const isAtPeace = object.repairs?.isFull ?? true;
      if (isAtPeace && this.#freshOf(object) === undefined) service.objects.delete(name);
      // It is another object that may come in its place.
      else Object.assign(object, { applied: undefined, admission: undefined });
    }
  }

  /** A sentence about each object of a RenderService that others fight for. Half an hour of peace ends it. */
  of(key: string): string[] {
    return this.#objects(key).flatMap((object) => {
      if (object.repairs?.isFull) Object.assign(object, { repairs: undefined, contended: undefined });
      return object.contended ?? [];
    });
  }

  /** A sentence about each object that somebody has written into of late. */
  takenBackOf(key: string): string[] {
    return this.#objects(key).flatMap((object) => this.#freshOf(object) ?? []);
  }

  #freshOf({ takenBack }: Remembered): string | undefined {
    return takenBack && this.#now() - takenBack.atMs < TAKEN_BACK_MS ? takenBack.about : undefined;
  }

  /**
   * The condition in which another process, which led before, has told of such writes, or of a fight, for as long as
   * it would tell of the writes itself: this process has made too few repairs to call it a fight.
   */
  toldBefore(key: string, conditions: Condition[] | undefined): Condition | undefined {
    const service = this.#service(key);
    const told = conditions?.find(({ type, reason }) => type === 'ObjectsInSync' && OF_OTHERS.includes(reason));
    service.inheritedMs ??= told ? this.#now() : Number.NEGATIVE_INFINITY;
    return this.#now() - service.inheritedMs < TAKEN_BACK_MS ? told : undefined;
  }

  /** Sentences about what mutating admission has made of objects of a RenderService. */
  admissionsOf(key: string): { changed: string[]; hurts: string[] } {
    const all = this.#objects(key).map(({ admission }) => admission);
    const hurts = all.flatMap((one) => one?.hurts ?? []);
    const { podHurts } = this.#services.get(key) ?? {};
    return {
      changed: all.flatMap((one) => one?.changed ?? []),
      // Pods have what their Deployment has: once is enough.
      hurts: hurts.length === 0 && podHurts !== undefined ? [podHurts] : hurts,
    };
  }

  /** Whether all objects of a RenderService have been looked at since this process began to lead. */
  isKnown(key: string): boolean {
    return this.#services.get(key)?.isKnown === true;
  }

  forget(key: string): void {
    this.#services.delete(key);
  }

  #service(key: string): Service {
    const service = this.#services.get(key) ?? { objects: new Map(), left: new Map(), seen: new Map() };
    this.#services.set(key, service);
    return service;
  }

  #objects(key: string): Remembered[] {
    return [...(this.#services.get(key)?.objects.values() ?? [])];
  }

  #object(key: string, object: Pick<KubeObject, 'kind' | 'metadata'>): Remembered {
    const { objects } = this.#service(key);
    const name = nameOf(object);
    const remembered = objects.get(name) ?? {};
    objects.set(name, remembered);
    return remembered;
  }
}

function nameOf({ kind, metadata }: Pick<KubeObject, 'kind' | 'metadata'>): string {
  return `${kind} "${metadata.name}"`;
}

/** What the plan reads of a Deployment; the same whether the cache keeps all of it or not. */
function stateOf({ metadata: { annotations = {} }, spec }: KubeObject): string {
  const { replicas } = (spec ?? {}) as { replicas?: number };
  return hashed([replicas, ...READ_BY_THE_PLAN.map((name) => annotations[name] ?? null)]);
}

/** Of a value as the API server answers it: always with its fields in the same order. */
function hashed(value: unknown): string {
  return digestOf(JSON.stringify(value) ?? '');
}

function ownAnnotations(annotations: Record<string, string> = {}): [string, string][] {
  const own = Object.entries(annotations).filter(([name]) => name.startsWith(`${GROUP}/`));
  return own.toSorted(([one], [other]) => one.localeCompare(other));
}

/** Whether it is the ConfigMap of live settings, as planned. */
function isLive(desired: KubeObject): boolean {
  return LIVE_FILE in ((desired as { data?: object }).data ?? {});
}

function hashOf({ metadata }: KubeObject): string {
  return metadata.annotations?.[ANNOTATION_APPLIED_HASH] ?? '';
}

function ownerOf({ metadata }: KubeObject): string | undefined {
  return metadata.ownerReferences?.[0]?.uid;
}
