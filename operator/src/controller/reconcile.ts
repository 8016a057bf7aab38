/**
 * One RenderService, from its key to its status: read, compute, write, in this order, from the actual state and never
 * from an event. Errors that a change by the user must cure become `Stalled`; all others are the queue's to retry.
 */

import {
  type ConditionDraft,
  objectsInSync,
  retrying,
  type StalledReason,
  schemaInStep,
  stalled,
} from '../api/conditions.ts';
import { ANNOTATION_RENEWED, LABEL_SERVING, LIVE_FILE } from '../api/names.ts';
import {
  parseStored,
  type RenderService,
  type RenderServiceResource,
  type RenderServiceStatus,
} from '../api/resource.ts';
import { durationMs, rfc3339 } from '../api/scalars.ts';
import { apply, assertOwned, deviateAlike, difference, NotOwnedError, readLive } from '../kube/apply.ts';
import { errorLine } from '../kube/error-line.ts';
import type { EventDraft, EventRecorder } from '../kube/events.ts';
import { controllerOf } from '../kube/owner.ts';
import { ApiError } from '../kube/rest.ts';
import { isSubset } from '../kube/subset.ts';
import type { KubeObject } from '../kube/types.ts';
import { liveName } from '../plan/configmap.ts';
import {
  deploymentName,
  desiredObjects,
  type OperatorAccess,
  type PlannedObject,
  type SidecarImage,
} from '../plan/index.ts';
import { BEFORE_REVISIONS, isRevision } from '../plan/own-deployments.ts';
import { choosePods, configNameOf, type PodsBefore, withPastTurn } from '../plan/pods.ts';
import { concurrencyEvent } from '../pods/events.ts';
import { type Fleet, observeFleet } from '../pods/fleet.ts';
import { CREATING_MS, isCreating, objectRefusal } from '../pods/problems.ts';
import type { PodSampler } from '../pods/sampler.ts';
import { proxyEndsAgain } from '../pods/status.ts';
import { podsWithoutRoom } from '../pods/without-room.ts';
import { type LiveConfig, liveNumber, liveSerial, renderLive } from '../render/live.ts';
import { hasPeers } from '../render/model/pooling.ts';
import { isActive } from '../rollout/canary-state.ts';
import type { Acks } from '../rollout/canary-world.ts';
import type { Caches } from './caches.ts';
import type { CanaryWatch } from './canary-watch.ts';
import { Contention } from './contention.ts';
import type { DataPlane } from './data-plane.ts';
import { type PodsNow, standingOf } from './data-plane-standing.ts';
import type { LiveSettings, LiveView } from './live-settings.ts';
import { objectivesStatus } from './objectives-status.ts';
import type { PeersKeys } from './peers-keys.ts';
import { prune, superfluous } from './prune.ts';
import type { Outcome } from './queue.ts';
import { type CanaryCircumstances, type FoundRevision, foundRevisions, isRetired, planRollout } from './revisions.ts';
import { rolloutEvent } from './rollout-events.ts';
import { lateAfterMs, type RolloutStatus, rolloutStatus } from './rollout-status.ts';
import { type ScalingView, scalingCondition, scalingStatus } from './scaling-status.ts';
import type { ServedSchema } from './served-schema.ts';
import { label } from './serving-pods.ts';
import { factsOf, toldShares, watchSubject } from './shares.ts';
import type { Shells } from './shells.ts';
import {
  availablePods,
  computeStatus,
  differsInFiguresOnly,
  isUnchanged,
  liveCondition,
  liveWaitMs,
  rolloutConditions,
  type ServingDeployments,
  servingDeployments,
  staying,
  writeStatus,
} from './status.ts';

/** A foreign object can go away without an event that we see. */
const STALLED_RECHECK_MS = 15_000;
/** Busy workers and queues change with every request; a write for them alone is worth it twice a minute. */
const FIGURES_MS = 30_000;
/**
 * About 1.5 s of tries. Rights that have just been given are not known to every API server at once. A condition tells
 * within two seconds that admission forbids an object.
 */
export const FORBIDDEN_TRIES = 5;
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
  canaries: CanaryWatch;
  dataPlane: DataPlane;
  schema: Pick<ServedSchema, 'isKnown' | 'missing' | 'chosen'>;
  /** What scaling has to say about a RenderService, by its uid. */
  scalingOf: (uid: string) => ScalingView | undefined;
  events: EventRecorder;
  now: () => Date;
  onWrite: (what: string, key: string) => void;
}

