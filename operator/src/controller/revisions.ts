/** Revisions of a service: what their Deployments say of them, and what these are to be next. */
import {
  ANNOTATION_CANARY,
  ANNOTATION_COMPLETED,
  ANNOTATION_MADE_OF,
  ANNOTATION_NUMBER,
  ANNOTATION_RENEWED,
  ANNOTATION_RETIRED,
  LABEL_REVISION,
} from '../api/names.ts';
import type { RenderService, ResourceMetadata } from '../api/resource.ts';
import { durationMs, rfc3339 } from '../api/scalars.ts';
import { controllerOf } from '../kube/owner.ts';
import { unpacked } from '../kube/packed.ts';
import type { KubeObject } from '../kube/types.ts';
import type { PlannedPods, PlannedRevision } from '../plan/index.ts';
import { type Made, readMade } from '../plan/made.ts';
import { BEFORE_REVISIONS, isRevisionOf, revisionOfName } from '../plan/own-deployments.ts';
import { isMemoryOf, memoryOf, type Pods } from '../plan/pods.ts';
import type { LiveCanary } from '../render/live.ts';
import { nextRollout } from '../rollout/canary.ts';
import { type CanaryState, canaryStateText, readCanaryState } from '../rollout/canary-state.ts';
import { type Acks, type CanaryWorld, type RolloutNext, restingOf } from '../rollout/canary-world.ts';
import { forgotten } from '../rollout/history.ts';
import type { Revision } from '../rollout/next-replicas.ts';
import { ANNOTATION_REVISION } from './cached-parts.ts';
import type { Caches } from './caches.ts';
import { deploymentStatus } from './deployment-status.ts';
import { isPast } from './past-revision.ts';
import { canaryPlanOf, confirmAtMs, liveCanary } from './shares.ts';

/** A revision that there is. */
export interface FoundRevision extends Revision {
  /** Undefined for the one of a version that had one Deployment for all. */
  revision: string | undefined;
  deployment: KubeObject;
  made: Made | undefined;
  /** Pods that exist. */
  pods: number;
  /** What is remembered of it as a canary. */
  state: CanaryState | 'lost' | undefined;
}

/**
 * Decompressing takes half a millisecond, and what comes of it 20 kB: of services that are looked at again and again
 * while their pods change it is kept, by its text; of a thousand at rest it is not.
 */
const remembered = new Map<string, Made | undefined>();
const REMEMBERED_MAX = 64;
/** In characters of JSON. Somebody may have written it. */
const REMEMBERED_LENGTH_MAX = 128 * 1024;

/** What a Deployment remembers, if that is its own. */
function madeOf(deployment: KubeObject, revision: string | undefined): Made | undefined {
  const text = deployment.metadata.annotations?.[ANNOTATION_MADE_OF];
  if (text === undefined) return undefined;
  const key = `${revision} ${text}`;
  const isKnown = remembered.has(key);
  const made = isKnown ? remembered.get(key) : readOwnMade(text, revision);
  // Of most services there are more of these than of others.
  if (isPast(deployment)) return made;
  if (!isKnown && (key.length > REMEMBERED_LENGTH_MAX || JSON.stringify(made ?? null).length > REMEMBERED_LENGTH_MAX))
    return made;
  // The one that was asked for last comes last.
  remembered.delete(key);
  remembered.set(key, made);
  const [oldest] = remembered.keys();
  if (remembered.size > REMEMBERED_MAX) remembered.delete(oldest as string);
  return made;
}

function readOwnMade(text: string, revision: string | undefined): Made | undefined {
  const made = readMade(text);
  return made && isMemoryOf(made, revision) ? made : undefined;
}

/** Revisions of a RenderService by its Deployments; the one that was asked for last comes first. */
export function foundRevisions({ name }: Pick<ResourceMetadata, 'name'>, deployments: KubeObject[]): FoundRevision[] {
  const ours = deployments.filter((deployment) => isRevisionOf(deployment, name));
  return ours.map((deployment) => foundRevision(name, deployment)).toSorted((one, other) => other.number - one.number);
}

