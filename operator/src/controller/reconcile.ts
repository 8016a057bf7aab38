/**
 * One RenderService, from its key to its status: read, compute, write, in this order, from the actual state and never
 * from an event. Errors that a change by the user must cure become `Stalled`; all others are the queue's to retry.
 */
import { type ConditionDraft, objectsInSync, retrying, type StalledReason, stalled } from '../api/conditions.ts';
import {
  parseRenderService,
  type RenderService,
  type RenderServiceResource,
  type RenderServiceStatus,
} from '../api/resource.ts';
import { apply, assertOwned, difference, NotOwnedError, readLive } from '../kube/apply.ts';
import type { EventDraft, EventRecorder } from '../kube/events.ts';
import { ApiError } from '../kube/rest.ts';
import type { KubeObject } from '../kube/types.ts';
import { desiredObjects, type OperatorAccess, type PlannedObject, type SidecarImage } from '../plan/index.ts';
import { type Fleet, observeFleet } from '../pods/fleet.ts';
import { CREATING_MS, isCreating } from '../pods/problems.ts';
import type { PodSampler } from '../pods/sampler.ts';
import { liveSerial, renderLive } from '../render/live.ts';
import { hasPeers } from '../render/model/pooling.ts';
import type { Caches } from './caches.ts';
import { Contention } from './contention.ts';
import type { LiveSettings } from './live-settings.ts';
import type { PeersKeys } from './peers-keys.ts';
import { prune, superfluous } from './prune.ts';
import type { Outcome } from './queue.ts';
import { type ScalingView, scalingCondition, scalingStatus } from './scaling-status.ts';
import type { Shells } from './shells.ts';
import {
  availablePods,
  computeStatus,
  differsInFiguresOnly,
  isUnchanged,
  liveCondition,
  rolloutConditions,
  writeStatus,
} from './status.ts';

/** A foreign object can go away without an event that we see. */
const STALLED_RECHECK_MS = 15_000;
/** Busy workers and queues change with every request; a write for them alone is worth it twice a minute. */
const FIGURES_MS = 30_000;
/** About 1.5 s of tries. Rights that have just been given are not known to every API server at once. */
const FORBIDDEN_TRIES = 5;
/** An object that somebody else writes is looked at again after this time. */
const CONTENDED_MS = 60_000;
/** About 3 s of tries: from here on status says that something is wrong. */
const QUIET_FAILURES = 6;

export interface ReconcilerOptions {
  caches: Caches;
  sidecar: SidecarImage;
  access: OperatorAccess;
  sampler: PodSampler;
  peersKeys: PeersKeys;
  shells: Shells;
  live: LiveSettings;
  /** What scaling has to say about a RenderService, by its uid. */
  scalingOf: (uid: string) => ScalingView | undefined;
  events: EventRecorder;
  now: () => Date;
  onWrite: (what: string, key: string) => void;
}

/** What cannot go on until somebody changes something. */
class StalledError extends Error {
  readonly reason: StalledReason;

  constructor(reason: StalledReason, message: string) {
    super(message);
    this.reason = reason;
  }
}

export class Reconciler {
  readonly #options: ReconcilerOptions;
  /** When metrics alone were last written, by key. */
  readonly #figuresAtMs = new Map<string, number>();
  readonly #contention = new Contention();

  constructor(options: ReconcilerOptions) {
    this.#options = options;
  }

