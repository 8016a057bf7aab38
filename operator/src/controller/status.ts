/** The status of a RenderService, computed from what the caches show. */
import {
  type Condition,
  type ConditionDraft,
  liveSettingsApplied,
  mergeConditions,
  progressing,
  ready,
  stalled,
} from '../api/conditions.ts';
import type { RenderService, RenderServiceResource, RenderServiceStatus } from '../api/resource.ts';
import { kinds, objectPath } from '../kube/kinds.ts';
import { MERGE_PATCH } from '../kube/rest.ts';
import { isSubset } from '../kube/subset.ts';
import type { KubeObject } from '../kube/types.ts';
import { selectorText, servingLabels } from '../plan/index.ts';
import type { Fleet } from '../pods/fleet.ts';
import { evictionProblem, isWithoutReplicaSet, podProblem, refusalOf } from '../pods/problems.ts';
import { countWorkers } from '../pods/status.ts';
import type { Caches } from './caches.ts';
import { type DeploymentStatus, deploymentStatus } from './deployment-status.ts';
import type { LiveView } from './live-settings.ts';
import type { FoundRevision } from './revisions.ts';
import { isLate, type RolloutStatus } from './rollout-status.ts';

type Cookie = RenderService['spec']['rollout']['stickiness']['cookie'];

/** Deployments of a RenderService. */
export interface ServingDeployments {
  /** Of the revision that is asked for; undefined when nothing could be applied yet. */
  target: KubeObject | undefined;
  /** Of all that get requests, that one, too. */
  serving: KubeObject[];
  /** Whether every pod has the label by which the Service tells who gets requests. */
  canRest: boolean;
  /** Of these, those that serve everything by themselves: not a canary. All of them unless given. */
  whole?: KubeObject[];
}

interface Circumstances {
  budget?: KubeObject | undefined;
  fleet?: Fleet | undefined;
  now: Date;
  remark?: string | undefined;
  /** How far the change of pods has come. */
  rollout: RolloutStatus;
  /** How far the live settings have come, and for how long they have been on their way. */
  live?: LiveProgress | undefined;
  /** What status says so far. */
  told?: Condition[] | undefined;
}

interface LiveProgress {
  view: LiveView;
  forMs: number;
}

/** kubelet looks at all files of a pod within this time, without a nudge. */
const LIVE_MS_MAX = 120_000;

/** Pods that are available, of whatever revision. */
export function availablePods({ serving }: ServingDeployments): number {
  return sumOf(serving, ({ availableReplicas }) => availableReplicas);
}

function sumOf(deployments: KubeObject[], figure: (status: DeploymentStatus) => number | undefined): number {
  return deployments.reduce((sum, one) => sum + (figure(deploymentStatus(one)) ?? 0), 0);
}

/**
 * Deployments of a RenderService as they are, where not all could be applied.
 * @param asked id of the revision that the spec asks for, which may not be there; undefined where nothing could be
 *   planned
 */
export function servingDeployments(found: FoundRevision[], asked?: string): ServingDeployments {
  const serving = found.filter(({ retiredMs }) => retiredMs === undefined);
  const target = asked === undefined ? serving[0] : found.find(({ id }) => id === asked);
  return {
    target: target?.deployment,
    serving: serving.map(({ deployment }) => deployment),
    canRest: found.every(({ canRest }) => canRest),
  };
}

/**
 * Conditions of a RenderService whose objects are all applied.
 * @param remark what somebody should know although it keeps no pod from running
 */
