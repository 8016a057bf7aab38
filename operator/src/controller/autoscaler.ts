/**
 * The loop around the recommender. Every 15 s, for each RenderService with `scaling`: read, recommend, and write the
 * number into spec.replicas through the scale subresource; from there on it goes the way of `kubectl scale`. Only the
 * leader runs it. Docs: docs/scaling.md and docs/adr/0010-who-writes-replicas.md.
 */
import { type ConditionDraft, scalingActive } from '../api/conditions.ts';
import { ANNOTATION_SCALING_PAUSED, MANAGER } from '../api/names.ts';
import {
  parseRenderService,
  type RenderService,
  type RenderServiceResource,
  type ResourceMetadata,
  type ScalingDecision,
} from '../api/resource.ts';
import { type Memory, measure, type Sample } from '../autoscale/measure.ts';
import { type Policy, policyOf } from '../autoscale/policy.ts';
import { type Pause, type Recommendation, recommend, type State } from '../autoscale/recommend.ts';
import type { EventRecorder } from '../kube/events.ts';
import { kinds, objectPath } from '../kube/kinds.ts';
import { ApiError, MERGE_PATCH } from '../kube/rest.ts';
import type { KubeObject } from '../kube/types.ts';
import { selectorText } from '../plan/index.ts';
import { listPodMetrics, type PodMetrics } from '../pods/metrics.ts';
import { podReading } from '../pods/reading.ts';
import type { PodSample } from '../pods/sample.ts';
import type { Cluster } from './cluster.ts';

/** RenderServices that are looked at at a time. */
const CONCURRENCY = 8;
/** Samples are kept for as long as the longest window, and a little. */
const KEPT_SLACK_MS = 60_000;
/** Status shows the utilisation, but not every tremble of it: each change is a write. */
const SHOWN_STEP_PERCENT = 5;

export interface AutoscalerOptions {
  cluster: Cluster;
  sampleOf: (pod: KubeObject) => PodSample | undefined;
  events: EventRecorder;
  periodMs: number;
  /** Called when there is something new for the status. */
  onChange: (key: string) => void;
  onDecision: (key: string, decision: ScalingDecision) => void;
  onUtilization: (key: string, ratio: number | undefined) => void;
  /** Something failed that the next round may get right. */
  onError: (key: string, error: unknown) => void;
}

/** What the status of a RenderService says about scaling. */
export interface ScalingView {
  condition: ConditionDraft;
  utilizationPercent?: number | undefined;
  lastDecision?: ScalingDecision | undefined;
}

interface Entry {
  key: string;
  /** What the samples are samples of: two signals in one window would be none. */
  measured?: string;
  samples: Sample[];
  memory: Memory;
  state: State;
  view?: ScalingView;
  /** Written without an answer, as when the API server dies or is out of time: whether it counts, the next look asks. */
  unanswered?: ScalingDecision | undefined;
}

export class Autoscaler {
  readonly #options: AutoscalerOptions;
  /** By the uid of the RenderService. */
  readonly #entries = new Map<string, Entry>();
  #stopped = false;
  #timer: NodeJS.Timeout | undefined;
  #round: Promise<void> = Promise.resolve();

  constructor(options: AutoscalerOptions) {
    this.#options = options;
  }

  /** What the last round found out, or undefined before the first one. */
  viewOf(uid: string): ScalingView | undefined {
    return this.#entries.get(uid)?.view;
  }