  /**
   * @param key namespace/name
   * @param failures how often this key has failed in a row
   */
  async reconcile(key: string, failures = 0): Promise<Outcome> {
    const [namespace = '', name = ''] = key.split('/');
    const { caches } = this.#options;
    const resource = caches.renderServices.get(namespace, name);
    // Deletion needs no work: the garbage collector follows the owner references.
    if (resource === undefined || resource.metadata.deletionTimestamp) {
      this.#figuresAtMs.delete(key);
      this.#contention.forget(key);
      return {};
    }
    try {
      const applied = await this.#applyAll(resource, failures);
      const pods = caches.podsOf(namespace, name);
      const budget = caches.owned('PodDisruptionBudget').get(namespace, name);
      const shell = await this.#options.shells.problem(applied.renderService);
      const now = this.#options.now();
      const view = this.#options.live.of(resource.metadata.uid);
      const live = view && { view, forMs: performance.now() - view.sinceMs };
      const outcome = await this.#finish(resource, applied.deployment, (fleet) =>
        rolloutConditions(applied.renderService, applied.deployment, pods, {
          budget,
          fleet,
          live,
          now,
          remark: shell?.problem,
        }),
      );
      const contended = this.#contention.of(key).length > 0;
      const again = [
        applied.keyAfterMs,
        shell?.afterMs,
        contended && CONTENDED_MS,
        pods.some(isCreating) && CREATING_MS,
      ];
      return sooner(outcome, Math.min(...again.map((ms) => ms || Number.POSITIVE_INFINITY)));
    } catch (error) {
      const live = this.#ownDeployment(resource);
      if (error instanceof StalledError) {
        await this.#finish(resource, live, () => stalled(error.reason, error.message, availablePods(live)));
        return { requeueAfterMs: STALLED_RECHECK_MS, isStalled: true };
      }
      if (failures >= QUIET_FAILURES) {
        const message = `the operator tries again and again: ${(error as Error).message}`;
        // The error that matters is the first one; this write may fail for the same reason.
        const drafts = retrying(message, availablePods(live) > 0);
        await this.#finish(resource, live, () => drafts).catch(() => undefined);
      }
      throw error;
    }
  }

  #ownDeployment({ metadata: { namespace, name, uid } }: RenderServiceResource): KubeObject | undefined {
    const live = this.#options.caches.owned('Deployment').get(namespace, name);
    return live?.metadata.ownerReferences?.some((reference) => reference.uid === uid) ? live : undefined;
  }

  async #applyAll(
    resource: RenderServiceResource,
    failures: number,
  ): Promise<{ renderService: RenderService; deployment: KubeObject; keyAfterMs?: number | undefined }> {
    const { caches, peersKeys, sidecar, access } = this.#options;
    const parsed = parseRenderService(resource);
    if (!parsed.ok) {
      throw new StalledError('InvalidSpec', parsed.errors.map(({ path, message }) => `${path}: ${message}`).join('; '));
    }
    const { renderService } = parsed;
    const planned = desiredObjects(renderService, sidecar, access);
    // All are looked at before any is written: an object of somebody else must not leave the plan half done.
    const live = await Promise.all(planned.map((desired) => this.#readOwned(desired)));
    const { namespace, name } = resource.metadata;
    const keyAfterMs = hasPeers(renderService.spec)
      ? await peersKeys.ensure(renderService, caches.podsOf(namespace, name))
      : undefined;
    let deployment: KubeObject | undefined;
    for (const [index, desired] of planned.entries()) {
      const result = await this.#applyOne(`${namespace}/${name}`, desired, live[index], failures);
      if (desired.kind === 'Deployment') deployment = result;
    }
    this.#options.live.want(renderService, liveSerial(renderLive(renderService.spec)));
    await prune(caches, superfluous(caches, renderService, planned));
    return { renderService, deployment: deployment as KubeObject, keyAfterMs };
  }

  async #readOwned(desired: PlannedObject): Promise<KubeObject | undefined> {
    const { caches } = this.#options;
    const live = await readLive(caches.rest, caches.owned(desired.kind), desired as KubeObject);
    try {
      if (live) assertOwned(live, desired as KubeObject);
    } catch (error) {
      if (error instanceof NotOwnedError) throw new StalledError('NotOwned', error.message);
      throw error;
    }
    return live;
  }

  async #applyOne(
    key: string,
    desired: PlannedObject,
    live: KubeObject | undefined,
    failures: number,
  ): Promise<KubeObject> {
    const { caches, onWrite } = this.#options;
    const object = desired as KubeObject;
    const todo = difference(live, object);
    if (live && todo === 'none') {
      this.#contention.applied(key, object);
      return live;
    }
    if (live && this.#contention.isRepair(key, object, todo) && !this.#contention.mayRepair(key, live)) return live;
    try {
      const result = await apply(caches.rest, caches.owned(desired.kind), object, live);
      this.#contention.applied(key, object);
      onWrite(`${desired.kind} ${todo}`, `${desired.metadata.namespace}/${desired.metadata.name}`);
      return result;
    } catch (error) {
      if (isRefusal(error, failures)) {
        throw new StalledError(
          'Rejected',
          `the API server refuses ${desired.kind} "${desired.metadata.name}": ${error.message}`,
        );
      }
      throw error;
    }
  }

  #syncCondition({ status }: RenderServiceResource, key: string): ConditionDraft[] {
    const contended = this.#contention.of(key);
    if (contended.length > 0) return [objectsInSync.contended(contended)];
    return status?.conditions?.some(({ type }) => type === 'ObjectsInSync') ? [objectsInSync.yes()] : [];
  }

  /** Writes the status once, and then says in an Event what has changed. */
  async #finish(
    resource: RenderServiceResource,
    deployment: KubeObject | undefined,
    rollout: (fleet?: Fleet) => ConditionDraft[],
  ): Promise<Outcome> {
    const { caches, sampler, events, now, onWrite, scalingOf } = this.#options;
    const { namespace, name } = resource.metadata;
    const key = `${namespace}/${name}`;
    const pods = caches.podsOf(namespace, name);
    const parsed = parseRenderService(resource);
    const capacity = resource.status?.conditions?.find(({ type }) => type === 'CapacityAvailable');
    const wasFull = capacity?.status === 'False';
    const fleet = observeFleet(pods, sampler, parsed.ok ? parsed.renderService.spec : undefined, wasFull);
    const observed = [fleet?.condition, fleet?.capacity, fleet?.tuned].filter((draft) => draft !== undefined);
    const scaling = scalingOf(resource.metadata.uid);
    const live = this.#options.live.of(resource.metadata.uid);
    const drafts = [
      ...rollout(fleet),
      ...observed,
      ...liveCondition(live),
      ...this.#syncCondition(resource, key),
      ...scalingCondition(resource, scaling),
    ];
    const time = now()
      .toISOString()
      .replace(/\.\d+Z$/, 'Z');
    const status = {
      ...computeStatus(resource, deployment, pods, drafts, time, fleet, live),
      scaling: scalingStatus(resource, scaling),
    } as RenderServiceStatus;
    if (!isUnchanged(status, resource) && differsInFiguresOnly(status, resource.status)) {
      const waitMs = (this.#figuresAtMs.get(key) ?? Number.NEGATIVE_INFINITY) + FIGURES_MS - performance.now();
      if (waitMs > 0) return { requeueAfterMs: waitMs };
      this.#figuresAtMs.set(key, performance.now());
    }
    const wrote = await writeStatus(caches, resource, status);
    if (!wrote) return {};
    onWrite('status', key);
    const news = [transitionEvent(resource, drafts), capacityEvent(resource, drafts, now())];
    for (const event of news) if (event) await events.record(resource.metadata, event);
    return {};
  }
}

