/**
 * One RenderService, from its key to its status: read, compute, write, in this order, from the actual state and never
 * from an event. Errors that a change by the user must cure become `Stalled`; all others are the queue's to retry.
 */
import { type ConditionDraft, type StalledReason, stalled } from '../api/conditions.ts';
import { parseRenderService, type RenderService, type RenderServiceResource } from '../api/resource.ts';
import { apply, assertOwned, difference, NotOwnedError, readLive } from '../kube/apply.ts';
import { type EventDraft, recordEvent } from '../kube/events.ts';
import { ApiError } from '../kube/rest.ts';
import type { KubeObject } from '../kube/types.ts';
import { desiredObjects, type PlannedObject, type SidecarImage } from '../plan/index.ts';
import type { ScalingView } from './autoscaler.ts';
import type { Cluster } from './cluster.ts';
import { prune, superfluous } from './prune.ts';
import type { Outcome } from './queue.ts';
import { availablePods, computeStatus, rolloutConditions, writeStatus } from './status.ts';

/** A foreign object can go away without an event that we see. */
const STALLED_RECHECK_MS = 15_000;

export interface ReconcilerOptions {
  cluster: Cluster;
  sidecar: SidecarImage;
  /** What scaling has to say about a RenderService, by its uid. */
  scalingOf: (uid: string) => ScalingView | undefined;
  /** Name of this process in events. */
  instance: string;
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

  constructor(options: ReconcilerOptions) {
    this.#options = options;
  }

  /** @param key namespace/name */
  async reconcile(key: string): Promise<Outcome> {
    const [namespace = '', name = ''] = key.split('/');
    const { cluster } = this.#options;
    const resource = cluster.renderServices.get(namespace, name);
    // Deletion needs no work: the garbage collector follows the owner references.
    if (resource === undefined || resource.metadata.deletionTimestamp) return {};
    const deployment = () => cluster.owned('Deployment').get(namespace, name);
    try {
      const applied = await this.#applyAll(resource);
      await this.#finish(
        resource,
        applied.deployment,
        rolloutConditions(applied.renderService, applied.deployment, cluster.podsOf(namespace, name)),
      );
      return {};
    } catch (error) {
      if (!(error instanceof StalledError)) throw error;
      const live = deployment();
      const own = live?.metadata.ownerReferences?.some(({ uid }) => uid === resource.metadata.uid) ? live : undefined;
      await this.#finish(resource, own, stalled(error.reason, error.message, availablePods(own)));
      return { requeueAfterMs: STALLED_RECHECK_MS };
    }
  }

  async #applyAll(resource: RenderServiceResource): Promise<{ renderService: RenderService; deployment: KubeObject }> {
    const { cluster, sidecar } = this.#options;
    const parsed = parseRenderService(resource);
    if (!parsed.ok) {
      throw new StalledError('InvalidSpec', parsed.errors.map(({ path, message }) => `${path}: ${message}`).join('; '));
    }
    const { renderService } = parsed;
    const planned = desiredObjects(renderService, sidecar);
    // All are looked at before any is written: an object of somebody else must not leave the plan half done.
    const live = await Promise.all(planned.map((desired) => this.#readOwned(desired)));
    let deployment: KubeObject | undefined;
    for (const [index, desired] of planned.entries()) {
      const result = await this.#applyOne(desired, live[index]);
      if (desired.kind === 'Deployment') deployment = result;
    }
    await prune(cluster, superfluous(cluster, renderService, planned));
    return { renderService, deployment: deployment as KubeObject };
  }

  async #readOwned(desired: PlannedObject): Promise<KubeObject | undefined> {
    const { cluster } = this.#options;
    const live = await readLive(cluster.rest, cluster.owned(desired.kind), desired as KubeObject);
    try {
      if (live) assertOwned(live, desired as KubeObject);
    } catch (error) {
      if (error instanceof NotOwnedError) throw new StalledError('NotOwned', error.message);
      throw error;
    }
    return live;
  }

  async #applyOne(desired: PlannedObject, live: KubeObject | undefined): Promise<KubeObject> {
    const { cluster, onWrite } = this.#options;
    const object = desired as KubeObject;
    const todo = difference(live, object);
    if (live && todo === 'none') return live;
    try {
      const result = await apply(cluster.rest, cluster.owned(desired.kind), object, live);
      onWrite(`${desired.kind} ${todo}`, `${desired.metadata.namespace}/${desired.metadata.name}`);
      return result;
    } catch (error) {
      if (isRefusal(error)) {
        throw new StalledError(
          'Rejected',
          `the API server refuses ${desired.kind} "${desired.metadata.name}": ${error.message}`,
        );
      }
      throw error;
    }
  }

  /** Writes the status once, and then says in an Event what has changed. */
  async #finish(
    resource: RenderServiceResource,
    deployment: KubeObject | undefined,
    drafts: ConditionDraft[],
  ): Promise<void> {
    const { cluster, instance, now, onWrite, scalingOf } = this.#options;
    const status = computeStatus(
      resource,
      scalingOf(resource.metadata.uid),
      deployment,
      cluster.podsOf(resource.metadata.namespace, resource.metadata.name),
      drafts,
      now()
        .toISOString()
        .replace(/\.\d+Z$/, 'Z'),
    );
    const wrote = await writeStatus(cluster, resource, status);
    if (!wrote) return;
    onWrite('status', `${resource.metadata.namespace}/${resource.metadata.name}`);
    const event = transitionEvent(resource, drafts);
    if (event) await recordEvent(cluster.rest, instance, resource.metadata, event);
  }
}

/** Whether the API server will refuse the same object again: it is invalid, or admission or quota forbids it. */
function isRefusal(error: unknown): error is ApiError {
  return error instanceof ApiError && [400, 403, 422].includes(error.status);
}

/** An event when the reason of `Stalled` or `Ready` changes, none for every step of a rollout. */
function transitionEvent(resource: RenderServiceResource, drafts: ConditionDraft[]): EventDraft | undefined {
  const before = resource.status?.conditions ?? [];
  const changed = drafts.filter(({ type, status, reason }) => {
    const old = before.find((condition) => condition.type === type);
    return old?.status !== status || old.reason !== reason;
  });
  const stall = changed.find(({ type, status }) => type === 'Stalled' && status === 'True');
  if (stall) return { type: 'Warning', reason: stall.reason, action: 'Reconcile', note: stall.message };
  const up = changed.find(
    ({ type, status, reason }) => type === 'Ready' && status === 'True' && reason === 'AllPodsReady',
  );
  return up && { type: 'Normal', reason: up.reason, action: 'Reconcile', note: up.message };
}