/** What a reconcile has come to know before it failed. */
interface Asked {
  /** Id of the revision that the spec asks for. */
  revision?: string;
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
      this.#options.dataPlane.forget(key);
      return {};
    }
    const asked: Asked = {};
    try {
      const applied = await this.#applyAll(resource, failures, asked);
      const pods = caches.servingPodsOf(namespace, name);
      const budget = caches.owned('PodDisruptionBudget').get(namespace, name);
      const shell = await this.#options.shells.problem(applied.renderService);
      const now = this.#options.now();
      const view = this.#options.live.of(resource.metadata.uid);
      const live = view && { view, forMs: performance.now() - view.sinceMs };
      const outcome = await this.#finish(
        resource,
        applied.deployments,
        (fleet) =>
          rolloutConditions(applied.renderService, applied.deployments, pods, {
            rollout: applied.rollout,
            budget,
            fleet,
            live,
            now,
            remark: remarkOf(shell?.problem, this.#keyProblem(applied.renderService)),
            told: resource.status?.conditions,
          }),
        applied.pods,
        applied.rollout,
      );
      const contended = this.#contention.of(key).length > 0;
      const again = [
        applied.keyAfterMs,
        applied.restAfterMs,
        lateAfterMs(applied.rollout, applied.renderService.spec.rollout.rolling.progressDeadlineSeconds, now),
        shell?.afterMs,
        live && liveWaitMs(live),
        contended && CONTENDED_MS,
        this.#takenBack(resource, key) && CONTENDED_MS,
        pods.some(isCreating) && CREATING_MS,
      ];
      return sooner(outcome, Math.min(...again.map((ms) => ms || Number.POSITIVE_INFINITY)));
    } catch (error) {
      const found = foundRevisions(resource.metadata, caches.deploymentsOf(resource.metadata));
      const live = servingDeployments(found, asked.revision);
      this.#options.dataPlane.stopped(key, error instanceof StalledError || failures >= QUIET_FAILURES);
      if (error instanceof StalledError) {
        await this.#finish(resource, live, () => stalled(error.reason, error.message, availablePods(live)));
        return { requeueAfterMs: STALLED_RECHECK_MS, isStalled: true };
      }
      if (failures >= QUIET_FAILURES) {
        const message = `the operator tries again and again: ${errorLine(error)}`;
        // The error that matters is the first one; this write may fail for the same reason.
        const drafts = retrying(message, availablePods(live) > 0);
        await this.#finish(resource, live, () => drafts).catch(() => undefined);
      }
      throw error;
    }
  }

  /** @param asked gets the revision that the spec asks for as soon as it is known */
  async #applyAll(
    resource: RenderServiceResource,
    failures: number,
    asked: Asked,
  ): Promise<{
    renderService: RenderService;
    deployments: ServingDeployments & { target: KubeObject };
    rollout: RolloutStatus;
    pods: PodsNow;
    keyAfterMs?: number | undefined;
    restAfterMs?: number | undefined;
  }> {
    const { caches, peersKeys, sidecar, access } = this.#options;
    const parsed = parseStored(resource);
    if (!parsed.ok) {
      throw new StalledError('InvalidSpec', parsed.errors.map(({ path, message }) => `${path}: ${message}`).join('; '));
    }
    const { renderService } = parsed;
    const { namespace, name } = resource.metadata;
    const key = `${namespace}/${name}`;
    const found = await this.#found(resource);
    this.#contention.begin(
      key,
      resource,
      found.map(({ deployment }) => deployment),
    );
    const before = await this.#podsBefore(found);
    const { pods, change } = choosePods(renderService, resource.spec, sidecar, before, () =>
      this.#mayRenew(key, renderService, found),
    );
    asked.revision = pods.revision ?? BEFORE_REVISIONS;
    const now = this.#options.now();
    const withoutRoom = this.#withoutRoom(resource, found, pods.revision);
    const median = this.#medianOf(resource, renderService);
    const plan = planRollout(renderService, found, pods, {
      ...{ time: rfc3339(now), withoutRoom },
      canary: this.#canaryOf(resource, renderService, found, median),
    });
    const planned = desiredObjects(renderService, sidecar, access, median, plan.pods);
    // All are looked at before any is written: an object of somebody else must not leave the plan half done.
    const live = await Promise.all(planned.map((desired) => this.#readOwned(desired)));
    for (const [index, desired] of planned.entries()) {
      if (isLiveOf(renderService, desired)) this.#hasLive(renderService, desired as KubeObject, live[index]);
    }
    const keyAfterMs = hasPeers(renderService.spec)
      ? await peersKeys.ensure(renderService, caches.podsOf(namespace, name))
      : undefined;
    // By the plan: somebody may have written the annotation, and it may not have been taken out yet.
    const isOut = (deployment: KubeObject) => {
      const id = found.find((one) => isSame(one.deployment, deployment))?.id;
      const next = plan.next.revisions.find((one) => one.id === id);
      return next ? next.retiredMs !== undefined : isRetired(deployment);
    };
    // Before others go away on their account.
    await this.#labelPods(key, true, (one) => !isOut(one));
    const deployments: KubeObject[] = [];
    let isTold = false;
    for (const [index, desired] of planned.entries()) {
      const result = await this.#applyOne(key, desired, live[index], failures);
      if (desired.kind === 'Deployment') deployments.push(result);
      if (isLiveOf(renderService, desired)) isTold = this.#wantLive(renderService, desired as KubeObject, result);
    }
    await this.#labelPods(key, false, isOut);
    this.#options.canaries.want(renderService, watchSubject(plan.next, renderService));
    const useless = superfluous(caches, renderService, planned, configNameOf(pods.template));
    await prune(caches, [...useless, ...plan.forgotten], (object) => this.#contention.mayRemove(key, object));
    this.#contention.podsAdmitted(key, pods.template, caches.podsOf(namespace, name));
    this.#contention.keepOnly(key, [...(planned as KubeObject[]), ...caches.podsOf(namespace, name)]);
    const renewed = pods.annotations[ANNOTATION_RENEWED];
    const [target] = deployments as [KubeObject];
    const retainMs = durationMs(renderService.spec.rollout.retain.for);
    const { againMs } = plan.next;
    const serving = deployments.filter((one) => !isOut(one));
    const beside = plan.next.canary?.stable;
    const whole = serving.filter(({ metadata }) => metadata.name === deploymentName(renderService, beside));
    const view = this.#options.live.of(resource.metadata.uid);
    const acks = isTold && view?.unasked === 0 ? view : undefined;
    const status = rolloutStatus(resource.status?.rollout, plan.next, retainMs, now, acks);
    return {
      renderService,
      deployments: {
        ...{ target, serving, canRest: plan.pods.canRest },
        // How large it is that serves everything: an HPA would take a canary for pods that are not needed.
        ...(beside !== undefined && whole.length > 0 && { whole }),
      },
      rollout: status,
      pods: {
        ...{ renderService, change, renewed, isHeld: plan.next.phase === 'Paused' },
        hasCanary: plan.next.canary !== undefined,
      },
      keyAfterMs,
      restAfterMs: againMs && Math.max(1, againMs - now.getTime()),
    };
  }

  /**
   * Revisions that there are. One whose label somebody has taken away is in no cache, and its pods would get requests
   * for ever: those that status tells of are asked for.
   */
  async #found({ metadata, status }: RenderServiceResource): Promise<FoundRevision[]> {
    const { caches } = this.#options;
    const found = foundRevisions(metadata, caches.deploymentsOf(metadata));
    const { revision: current, revisions: told = [] } = status?.rollout ?? {};
    const missing = new Set([current, ...told.map(({ revision }) => revision)].filter((id) => id !== undefined));
    for (const { id } of found) missing.delete(id);
    const read = [...missing].map(async (id) => {
      if (id !== BEFORE_REVISIONS && !isRevision(id)) return [];
      const name = deploymentName({ metadata }, id === BEFORE_REVISIONS ? undefined : id);
      const deployment = await this.#read('Deployment', metadata.namespace, name);
      return isOwned(deployment, metadata.uid) && !deployment.metadata.deletionTimestamp ? [deployment] : [];
    });
    const back = (await Promise.all(read)).flat();
    if (back.length === 0) return found;
    return foundRevisions(metadata, [...back, ...found.map(({ deployment }) => deployment)]);
  }

  /** Pods of the revision that is asked for that find no room. */
  #withoutRoom(
    { metadata: { namespace, name } }: RenderServiceResource,
    found: FoundRevision[],
    revision: string | undefined,
  ): number {
    const { caches } = this.#options;
    const deployment = found.find((one) => one.revision === revision)?.deployment;
    if (!deployment) return 0;
    const pods = caches.podsOf(namespace, name).filter((pod) => {
      const of = caches.deploymentOf(pod);
      return of && isSame(of, deployment);
    });
    return podsWithoutRoom(deployment, pods, caches.leavingPodsOf(namespace, name));
  }

  #read(kind: string, namespace: string, name: string): Promise<KubeObject | undefined> {
    const { caches } = this.#options;
    return readLive(caches.rest, caches.owned(kind), { kind, metadata: { namespace, name } } as KubeObject);
  }

  /**
   * Of what the pods of revisions were made, where their Deployments remember it and they could still start: of
   * configurations only the newest can be made again.
   */
  async #podsBefore(found: FoundRevision[]): Promise<PodsBefore[]> {
    const now = rfc3339(this.#options.now());
    const all = found.map(async ({ made, deployment, replicas }) => {
      const { namespace = '' } = deployment.metadata;
      const annotations = withPastTurn(deployment.metadata.annotations ?? {}, now);
      const config = made && (await this.#read('ConfigMap', namespace, configNameOf(made.template)));
      return made && isOwned(config, controllerOf(deployment)?.uid) ? [{ annotations, made, lives: replicas > 0 }] : [];
    });
    return (await Promise.all(all)).flat();
  }

  /** Into the Service or out of it, of these Deployments. */
  async #labelPods(key: string, isServing: boolean, of: (deployment: KubeObject) => boolean): Promise<void> {
    const { caches, onWrite } = this.#options;
    const [namespace = '', name = ''] = key.split('/');
    const pods = caches.podsOf(namespace, name).filter((pod) => {
      const deployment = caches.deploymentOf(pod);
      return deployment && of(deployment);
    });
    const count = await label(caches, pods, isServing, (pod) => this.#contention.mayLabel(key, pod));
    if (count > 0) onWrite(isServing ? 'pods into the Service' : 'pods out of the Service', key);
  }

  /** What a canary depends on. */
  #canaryOf(
    resource: RenderServiceResource,
    renderService: RenderService,
    found: FoundRevision[],
    median: number | undefined,
  ): CanaryCircumstances {
    const { caches, live, canaries, now } = this.#options;
    const { namespace, name, uid } = resource.metadata;
    const pods = caches.podsOf(namespace, name);
    return {
      nowMs: now().getTime(),
      facts: factsOf(resource.metadata),
      told: toldShares(
        this.#liveFile(renderService),
        found.map(({ id }) => id),
      ),
      acksOf: (canary, resting) =>
        acksOf(live.of(uid), liveSerial(renderLive(renderService.spec, median, resting, canary))),
      watchedOf: (revision, attempt) => canaries.of(uid, revision, attempt),
      isOut: (deployment) =>
        pods.every((pod) => {
          const of = caches.deploymentOf(pod);
          return !of || !isSame(of, deployment) || pod.metadata.labels?.[LABEL_SERVING] === 'false';
        }),
    };
  }

  /** The time, if other pods may be made of a spec that is as it was. */
  #mayRenew(key: string, { spec }: RenderService, found: FoundRevision[]): string | undefined {
    const { dataPlane, paused } = spec.rollout;
    if (isUnderWay(found)) return undefined;
    const isTurn = dataPlane === 'Staged' && !paused && this.#options.dataPlane.isTurnOf(key);
    return isTurn ? rfc3339(this.#options.now()) : undefined;
  }

  /** Requests that workers get at a time. As long as no pod tells, what was known last: all may be new. */
  #medianOf({ status }: RenderServiceResource, renderService: RenderService): number | undefined {
    return status?.concurrency?.median ?? liveNumber(this.#liveFile(renderService), 'concurrency-start');
  }

  /** The file of live settings as it was last written. */
  #liveFile(renderService: RenderService): string | undefined {
    const { namespace } = renderService.metadata;
    const live = this.#options.caches.owned('ConfigMap').get(namespace, liveName(renderService));
    const file = (live as { data?: Record<string, unknown> } | undefined)?.data?.[LIVE_FILE];
    return typeof file === 'string' ? file : undefined;
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
      this.#contention.applied(key, object, live);
      return live;
    }
    const isRepair = this.#contention.isRepair(key, object, live, todo);
    if (isRepair && !this.#contention.mayRepair(key, object, live)) return live ?? object;
    try {
      const result = await apply(caches.rest, caches.owned(desired.kind), object, live);
      // An object that deviates as before after a repair was changed by admission, and by nobody.
      const isRestored = !live || todo === 'foreign-fields' || !deviateAlike(object, live, result);
      if (isRepair && isRestored) this.#contention.takenBack(key, object, live);
      this.#contention.applied(key, object, result);
      onWrite(`${desired.kind} ${todo}`, `${desired.metadata.namespace}/${desired.metadata.name}`);
      return result;
    } catch (error) {
      if (isLost(error)) this.#contention.lost(key, object);
      if (isRefusal(error, failures)) {
        throw new StalledError(
          'Rejected',
          `the API server refuses ${desired.kind} "${desired.metadata.name}": ${objectRefusal(error.message)}`,
        );
      }
      throw error;
    }
  }

  /**
   * Pods are to have the live settings as soon as the API server has them, whatever becomes of the other objects:
   * kubelet brings them anyway. Settings that it does not have, because somebody else or admission has put others
   * there, are not wanted, and status does not call them applied.
   * @returns whether they are wanted
   */
  #wantLive(renderService: RenderService, desired: KubeObject, written: KubeObject): boolean {
    if (!this.#hasLive(renderService, desired, written === desired ? undefined : written)) return false;
    this.#options.live.want(renderService, liveSerial(dataOf(desired)));
    return true;
  }

  /**
   * Sees which live settings the API server has, before anything is written: another writer may have put others in the
   * place of those that pods have acknowledged.
   * @returns whether it has those of the plan
   */
  #hasLive({ metadata: { uid } }: RenderService, desired: KubeObject, live: KubeObject | undefined): boolean {
    const isPlanned = live !== undefined && isSubset(dataOf(desired), live.data);
    const serial = live && liveSerial(dataOf(live));
    // Settings that somebody has edited may still have the line with the serial.
    const isEdited = !isPlanned && serial === liveSerial(dataOf(desired));
    this.#options.live.found(uid, isEdited ? undefined : serial);
    return isPlanned;
  }

  /** Why the Secret of the peers cannot be created, where there is to be one. */
  #keyProblem({ metadata, spec }: RenderService): string | undefined {
    return hasPeers(spec) ? this.#options.peersKeys.problemOf(metadata.uid) : undefined;
  }

  #syncCondition(resource: RenderServiceResource, key: string): ConditionDraft[] {
    const contended = this.#contention.of(key);
    if (contended.length > 0) return [objectsInSync.contended(contended)];
    const before = this.#contention.toldBefore(key, resource.status?.conditions);
    if (before?.reason === 'Contended') return [before];
    const taken = this.#takenBack(resource, key);
    if (taken) return [taken];
    const { changed, hurts } = this.#contention.admissionsOf(key);
    if (hurts.length > 0) return [objectsInSync.mutationHurts(hurts, changed)];
    if (changed.length > 0) return [objectsInSync.mutated(changed)];
    const told = resource.status?.conditions?.find(({ type }) => type === 'ObjectsInSync');
    // A new leader whose first reconcile fails knows nothing better than what the one before has told.
    return told ? [this.#contention.isKnown(key) ? objectsInSync.yes() : told] : [];
  }

  /** What is to be said of writes by hand of late. */
  #takenBack({ status }: RenderServiceResource, key: string): ConditionDraft | undefined {
    const taken = this.#contention.takenBackOf(key);
    return taken.length > 0 ? objectsInSync.takenBack(taken) : this.#contention.toldBefore(key, status?.conditions);
  }

  #schemaCondition(resource: RenderServiceResource, unknown: string[]): ConditionDraft[] {
    const { schema } = this.#options;
    const told = resource.status?.conditions?.filter(({ type }) => type === 'SchemaInStep') ?? [];
    // This may make it look.
    const chosen = schema.chosen(resource, unknown);
    if (!schema.isKnown) return told;
    if (chosen.length > 0) return [schemaInStep.unknownFields(chosen)];
    if (schema.missing.length > 0) return [schemaInStep.crdOutdated(schema.missing)];
    return told.length > 0 ? [schemaInStep.yes()] : [];
  }

  /** Without `podsNow` nothing is known that was not known before. */
  #dataPlaneCondition(
    resource: RenderServiceResource,
    drafts: ConditionDraft[],
    podsNow: PodsNow | undefined,
  ): ConditionDraft[] {
    const { caches, dataPlane, now } = this.#options;
    const { namespace, name } = resource.metadata;
    const before = resource.status?.conditions?.filter(({ type }) => type === 'DataPlaneCurrent') ?? [];
    if (!podsNow) return before;
    const nowMs = now().getTime();
    // One that failed rests, and goes on failing, while the one before is well again.
    const proxyEnds = proxyEndsAgain(caches.servingPodsOf(namespace, name), nowMs);
    const circumstances = { pauseMs: dataPlane.pauseMs, nowMs, whyNot: () => dataPlane.whyNot(), proxyEnds };
    const { standing, condition } = standingOf(resource, podsNow, drafts, circumstances);
    dataPlane.report(`${namespace}/${name}`, standing);
    const wasHeld = before.some(({ reason }) => reason === 'Held');
    return wasHeld && condition.reason === 'Waiting' && !dataPlane.isKnown ? before : [condition];
  }

  /** @returns what is to be done next where nothing was written */
  async #writeStatus(
    key: string,
    resource: RenderServiceResource,
    status: RenderServiceStatus,
  ): Promise<Outcome | undefined> {
    if (isUnchanged(status, resource)) return {};
    if (!this.#contention.mayWriteStatus(key, resource)) return { requeueAfterMs: CONTENDED_MS };
    try {
      const written = await writeStatus(this.#options.caches, resource, status);
      this.#contention.statusWritten(key, written);
      return undefined;
    } catch (error) {
      if (isLost(error)) this.#contention.lost(key);
      throw error;
    }
  }

  /** Writes the status once, and then says in an Event what has changed. */
  async #finish(
    resource: RenderServiceResource,
    deployments: ServingDeployments,
    conditions: (fleet?: Fleet) => ConditionDraft[],
    podsNow?: PodsNow,
    rollout?: RolloutStatus,
  ): Promise<Outcome> {
    const { caches, sampler, events, now, onWrite, scalingOf } = this.#options;
    const { namespace, name } = resource.metadata;
    const key = `${namespace}/${name}`;
    const pods = caches.servingPodsOf(namespace, name);
    const parsed = parseStored(resource);
    const told = (wanted: ConditionDraft['type']) => resource.status?.conditions?.find(({ type }) => type === wanted);
    const wasFull = told('CapacityAvailable')?.status === 'False';
    const fleet = observeFleet(pods, sampler, parsed.ok ? parsed.renderService.spec : undefined, wasFull, {
      condition: told('ConcurrencyTuned'),
      nowMs: now().getTime(),
    });
    const observed = [fleet?.condition, fleet?.capacity, fleet?.tuned].filter((draft) => draft !== undefined);
    const scaling = scalingOf(resource.metadata.uid);
    const live = this.#options.live.of(resource.metadata.uid);
    const drafts = [
      ...conditions(fleet),
      ...observed,
      ...liveCondition(
        live,
        resource.metadata.generation,
        parsed.ok ? parsed.renderService.spec.rollout.stickiness.cookie : undefined,
      ),
      ...this.#syncCondition(resource, key),
      ...this.#schemaCondition(resource, parsed.ok ? parsed.unknown : []),
      ...scalingCondition(resource, scaling),
    ];
    const known = [...drafts, ...staying(resource.status?.conditions, fleet, live)];
    drafts.push(...this.#dataPlaneCondition(resource, known, podsNow));
    const time = rfc3339(now());
    const status = {
      ...computeStatus(resource, deployments, pods, drafts, time, fleet, live, rollout),
      scaling: scalingStatus(resource, scaling),
      objectives: objectivesStatus(
        resource,
        parsed.ok ? parsed.renderService.spec.objectives : undefined,
        sampler.requestsOf(resource.metadata.uid),
      ),
    } as RenderServiceStatus;
    if (!isUnchanged(status, resource) && differsInFiguresOnly(status, resource.status)) {
      const waitMs = (this.#figuresAtMs.get(key) ?? Number.NEGATIVE_INFINITY) + FIGURES_MS - performance.now();
      if (waitMs > 0) return { requeueAfterMs: waitMs };
      this.#figuresAtMs.set(key, performance.now());
    }
    const unwritten = await this.#writeStatus(key, resource, status);
    if (unwritten) return unwritten;
    onWrite('status', key);
    const news = [
      transitionEvent(resource, drafts),
      syncEvent(resource, drafts, this.#contention.takenBackOf(key)),
      dataPlaneEvent(resource, drafts),
      capacityEvent(resource, drafts, now()),
      concurrencyEvent(resource.status?.conditions, drafts),
      rollout && rolloutEvent(resource.status?.rollout, rollout),
    ];
    for (const event of news) if (event) await events.record(resource.metadata, event);
    return {};
  }
}

/** What pods that are ready have said of the settings with this serial. */
function acksOf(view: LiveView | undefined, serial: string): Acks {
  // Of whom nobody has been asked yet.
  if (!view) return { pods: 1, have: 0, silent: 0, knowing: 0 };
  const { pods, have, silent, knowing } = view;
  // Where the ConfigMap has others, a pod may have got these since it has said that.
  const isWritten = view.serial === serial && view.generation > 0;
  return isWritten ? { pods, have, silent, knowing } : { pods, have: 0, silent: 0, knowing: 0 };
}

/** The data of a ConfigMap of live settings; somebody may have emptied it. */
function dataOf(config: KubeObject): LiveConfig {
  return ((config as { data?: unknown }).data ?? {}) as LiveConfig;
}

function remarkOf(...problems: (string | undefined)[]): string | undefined {
  return problems.filter((problem) => problem !== undefined).join('; ') || undefined;
}

/** Whether it is the ConfigMap of live settings. */
function isLiveOf(renderService: RenderService, { kind, metadata }: PlannedObject): boolean {
  return kind === 'ConfigMap' && metadata.name === liveName(renderService);
}

/** Whether there is a canary, or the revision that is asked for was one and is aborted. */
function isUnderWay(newestFirst: FoundRevision[]): boolean {
  return newestFirst.some(({ state, wasComplete }, index) => {
    if (wasComplete || state === undefined) return false;
    return state === 'lost' || isActive(state) || (index === 0 && state.phase === 'Aborted');
  });
}

function isSame(one: KubeObject, other: KubeObject): boolean {
  return one.metadata.uid === other.metadata.uid;
}

function isOwned(object: KubeObject | undefined, uid: string | undefined): object is KubeObject {
  return object?.metadata.ownerReferences?.some((reference) => reference.uid === uid) === true;
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

/** Whether the API server may have done what it was asked for all the same. */
function isLost(error: unknown): boolean {
  return !(error instanceof ApiError) || error.status >= 500;
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
  const apart = changed.find(({ type, status }) => type === 'SchemaInStep' && status === 'False');
  if (apart) return { type: 'Warning', reason: apart.reason, action: 'Reconcile', note: apart.message };
  const up = changed.find(
    ({ type, status, reason }) => type === 'Ready' && status === 'True' && reason === 'AllPodsReady',
  );
  return up && { type: 'Normal', reason: up.reason, action: 'Reconcile', note: up.message };
}

/**
 * An event when objects are no longer as they were applied, and for each further write of somebody else that status
 * does not tell yet.
 * @param writes sentences about these
 */
function syncEvent(
  resource: RenderServiceResource,
  drafts: ConditionDraft[],
  writes: string[],
): EventDraft | undefined {
  const next = drafts.find(({ type }) => type === 'ObjectsInSync');
  const before = resource.status?.conditions?.find(({ type }) => type === 'ObjectsInSync');
  if (next?.status !== 'False') return undefined;
  const told = { type: 'Warning', reason: next.reason, action: 'Reconcile' } as const;
  if (next.reason !== 'TakenBack') return next.reason === before?.reason ? undefined : { ...told, note: next.message };
  const news = writes.filter((write) => !before?.message.includes(write));
  return news.length > 0 ? { ...told, note: objectsInSync.takenBack(news).message } : undefined;
}

const DATA_PLANE_EVENTS: Record<string, [type: EventDraft['type'], reason: string]> = {
  Rolling: ['Normal', 'DataPlaneRolling'],
  Failed: ['Warning', 'DataPlaneFailed'],
};

/** An event when pods are being replaced because it is the turn of their service, and when these come to nothing. */
function dataPlaneEvent(resource: RenderServiceResource, drafts: ConditionDraft[]): EventDraft | undefined {
  const next = drafts.find(({ type }) => type === 'DataPlaneCurrent');
  const before = resource.status?.conditions?.find(({ type }) => type === 'DataPlaneCurrent');
  const event = next && DATA_PLANE_EVENTS[next.reason];
  if (!event || next.reason === before?.reason) return undefined;
  const [type, reason] = event;
  return { type, reason, action: 'Reconcile', note: next.message };
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
