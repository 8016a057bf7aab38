/**
 * The loop around the recommender. Every 15 s, for each RenderService with `scaling`: read, recommend, and write the
 * number into spec.replicas through the scale subresource; from there on it goes the way of `kubectl scale`. Only the
 * leader runs it. Docs: docs/scaling.md and docs/adr/0010-who-writes-replicas.md.
 */

import { parseStored, type RenderService, type RenderServiceResource, type ScalingDecision } from '../api/resource.ts';
import { rfc3339 } from '../api/scalars.ts';
import { concurrencyBounds } from '../api/spec/concurrency.ts';
import { asOfPods, type Memory, measure, type Sample } from '../autoscale/measure.ts';
import { type Policy, policyOf } from '../autoscale/policy.ts';
import { type Recommendation, recommend, type State } from '../autoscale/recommend.ts';
import type { EventRecorder } from '../kube/events.ts';
import type { KubeObject } from '../kube/types.ts';
import { selectorLabels, selectorText } from '../plan/index.ts';
import { listPodMetrics, type PodMetrics } from '../pods/metrics.ts';
import { podReading } from '../pods/reading.ts';
import type { PodSample } from '../pods/sample.ts';
import type { Caches } from './caches.ts';
import { isRefusal, readRenderService, replicasOf, writeReplicas } from './replicas.ts';
import {
  isCanaryUnderWay,
  metricsProblem,
  nextView,
  pauseOf,
  type ScalingView,
  withoutDown,
} from './scaling-status.ts';

/** RenderServices that are looked at at a time. */
const CONCURRENCY = 8;
/** Samples are kept for as long as the longest window, and a little. */
const KEPT_SLACK_MS = 60_000;
export interface AutoscalerOptions {
  caches: Caches;
  sampleOf: (pod: KubeObject) => PodSample | undefined;
  events: EventRecorder;
  periodMs: number;
  /** Called when there is something new for the status. */
  onChange: (key: string) => void;
  onDecision: (key: string, decision: ScalingDecision) => void;
  /** Something failed that the next round may get right. */
  onError: (key: string, error: unknown) => void;
}

/** Changes of the number of pods in one direction, for one reason. */
export interface DecisionCount {
  direction: 'up' | 'down';
  reason: string;
  count: number;
}

/** What metrics say about the scaling of a RenderService. */
export interface ScalingFigures {
  /** What the last look compared with the thresholds; undefined where nothing could be measured. */
  utilization?: number | undefined;
  /** Since this process leads, or since it scales. */
  decisions: DecisionCount[];
}

interface Entry {
  key: string;
  /** When this process began to look at it. */
  beganMs: number;
  figures: ScalingFigures;
  /** What the samples are samples of: two signals in one window would be none. */
  measured?: string;
  samples: Sample[];
  memory: Memory;
  state: State;
  view?: ScalingView;
  /**
   * Written without an answer, as when the API server dies or is out of time: whether it counts, the next look asks.
   */
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

  /** What it has measured and done; undefined before the first look, and where nothing scales. */
  figuresOf(uid: string): ScalingFigures | undefined {
    return this.#entries.get(uid)?.figures;
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
    const scaled = this.#options.caches.renderServices.list().filter(isScaled);
    const uids = new Set(scaled.map(({ metadata }) => metadata.uid));
    for (const uid of this.#entries.keys()) if (!uids.has(uid)) this.#entries.delete(uid);
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
    const { caches, events, onChange } = this.#options;
    const entry = this.#entryOf(listed);
    const late = await this.#settle(entry, listed);
    // A write that the watch has not brought yet counts.
    const { namespace, name } = listed.metadata;
    const resource = caches.renderServices.get(namespace, name) ?? listed;
    const parsed = parseStored(resource);
    if (!parsed.ok || !parsed.renderService.spec.scaling) return; // the reconciler says what is wrong
    const { renderService } = parsed;
    const policy = policyOf(parsed.renderService.spec.scaling);
    const metrics = await this.#readMetrics(renderService, policy);
    const now = performance.now();
    const hasCanary = isCanaryUnderWay(resource);
    this.#addSample(entry, renderService, policy, metrics.pods, now, hasCanary);
    // A canary's pods come on top of those that serve everything: less to do for each is no surplus.
    entry.state.paused = hasCanary ? withoutDown(pauseOf(resource)) : pauseOf(resource);
    const recommendation = recommend(entry.samples, renderService.spec.replicas, policy, now, entry.state);
    const decision = (await this.#act(entry, resource, renderService.spec.replicas, recommendation, now)) ?? late;
    entry.figures.utilization = recommendation.utilization;
    const sinceMs = now - entry.beganMs;
    const view = nextView(entry.view, resource, policy, recommendation, metrics.error, decision, sinceMs);
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
    const entry: Entry = {
      key: keyOf(resource),
      beganMs: performance.now(),
      figures: { decisions: [] },
      samples: [],
      memory: new Map(),
      state: stateBefore(resource),
    };
    this.#entries.set(uid, entry);
    return entry;
  }

  async #readMetrics(renderService: RenderService, { signal }: Policy): Promise<MetricsResult> {
    if (signal !== 'cpu') return {};
    try {
      const { namespace } = renderService.metadata;
      return {
        pods: await listPodMetrics(this.#options.caches.rest, namespace, selectorText(selectorLabels(renderService))),
      };
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
    hasCanary: boolean,
  ): void {
    const { caches, sampleOf } = this.#options;
    const { namespace, name } = renderService.metadata;
    const concurrency = concurrencyBounds(renderService.spec).min;
    const sources = { metrics, sampleOf, concurrency, wallMs: Date.now() };
    const readings = caches.servingPodsOf(namespace, name).map((pod) => podReading(pod, sources));
    const measuredNow = measure(readings, policy, now, entry.memory);
    const { memory } = measuredNow;
    const { replicas } = renderService.spec;
    const sample = hasCanary ? asOfPods(measuredNow.sample, policy, readings.length, replicas) : measuredNow.sample;
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
    const time = rfc3339(new Date());
    const decision: ScalingDecision = { time, from, to: replicas, reason, message };
    try {
      const wrote = await writeReplicas(this.#options.caches, resource, from, replicas);
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
    const { caches } = this.#options;
    const fresh = await readRenderService(caches, metadata);
    entry.unanswered = undefined;
    if (fresh.metadata.uid !== metadata.uid || replicasOf(fresh) !== unanswered.to) return undefined;
    caches.renderServices.remember(fresh);
    return this.#decided(entry, unanswered, performance.now());
  }

  #decided({ key, state, figures }: Entry, decision: ScalingDecision, now: number): ScalingDecision {
    const direction = decision.to > decision.from ? 'up' : 'down';
    if (direction === 'up') state.lastUpMs = now;
    else state.lastDownMs = now;
    count(figures.decisions, direction, decision.reason);
    this.#options.onDecision(key, decision);
    return decision;
  }
}

function count(decisions: DecisionCount[], direction: DecisionCount['direction'], reason: string): void {
  const known = decisions.find((one) => one.direction === direction && one.reason === reason);
  if (known) known.count += 1;
  else decisions.push({ direction, reason, count: 1 });
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

/** Cooldowns go on over a restart of the operator: the last decision stands in the status. */
function stateBefore({ status }: RenderServiceResource): State {
  const last = status?.scaling?.lastDecision;
  if (!last) return {};
  const agoMs = Math.max(0, Date.now() - Date.parse(last.time));
  const atMs = performance.now() - agoMs;
  return last.to > last.from ? { lastUpMs: atMs } : { lastDownMs: atMs };
}