  /** Begins with a round at once. */
  start(): void {
    const begin = async () => {
      const startedMs = performance.now();
      this.#round = this.round();
      await this.#round;
      if (this.#stopped) return;
      // A process that has lost the lead must end, and a timer would keep it.
      const waitMs = Math.max(0, this.#options.periodMs - (performance.now() - startedMs));
      this.#timer = setTimeout(begin, waitMs).unref();
    };
    void begin();
  }

  /** Resolves when the round that is under way has ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#round;
  }

  /** Looks at every RenderService once, and forgets those that no longer scale. */
  async round(): Promise<void> {
    const scaled = this.#options.cluster.renderServices.list().filter(isScaled);
    const uids = new Set(scaled.map(({ metadata }) => metadata.uid));
    for (const [uid, { key }] of this.#entries) {
      if (uids.has(uid)) continue;
      this.#entries.delete(uid);
      this.#options.onUtilization(key, undefined);
    }
    const waiting = scaled.values();
    const lookAtNext = async () => {
      for (const resource of waiting) {
        if (this.#stopped) return;
        try {
          await this.#look(resource);
        } catch (error) {
          this.#options.onError(keyOf(resource), error);
        }
      }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, lookAtNext));
  }

  async #look(listed: RenderServiceResource): Promise<void> {
    const { cluster, events, onChange, onUtilization } = this.#options;
    const entry = this.#entryOf(listed);
    const late = await this.#settle(entry, listed);
    // A write that the watch has not brought yet counts.
    const { namespace, name } = listed.metadata;
    const resource = cluster.renderServices.get(namespace, name) ?? listed;
    const parsed = parseRenderService(resource);
    if (!parsed.ok || !parsed.renderService.spec.scaling) return; // the reconciler says what is wrong
    const { renderService } = parsed;
    const policy = policyOf(parsed.renderService.spec.scaling);
    const metrics = await this.#readMetrics(renderService, policy);
    const now = performance.now();
    this.#addSample(entry, renderService, policy, metrics.pods, now);
    entry.state.paused = pauseOf(resource);
    const recommendation = recommend(entry.samples, renderService.spec.replicas, policy, now, entry.state);
    const decision = (await this.#act(entry, resource, renderService.spec.replicas, recommendation, now)) ?? late;
    onUtilization(entry.key, recommendation.utilization);
    const view = nextView(entry.view, resource, policy, recommendation, metrics.error, decision);
    const isNews = JSON.stringify(view) !== JSON.stringify(entry.view);
    entry.view = view;
    if (isNews) onChange(entry.key);
    if (!decision) return;
    const { from, to, message } = decision;
    await events.record(resource.metadata, {
      type: 'Normal',
      reason: to > from ? 'ScaledUp' : 'ScaledDown',
      action: 'Scale',
      note: `scaled ${from} -> ${to}: ${message}`,
    });
  }

  #entryOf(resource: RenderServiceResource): Entry {
    const { uid } = resource.metadata;
    const known = this.#entries.get(uid);
    if (known) return known;
    const entry = { key: keyOf(resource), samples: [], memory: new Map(), state: stateBefore(resource) };
    this.#entries.set(uid, entry);
    return entry;
  }

  async #readMetrics(renderService: RenderService, { signal }: Policy): Promise<MetricsResult> {
    if (signal !== 'cpu') return {};
    try {
      const { namespace } = renderService.metadata;
      return { pods: await listPodMetrics(this.#options.cluster.rest, namespace, selectorText(renderService)) };
    } catch (error) {
      return { error: metricsProblem(error) };
    }
  }

  #addSample(
    entry: Entry,
    renderService: RenderService,
    policy: Policy,
    metrics: MetricsResult['pods'],
    now: number,
  ): void {
    const { cluster, sampleOf } = this.#options;
    const { namespace, name } = renderService.metadata;
    const sources = { metrics, sampleOf, concurrency: renderService.spec.concurrency, wallMs: Date.now() };
    const readings = cluster.podsOf(namespace, name).map((pod) => podReading(pod, sources));
    const { sample, memory } = measure(readings, policy, now, entry.memory);
    const measured = `${policy.signal} ${policy.statistic}`;
    if (entry.measured !== measured) entry.samples = [];
    entry.measured = measured;
    const keptMs = Math.max(policy.up.windowMs, policy.down.windowMs) + KEPT_SLACK_MS;
    entry.memory = memory;
    entry.samples = [...entry.samples.filter(({ atMs }) => atMs > now - keptMs), sample];
  }

  /** Writes the number if it is another one. Returns the decision if it was written. */
  async #act(
    entry: Entry,
    resource: RenderServiceResource,
    from: number,
    { replicas, reason, message }: Recommendation,
    now: number,
  ): Promise<ScalingDecision | undefined> {
    if (replicas === from) return undefined;
    const time = new Date().toISOString().replace(/\.\d+Z$/, 'Z');
    const decision: ScalingDecision = { time, from, to: replicas, reason, message };
    try {
      const wrote = await writeReplicas(this.#options.cluster, resource, from, replicas);
      if (!wrote) return undefined; // somebody else was faster; the next round begins from there
    } catch (error) {
      if (!isRefusal(error)) entry.unanswered = decision;
      throw error;
    }
    return this.#decided(entry, decision, now);
  }

  /** Finds out whether a write without an answer was done after all. If so its cooldown counts, from now on. */
  async #settle(entry: Entry, { metadata }: RenderServiceResource): Promise<ScalingDecision | undefined> {
    const { unanswered } = entry;
    if (!unanswered) return undefined;
    const { cluster } = this.#options;
    const fresh = await readRenderService(cluster, metadata);
    entry.unanswered = undefined;
    if (fresh.metadata.uid !== metadata.uid || replicasOf(fresh) !== unanswered.to) return undefined;
    cluster.renderServices.remember(fresh);
    return this.#decided(entry, unanswered, performance.now());
  }