function foundRevision(service: string, deployment: KubeObject): FoundRevision {
  const { name, annotations = {} } = deployment.metadata;
  const revision = revisionOfName(name, service) || undefined;
  const { replicas = 0, availableReplicas = 0 } = deploymentStatus(deployment);
  const retiredMs = Date.parse(annotations[ANNOTATION_RETIRED] ?? '');
  return {
    id: revision ?? BEFORE_REVISIONS,
    revision,
    deployment,
    made: madeOf(deployment, revision),
    number: Number.parseInt(annotations[ANNOTATION_NUMBER] ?? '', 10) || 0,
    replicas: (deployment.spec as { replicas?: number } | undefined)?.replicas ?? 0,
    available: availableReplicas,
    pods: replicas,
    wasComplete: annotations[ANNOTATION_COMPLETED] !== undefined,
    ...(Number.isFinite(retiredMs) && { retiredMs }),
    // Its pods lack the label by which the Service tells.
    canRest: revision !== undefined,
    state: readCanaryState(annotations[ANNOTATION_CANARY]),
  };
}

/** What is to be next. */
export interface Rollout {
  next: RolloutNext;
  pods: PlannedPods;
  /** Deployments that nobody can need any more. */
  forgotten: KubeObject[];
}

/** What the plan depends on beside the revisions. */
interface Circumstances {
  /** Of now, as annotations have it. */
  time: string;
  /** Pods of the revision that is asked for that find no room. */
  withoutRoom: number;
  canary: CanaryCircumstances;
}

/** What a canary depends on. */
export interface CanaryCircumstances extends Pick<CanaryWorld, 'facts' | 'nowMs' | 'told' | 'watchedOf'> {
  acksOf: (canary: LiveCanary | undefined, resting: string | undefined) => Acks;
  /** Whether none of its pods is in the Service. */
  isOut: (deployment: KubeObject) => boolean;
}

/** @param earlier revisions that there are */
export function planRollout(
  { spec }: RenderService,
  earlier: FoundRevision[],
  { config, ...chosen }: Pods,
  { time, withoutRoom, canary: { nowMs, facts, told, acksOf, watchedOf, isOut } }: Circumstances,
): Rollout {
  const found = earlier.map((one) => withPastRest(one, Date.parse(time)));
  const { rolling, retain, paused, canary: asked } = spec.rollout;
  const id = chosen.revision ?? BEFORE_REVISIONS;
  const wanted = {
    ...{ id, replicas: spec.replicas, isPaused: paused },
    ...{ maxSurge: rolling.maxSurge, maxUnavailable: rolling.maxUnavailable },
    retain: { forMs: durationMs(retain.for), replicas: retain.replicas },
    withoutRoom,
    canary: canaryPlanOf(asked),
    isTurn: chosen.annotations[ANNOTATION_RENEWED] !== undefined,
  };
  // To look at every pod of every revision is for the end of a canary alone.
  const isRetiring = found.some(({ state }) => state !== undefined && state !== 'lost' && state.phase === 'Retiring');
  const next = nextRollout(
    found.map((one) => ({ ...revisionOf(one), isOut: !isRetiring || isOut(one.deployment) })),
    wanted,
    {
      ...{ facts, nowMs, deadlineMs: 1_000 * rolling.progressDeadlineSeconds },
      ...(told && { told }),
      watchedOf,
      acksOf: (shares, resting) => acksOf(shares && liveCanary(shares, asked, told, nowMs), resting),
    },
  );
  const gone = new Set(forgotten(found.filter((one) => one.id !== id)));
  const revisions = next.revisions.flatMap((one): PlannedRevision[] => {
    const old = found.find((other) => other.id === one.id);
    // As it is to be, and of what it is to be made nobody knows who has not decompressed it.
    const isLeftAlone = one.id !== id && one.replicas === 0 && old && isPast(old.deployment);
    const pods = one.id === id ? chosen : old && existingPods(old);
    if (!pods || isLeftAlone || gone.has(one.id)) return [];
    const state = next.states.get(one.id);
    const annotations = {
      ...pods.annotations,
      ...annotationsOf(one, old, time),
      ...(state && { [ANNOTATION_CANARY]: canaryStateText(state) }),
    };
    return [{ revision: pods.revision, template: pods.template, replicas: one.replicas, annotations }];
  });
  // It stays so when its rest is over: pods need not be told of that.
  const resting = restingOf(next.revisions);
  const toldNext = next.shares && liveCanary(next.shares, asked, told, nowMs);
  const lastOfAll = found.find(({ revision }) => revision === undefined);
  const isGone = !lastOfAll || (id !== BEFORE_REVISIONS && lastOfAll.replicas === 0 && lastOfAll.pods === 0);
  const times = [next.againMs, toldNext && confirmAtMs(toldNext)].filter((ms) => ms !== undefined);
  return {
    next: { ...next, ...(times.length > 0 && { againMs: Math.min(...times) }) },
    pods: { revisions, config, resting, ...(toldNext && { canary: toldNext }), canRest: isGone },
    forgotten: found.filter((one) => gone.has(one.id)).map(({ deployment }) => deployment),
  };
}