/** The outcome, and again after `ms` if it is not earlier anyway. */
function sooner(outcome: Outcome, ms = Number.POSITIVE_INFINITY): Outcome {
  const requeueAfterMs = Math.min(outcome.requeueAfterMs ?? Number.POSITIVE_INFINITY, ms);
  return Number.isFinite(requeueAfterMs) ? { ...outcome, requeueAfterMs } : outcome;
}

/**
 * etcd's own words for an object beyond --max-request-bytes, and those of gRPC for one beyond its message size; the
 * status is 500.
 */
const TOO_LARGE = /etcdserver: request is too large|trying to send message larger than max/;

/**
 * Whether the API server will refuse the same object again: it is invalid or too large, or admission or quota forbids
 * it.
 */
function isRefusal(error: unknown, failures: number): error is ApiError {
  if (!(error instanceof ApiError)) return false;
  if (error.status === 500) return TOO_LARGE.test(error.message);
  return [400, 413, 422].includes(error.status) || (error.status === 403 && failures >= FORBIDDEN_TRIES);
}

/** An event when the reason of `Stalled`, `WorkersHealthy` or `Ready` changes, none for every step of a rollout. */
function transitionEvent(resource: RenderServiceResource, drafts: ConditionDraft[]): EventDraft | undefined {
  const before = resource.status?.conditions ?? [];
  const changed = drafts.filter(({ type, status, reason }) => {
    const old = before.find((condition) => condition.type === type);
    return old?.status !== status || old.reason !== reason;
  });
  const stall = changed.find(({ type, status }) => type === 'Stalled' && status === 'True');
  if (stall) return { type: 'Warning', reason: stall.reason, action: 'Reconcile', note: stall.message };
  const loop = changed.find(({ type, status }) => type === 'WorkersHealthy' && status === 'False');
  if (loop) return { type: 'Warning', reason: loop.reason, action: 'Observe', note: loop.message };
  const contended = changed.find(({ type, status }) => type === 'ObjectsInSync' && status === 'False');
  if (contended) return { type: 'Warning', reason: contended.reason, action: 'Reconcile', note: contended.message };
  const up = changed.find(
    ({ type, status, reason }) => type === 'Ready' && status === 'True' && reason === 'AllPodsReady',
  );
  return up && { type: 'Normal', reason: up.reason, action: 'Reconcile', note: up.message };
}

/** An event when the fleet becomes full, and one that tells for how long it was. */
function capacityEvent(resource: RenderServiceResource, drafts: ConditionDraft[], now: Date): EventDraft | undefined {
  const next = drafts.find(({ type }) => type === 'CapacityAvailable');
  const before = resource.status?.conditions?.find(({ type }) => type === 'CapacityAvailable');
  if (!next || next.status === (before?.status ?? 'True')) return undefined;
  const { reason, message } = next;
  if (next.status === 'False') return { type: 'Warning', reason, action: 'Observe', note: message };
  const seconds = Math.round((now.getTime() - Date.parse(before?.lastTransitionTime ?? '')) / 1000);
  return { type: 'Normal', reason, action: 'Observe', note: `the fleet was full for about ${seconds} s; ${message}` };
}