export function rolloutConditions(
  renderService: RenderService,
  deployments: ServingDeployments & { target: KubeObject },
  pods: KubeObject[],
  { budget, fleet, live, now, remark, rollout, told = [] }: Circumstances,
): ConditionDraft[] {
  const { replicas: wanted, rollout: asked } = renderService.spec;
  const { target, serving } = deployments;
  const { updatedReplicas = 0, conditions = [] } = deploymentStatus(target);
  const availableReplicas = availablePods(deployments);
  const replicas = sumOf(serving, (status) => status.replicas);
  if (serving.some(isNews)) {
    return progressing('the Deployment has not been looked at yet', availableReplicas >= wanted);
  }
  const problem = refusalOf(target) ?? podProblem(pods, now) ?? crashLoopOf(fleet, told);
  const remarks = [evictionProblem(budget), remark].filter((text) => text !== undefined);
  const ofCanary = canaryConditions(rollout, availableReplicas >= wanted, availableReplicas, problem);
  if (ofCanary) return ofCanary;
  if (rollout.phase === 'Paused') {
    const message = `rollout.paused holds a change: ${updatedReplicas} of ${wanted} pods are of revision ${rollout.revision}`;
    return progressing(message, availableReplicas >= wanted, true);
  }
  const failed = conditions.find(({ type, reason }) => type === 'Progressing' && reason === 'ProgressDeadlineExceeded');
  if (failed || isLate(rollout, asked.rolling.progressDeadlineSeconds, now)) {
    // Not in the Deployment's words: which of the two clocks is the first is a matter of milliseconds.
    const why = `revision ${rollout.revision} makes no progress`;
    return stalled('ProgressDeadlineExceeded', `${why}; ${problem ?? "see the pods' events"}`, availableReplicas);
  }
  if (
    rollout.phase === 'Complete' &&
    updatedReplicas === wanted &&
    replicas === wanted &&
    availableReplicas === wanted
  ) {
    // Ready speaks of the whole spec.
    const waits = liveWait(live, renderService.metadata.generation, told);
    if (waits !== undefined) return progressing(waits, true);
    return ready(wanted, remarks.join('; '));
  }
  const counts = `${availableReplicas} of ${wanted} pods are available, ${updatedReplicas} run the current template, ${replicas} exist`;
  const message = [counts, problem, ...remarks].filter(Boolean).join('; ');
  return progressing(message, wanted > 0 && availableReplicas >= wanted, problem !== undefined);
}

/** While there is one, or one was aborted. */
function canaryConditions(
  { canary, phase, reason, message = '' }: RolloutStatus,
  serving: boolean,
  available: number,
  problem: string | undefined,
): ConditionDraft[] | undefined {
  if (!canary) return undefined;
  const text = [message, problem].filter(Boolean).join('; ');
  if (phase === 'Aborted') return stalled('RolloutAborted', message, available);
  if (reason === 'NoProgress') return stalled('ProgressDeadlineExceeded', text, available);
  return progressing(text, serving, phase === 'Paused' || problem !== undefined);
}

function isNews(deployment: KubeObject): boolean {
  const { observedGeneration = 0 } = deploymentStatus(deployment);
  return observedGeneration < (deployment.metadata.generation ?? 0) && !isWithoutReplicaSet(deployment);
}

/** Why Ready waits for live settings, if it does. Pods that cannot be asked are not waited for. */
function liveWait(live: LiveProgress | undefined, generation: number, told: Condition[]): string | undefined {
  if (!live || live.view.generation < generation) return 'the live settings are not written yet';
  const { view, forMs } = live;
  const [before, applied] = ['Ready', 'LiveSettingsApplied'].map((wanted) => told.find(({ type }) => type === wanted));
  const wereOthers = applied?.status === 'False';
  const isOfSame = before?.observedGeneration === generation && applied?.observedGeneration === generation;
  // A new leader counts from its own start: the one before it may have waited long enough already.
  const hasWaited = wereOthers && before?.status === 'True' && isOfSame;
  if (hasWaited || forMs >= LIVE_MS_MAX) return undefined;
  if (view.others > 0) return `${view.have} of ${view.pods} pods have the live settings`;
  // A new leader says what was said before until it has asked: Ready would be True for a moment, with an Event.
  return view.unasked > 0 && wereOthers && before?.reason === 'Progressing' ? before.message : undefined;
}

/** In how many milliseconds Ready no longer waits for pods that have other live settings; undefined if it does not. */
export function liveWaitMs({ view, forMs }: LiveProgress): number | undefined {
  return view.others > 0 && forMs < LIVE_MS_MAX ? LIVE_MS_MAX - forMs : undefined;
}