  #decided({ key, state }: Entry, decision: ScalingDecision, now: number): ScalingDecision {
    if (decision.to > decision.from) state.lastUpMs = now;
    else state.lastDownMs = now;
    this.#options.onDecision(key, decision);
    return decision;
  }
}

interface MetricsResult {
  pods?: Map<string, PodMetrics>;
  error?: string;
}

function isScaled({ spec, metadata }: RenderServiceResource): boolean {
  return Boolean((spec as { scaling?: unknown } | undefined)?.scaling) && !metadata.deletionTimestamp;
}

function keyOf({ metadata }: RenderServiceResource): string {
  return `${metadata.namespace}/${metadata.name}`;
}

/**
 * Sets spec.replicas unless it is no longer `from`: a `kubectl scale` in between wins.
 * @returns whether it wrote
 */
async function writeReplicas(
  cluster: Cluster,
  { metadata }: RenderServiceResource,
  from: number,
  replicas: number,
): Promise<boolean> {
  const write = (resourceVersion: string) =>
    cluster.rest.request('PATCH', `${renderServicePath(metadata)}/scale`, {
      query: { fieldManager: MANAGER },
      contentType: MERGE_PATCH,
      // The resource version makes a change in between a conflict.
      body: { metadata: { resourceVersion }, spec: { replicas } },
    });
  try {
    await write(metadata.resourceVersion);
    return true;
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 409)) throw error;
  }
  // Mostly it was but the status that has changed.
  const fresh = await readRenderService(cluster, metadata);
  const isSame = fresh.metadata.uid === metadata.uid && replicasOf(fresh) === from;
  if (isSame) await write(fresh.metadata.resourceVersion);
  return isSame;
}

function renderServicePath({ namespace, name }: ResourceMetadata): string {
  return objectPath(kinds.renderService, namespace, name);
}

/** The resource as the API server has it now. */
function readRenderService({ rest }: Cluster, metadata: ResourceMetadata): Promise<KubeObject & RenderServiceResource> {
  return rest.request('GET', renderServicePath(metadata));
}

function replicasOf({ spec }: RenderServiceResource): number | undefined {
  return (spec as { replicas?: number }).replicas;
}

/** Whether the API server has said that it did not do it; with 5xx it may have (etcd was out of time, say). */
function isRefusal(error: unknown): boolean {
  return error instanceof ApiError && error.status < 500;
}