/** A rest that begins some day would never end. Somebody may have written it, or had a clock that is ahead. */
function withPastRest(one: FoundRevision, nowMs: number): FoundRevision {
  return one.retiredMs === undefined ? one : { ...one, retiredMs: Math.min(one.retiredMs, nowMs) };
}

/** What is decided from. */
function revisionOf({ revision: _revision, deployment: _deployment, made: _made, ...one }: FoundRevision) {
  return one;
}

/** Without a memory of what it was made of, it stays what it is. */
function existingPods({ revision, deployment, made }: FoundRevision): Pods {
  const template = made?.template ?? (unpacked((deployment.spec as Made).template) as Made['template']);
  return { revision, template, annotations: memoryOf({ annotations: deployment.metadata.annotations ?? {} }) };
}

function annotationsOf(one: Revision, old: FoundRevision | undefined, time: string): Record<string, string> {
  const before = old?.deployment.metadata.annotations ?? {};
  return {
    [ANNOTATION_NUMBER]: String(one.number),
    ...(one.wasComplete && { [ANNOTATION_COMPLETED]: before[ANNOTATION_COMPLETED] ?? time }),
    ...(one.retiredMs !== undefined && { [ANNOTATION_RETIRED]: rfc3339(new Date(one.retiredMs)) }),
  };
}

/** Whether a Deployment is of a revision that gets no requests. */
export function isRetired({ metadata }: KubeObject): boolean {
  return metadata.annotations?.[ANNOTATION_RETIRED] !== undefined;
}

/**
 * For metrics: which revision each RenderService asks for, by its uid, as the pods of it name themselves; those of all
 * in one look.
 */
export function currentRevisions(caches: Caches): Map<string, string> {
  const newest = new Map<string, KubeObject>();
  const numberOf = ({ metadata }: KubeObject) => Number(metadata.annotations?.[ANNOTATION_NUMBER] ?? 0);
  for (const deployment of caches.owned('Deployment').list().filter(isOwnRevision)) {
    const owner = controllerOf(deployment)?.uid;
    const other = owner === undefined ? undefined : newest.get(owner);
    if (owner !== undefined && !(other && numberOf(other) >= numberOf(deployment))) newest.set(owner, deployment);
  }
  const templateHashes = templateHashesOf(caches);
  return new Map(
    [...newest].flatMap(([owner, deployment]) => {
      const revision = deployment.metadata.labels?.[LABEL_REVISION] ?? templateHashes(deployment);
      return revision === undefined ? [] : [[owner, revision] as const];
    }),
  );
}

/** The label pod-template-hash of the newest ReplicaSet: by it pods of a version without revisions name themselves. */
function templateHashesOf(caches: Caches): (deployment: KubeObject) => string | undefined {
  const byDeployment = Map.groupBy(caches.replicaSets.list(), (one) => controllerOf(one)?.uid);
  return ({ metadata: { name, uid, annotations } }) => {
    const all = byDeployment.get(uid) ?? [];
    const current = all.find(({ revision }) => revision === annotations?.[ANNOTATION_REVISION]);
    const prefix = `${name}-`;
    return current?.metadata.name.startsWith(prefix) ? current.metadata.name.slice(prefix.length) : undefined;
  };
}

function isOwnRevision(deployment: KubeObject): boolean {
  const owner = controllerOf(deployment);
  return owner !== undefined && isRevisionOf(deployment, owner.name);
}