/**
 * kubelet sees nothing of a worker that ends: its supervisor starts it again inside the container.
 * @param told what status says so far: it stays until this process has asked the pods
 */
function crashLoopOf(fleet: Fleet | undefined, told: Condition[]): string | undefined {
  const workers = fleet ? fleet.condition : told.find(({ type }) => type === 'WorkersHealthy');
  return workers?.status === 'False' ? workers.message : undefined;
}

/**
 * LiveSettingsApplied; nothing where there is nobody to ask, or somebody has not been asked yet.
 * @param generation of the spec
 * @param cookie of `rollout.stickiness`: pods of an earlier data plane take it for a name that they do not know
 */
export function liveCondition(
  view: LiveView | undefined,
  generation: number,
  cookie: Cookie = 'Canary',
): ConditionDraft[] {
  if (!view || view.pods === 0) return [];
  if (view.generation < generation) return [liveSettingsApplied.notWritten(view.pods)];
  if (view.unasked > 0) return [];
  const { have, keeping, others, pods, problem } = view;
  if (have === pods && cookie === 'Always' && keeping < pods)
    return [liveSettingsApplied.tooOld(pods, pods - keeping, cookie)];
  if (have === pods) return [liveSettingsApplied.yes(pods)];
  return [
    others > 0
      ? liveSettingsApplied.waiting(have, pods, problem)
      : liveSettingsApplied.unreachable(have, pods, problem),
  ];
}

/** Conditions that come from the pods' own metrics. */
const FLEET_CONDITIONS: string[] = ['WorkersHealthy', 'CapacityAvailable', 'ConcurrencyTuned'];

/**
 * The whole status. Without a `rollout` nothing could be applied, and what status says of it stays; without a `fleet`
 * what it says about the pods' own metrics stays, and so does what it says of live settings until all pods were asked:
 * a process that has just begun to lead has no news.
 */
export function computeStatus(
  resource: RenderServiceResource,
  deployments: ServingDeployments,
  pods: KubeObject[],
  drafts: ConditionDraft[],
  now: string,
  fleet?: Fleet,
  live?: LiveView,
  rollout: RolloutStatus | undefined = resource.status?.rollout,
): RenderServiceStatus {
  const { generation } = resource.metadata;
  const before = resource.status;
  const { target, serving, canRest, whole = serving } = deployments;
  const { total, ready: running } = countWorkers(pods);
  const { metrics } = fleet ?? {};
  const conditions = withThoseThatStay(before?.conditions, drafts, fleet, live, generation, now);
  return {
    observedGeneration: generation,
    replicas: sumOf(whole, ({ replicas }) => replicas),
    readyReplicas: sumOf(whole, ({ readyReplicas }) => readyReplicas),
    updatedReplicas: target ? (deploymentStatus(target).updatedReplicas ?? 0) : 0,
    selector: selectorText(servingLabels(resource as unknown as RenderService, canRest)),
    ...(rollout && { rollout }),
    workers: {
      total,
      ready: metrics ? Math.max(0, running - metrics.down) : fleet ? running : asBefore(running, before),
      busy: metrics ? metrics.busy : fleet ? undefined : before?.workers?.busy,
    },
    queue: metrics ? { length: metrics.queueLength } : fleet ? undefined : before?.queue,
    concurrency: fleet ? fleet.concurrency : before?.concurrency,
    ...liveStatus(live, before, generation),
    conditions,
  };
}

/** Workers that are up, as far as a process knows that has asked nobody yet which of them are down. */
function asBefore(running: number, before: RenderServiceStatus | undefined): number {
  return Math.min(running, before?.workers?.ready ?? running);
}

/**
 * Conditions about which this process knows nothing yet: those of the pods' metrics before the first round, and that
 * of live settings until it has been able to write any, and has asked all pods whether they have them.
 */