/** Cooldowns go on over a restart of the operator: the last decision stands in the status. */
function stateBefore({ status }: RenderServiceResource): State {
  const last = status?.scaling?.lastDecision;
  if (!last) return {};
  const agoMs = Math.max(0, Date.now() - Date.parse(last.time));
  const atMs = performance.now() - agoMs;
  return last.to > last.from ? { lastUpMs: atMs } : { lastDownMs: atMs };
}

function annotationOf({ metadata }: RenderServiceResource): string | undefined {
  const value = metadata.annotations?.[ANNOTATION_SCALING_PAUSED];
  return value === 'false' || value === '' ? undefined : value;
}

/** A value that is none of the three pauses both ways: whoever wrote it wanted something to stop. */
function pauseOf(resource: RenderServiceResource): Pause | undefined {
  const value = annotationOf(resource);
  return value === undefined || value === 'up' || value === 'down' ? value : 'both';
}

function metricsProblem(error: unknown): string {
  const status = error instanceof ApiError ? error.status : 0;
  if (status === 404) return 'the cluster has no Metrics API (metrics.k8s.io); install metrics-server';
  if (status === 403) return 'the operator may not list pods in metrics.k8s.io; is its Role the one of this version?';
  const detail = error instanceof ApiError ? `: ${error.message.slice(0, 200)}` : '';
  return `the Metrics API (metrics.k8s.io) does not answer${detail}`;
}

/** Fixed sentences: numbers in a condition would be a write in every round. */
function conditionOf(
  resource: RenderServiceResource,
  policy: Policy,
  { reason }: Recommendation,
  metricsError: string | undefined,
): ConditionDraft {
  const annotation = annotationOf(resource);
  if (reason === 'ScaledToZero') {
    return scalingActive('ScaledToZero', 'spec.replicas is 0; scaling is off until somebody sets another number');
  }
  if (annotation !== undefined && pauseOf(resource) === 'both') {
    const hint = annotation === 'true' ? '' : ' (it should be "true", "up" or "down")';
    return scalingActive('Paused', `annotation ${ANNOTATION_SCALING_PAUSED} is "${annotation.slice(0, 64)}"${hint}`);
  }
  if (metricsError !== undefined) return scalingActive('NoMetrics', `${metricsError}; the number of pods is held`);
  if (reason === 'NoMetrics') {
    return scalingActive('NoMetrics', 'no worker has been measured yet; the number of pods is held');
  }
  if (reason === 'FillingWindow') {
    return scalingActive('FillingWindow', 'the number of pods is held until a window is full');
  }
  if (reason === 'AtMaximum') {
    return scalingActive('AtMaximum', `more pods are wanted, but ${policy.maxReplicas} is the maximum`);
  }
  const paused = annotation === undefined ? '' : `; paused ${annotation}`;
  return scalingActive('Measuring', `decides on ${policy.signal === 'cpu' ? 'per-core CPU' : 'busy slots'}${paused}`);
}

function nextView(
  before: ScalingView | undefined,
  resource: RenderServiceResource,
  policy: Policy,
  recommendation: Recommendation,
  metricsError: string | undefined,
  decision: ScalingDecision | undefined,
): ScalingView {
  const { utilization } = recommendation;
  const shown = before?.utilizationPercent ?? resource.status?.scaling?.utilizationPercent;
  const exact = utilization === undefined ? undefined : Math.round(100 * utilization);
  const hasMoved = shown === undefined || exact === undefined || Math.abs(exact - shown) >= SHOWN_STEP_PERCENT;
  return {
    condition: conditionOf(resource, policy, recommendation, metricsError),
    utilizationPercent: hasMoved || decision ? exact : shown,
    lastDecision: decision ?? before?.lastDecision ?? resource.status?.scaling?.lastDecision,
  };
}