export function staying(
  before: Condition[] = [],
  fleet: Fleet | undefined,
  live: Pick<LiveView, 'unasked'> | undefined,
): Condition[] {
  const isLiveKnown = live?.unasked === 0;
  const types: string[] = [...(fleet ? [] : FLEET_CONDITIONS), ...(isLiveKnown ? [] : ['LiveSettingsApplied'])];
  return before.filter(({ type }) => types.includes(type));
}

/** What `drafts` say, and what was known of things of which there is no news. */
function withThoseThatStay(
  before: Condition[] = [],
  drafts: ConditionDraft[],
  fleet: Fleet | undefined,
  live: LiveView | undefined,
  generation: number,
  now: string,
): Condition[] {
  const stay = staying(before, fleet, live).filter(({ type }) => drafts.every((draft) => draft.type !== type));
  return inOrderOf(before, [...mergeConditions(before, drafts, generation, now), ...stay]);
}

/** Those that there were stay where they were: another order alone would be a write. */
function inOrderOf(before: Condition[], conditions: Condition[]): Condition[] {
  const place = ({ type }: Condition) => {
    const index = before.findIndex((one) => one.type === type);
    return index < 0 ? before.length : index;
  };
  return conditions.toSorted((one, other) => place(one) - place(other));
}

function liveStatus(
  live: LiveView | undefined,
  before: RenderServiceStatus | undefined,
  generation: number,
): Pick<RenderServiceStatus, 'liveSettings'> {
  const told = before?.liveSettings;
  if (live && live.generation < generation)
    return { liveSettings: { observedGeneration: told?.observedGeneration ?? 0, pods: 0 } };
  if (!live || live.unasked > 0) return told ? { liveSettings: told } : {};
  const isDone = live.have === live.pods;
  const observedGeneration = isDone ? live.generation : (told?.observedGeneration ?? 0);
  return { liveSettings: { observedGeneration, pods: live.have } };
}

/** Whether two statuses differ in nothing but metrics that change with every request. */
export function differsInFiguresOnly(status: RenderServiceStatus, before: RenderServiceStatus = {}): boolean {
  const withoutFigures = ({
    workers,
    queue: _queue,
    concurrency,
    conditions,
    objectives: _objectives,
    ...rest
  }: RenderServiceStatus) => ({
    ...rest,
    // Its message has the range in it.
    conditions: conditions?.map((one) => (one.type === 'ConcurrencyTuned' ? { ...one, message: '' } : one)),
    isTuned: concurrency !== undefined,
    total: workers?.total,
  });
  return (
    status.queue !== undefined && before.queue !== undefined && isSubset(withoutFigures(status), withoutFigures(before))
  );
}

/** Whether the resource has this status. */
export function isUnchanged(status: RenderServiceStatus, { status: before = {} }: RenderServiceResource): boolean {
  const isGone = (one: unknown, other: unknown) => one === undefined && other !== undefined;
  if (isGone(status.concurrency, before.concurrency)) return false;
  if (isGone(status.queue, before.queue) || isGone(status.workers?.busy, before.workers?.busy)) return false;
  if ((status.workers?.busy === undefined) !== (before.workers?.busy === undefined)) return false;
  return isSubset(status, before);
}

/** Writes the status. Returns the resource with it. */
export async function writeStatus(
  caches: Caches,
  resource: RenderServiceResource,
  status: RenderServiceStatus,
): Promise<RenderServiceResource> {
  const { namespace, name, uid } = resource.metadata;
  const path = `${objectPath(kinds.renderService, namespace, name)}/status`;
  // The uid makes the API server refuse the write if the resource was deleted and made again meanwhile.
  // null removes a figure that is no longer known.
  const figures = status.concurrency || resource.status?.concurrency ? { concurrency: status.concurrency ?? null } : {};
  const metrics = {
    queue: status.queue ?? null,
    ...figures,
    workers: { ...status.workers, busy: status.workers?.busy ?? null },
  };
  const body = { metadata: { uid }, status: { ...status, ...metrics } };
  const result = await caches.rest.request<KubeObject & RenderServiceResource>('PATCH', path, {
    contentType: MERGE_PATCH,
    body,
  });
  caches.renderServices.remember(result);
  return result;
}
