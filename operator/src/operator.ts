/** The operator as a whole: caches, leader election, queue. `main.ts` gives it an environment and signals. */
import type { Logger } from 'pino';
import type { RenderServiceResource } from './api/resource.ts';
import { Autoscaler } from './controller/autoscaler.ts';
import { Caches, hasNewSpec } from './controller/caches.ts';
import { CanaryWatch } from './controller/canary-watch.ts';
import { DataPlane } from './controller/data-plane.ts';
import { LiveSettings } from './controller/live-settings.ts';
import { noPeersKey, PeersKeys, tellsNoPeersKey } from './controller/peers-keys.ts';
import { type Outcome, WorkQueue } from './controller/queue.ts';
import { Reconciler } from './controller/reconcile.ts';
import { currentRevisions } from './controller/revisions.ts';
import { ServedSchema } from './controller/served-schema.ts';
import { Shells } from './controller/shells.ts';
import type { PooledKubeConfig } from './kube/config.ts';
import { type EventDraft, EventRecorder } from './kube/events.ts';
import { LeaderElection } from './kube/lease.ts';
import { type RequestObserver, Rest } from './kube/rest.ts';
import type { KubeObject } from './kube/types.ts';
import type { Metrics } from './metrics.ts';
import { poisonEvent, stuckWorkerEvents } from './pods/events.ts';
import { PodSampler } from './pods/sampler.ts';
import { trackRenderServices } from './renderservice-metrics.ts';
import type { Settings } from './settings.ts';

/** Everything is looked at again after this time: a safety net, watches do the work. */
const RESYNC_MS = 600_000;

export interface OperatorOptions {
  config: PooledKubeConfig;
  settings: Settings;
  metrics: Metrics;
  log: Logger;
}

export class Operator {
  readonly #options: OperatorOptions;
  readonly #caches: Caches;
  readonly #events: EventRecorder;
  readonly #stop = new AbortController();
  readonly #election: LeaderElection;
  readonly #sampler: PodSampler;
  readonly #autoscaler: Autoscaler;
  readonly #peersKeys: PeersKeys;
  readonly #shells: Shells;
  readonly #schema: ServedSchema;
  readonly #dataPlane: DataPlane;
  readonly #live: LiveSettings;
  readonly #canaries: CanaryWatch;
  readonly #reconciler: Reconciler;
  readonly #queue: WorkQueue;
  #leads = false;

  constructor(options: OperatorOptions) {
    const { config, settings, metrics, log } = options;
    this.#options = options;
    metrics.trackQueueDepth(() => this.#queue.depth);
    trackRenderServices(metrics.registry, {
      list: () => (this.#leads ? this.#caches.renderServices.list() : []),
      revisions: () => currentRevisions(this.#caches),
      scalingOf: (uid) => this.#autoscaler.figuresOf(uid),
    });
    const observe: RequestObserver = (method, _path, code, seconds) =>
      metrics.requestSeconds.observe({ method, code }, seconds);
    // Asked at every write: a process that was stopped for a while (SIGSTOP, a frozen machine) wakes up in
    // mid-reconcile.
    const writeMs = () => this.#election.writeMs;
    this.#caches = new Caches(new Rest(config, { observe, writeMs }), settings.CORELANE_NAMESPACES, (kind, error) => {
      metrics.watchErrors.inc({ kind: kind.kind });
      log.warn({ kind: kind.kind, err: error }, 'list or watch failed; trying again');
    });
    this.#events = new EventRecorder({
      rest: this.#caches.rest,
      instance: settings.CORELANE_POD_NAME,
      onError: (key, error) => log.warn({ key, err: error }, 'event not recorded'),
      onDropped: (key, event) => {
        metrics.eventsDropped.inc();
        log.info({ key, ...event }, 'too many events; this one is in the log only');
      },
    });
    this.#queue = new WorkQueue(
      (key, failures) => this.#reconcile(key, failures),
      settings.CORELANE_CONCURRENCY,
      (key, error, retryMs) => log.warn({ key, err: error, retryMs }, 'reconcile failed; trying again'),
    );
    this.#sampler = new PodSampler({
      pods: () => this.#caches.pods.list().filter((pod) => this.#caches.ownerOf(pod)),
      onChange: (pod) => {
        const owner = this.#caches.ownerOf(pod);
        if (owner) this.#queue.add(`${owner.metadata.namespace}/${owner.metadata.name}`);
      },
      countedFor: (pod) => {
        const owner = this.#caches.ownerOf(pod);
        return owner && hasObjectives(owner) ? owner.metadata.uid : undefined;
      },
      counted: () => {
        const services = this.#caches.renderServices.list().filter(hasObjectives);
        return new Set(services.map(({ metadata }) => metadata.uid));
      },
      onResult: (result) => metrics.podSamples.inc({ result }),
      onStalls: (pod, stalls) => void this.#report(pod, stuckWorkerEvents(pod, stalls), 'worker was stuck'),
      onPoison: (pod, refused) => void this.#report(pod, [poisonEvent(pod, refused)], 'URL in quarantine'),
    });
    this.#autoscaler = new Autoscaler({
      caches: this.#caches,
      sampleOf: (pod) => this.#sampler.of(pod),
      events: this.#events,
      periodMs: settings.CORELANE_SCALING_PERIOD_SECONDS * 1000,
      onChange: (key) => this.#queue.add(key),
      onDecision: (key, { from, to, reason, message }) => log.info({ key, from, to, reason, message }, 'scaled'),
      onError: (key, error) => log.warn({ key, err: error }, 'scaling failed; trying again in the next round'),
    });
    const onWrite = (what: string, key: string) => {
      metrics.writes.inc({ what });
      log.info({ what, key }, 'written');
    };
    this.#peersKeys = new PeersKeys({
      rest: this.#caches.rest,
      onCreated: (key) => onWrite('Secret missing', key),
      onFailed: async ({ metadata }, message) => {
        log.warn({ key: `${metadata.namespace}/${metadata.name}`, message }, 'no key for the peers; trying again');
        const { status } = this.#caches.renderServices.get(metadata.namespace, metadata.name) ?? {};
        if (tellsNoPeersKey(status, message)) return;
        const event = { type: 'Warning', reason: 'NoPeersKey', action: 'Reconcile' } as const;
        await this.#events.record(metadata, { ...event, note: noPeersKey(message) });
      },
    });
    this.#shells = new Shells(this.#caches.rest);
    this.#dataPlane = new DataPlane({
      pace: {
        maxConcurrent: settings.CORELANE_DATA_PLANE_MAX_CONCURRENT,
        pauseMs: settings.CORELANE_DATA_PLANE_PAUSE,
      },
      window: settings.CORELANE_DATA_PLANE_WINDOW,
      keys: () =>
        this.#caches.renderServices
          .list()
          .filter(({ metadata }) => !metadata.deletionTimestamp)
          .map(({ metadata }) => `${metadata.namespace}/${metadata.name}`),
      obstacle: () => (this.#schema.missing.length > 0 ? 'the CustomResourceDefinition is outdated' : undefined),
      onTurn: (key) => this.#queue.add(key),
      nowMs: () => Date.now(),
    });
    metrics.trackDataPlane(() => (this.#leads ? this.#dataPlane.figures : { waiting: 0, held: 0 }));
    this.#schema = new ServedSchema({
      rest: this.#caches.rest,
      onChange: (missing) => {
        metrics.crdMissingFields.set(missing.length);
        if (missing.length > 0) log.warn({ missing }, 'the CustomResourceDefinition lacks fields: it is outdated');
        this.#enqueueAll();
      },
      onError: (error) => log.warn({ err: error }, 'the schema of RenderServices cannot be read; trying again'),
    });
    this.#live = new LiveSettings({
      rest: this.#caches.rest,
      podsOf: (namespace, name) => this.#caches.podsOf(namespace, name),
      onChange: (key) => this.#queue.add(key),
      onFailed: (key, error) =>
        log.warn({ key, err: error }, 'pods cannot be told of their live settings, which take up to two minutes so'),
    });
    this.#canaries = new CanaryWatch({
      podsOf: (namespace, name) => this.#caches.podsOf(namespace, name),
      onChange: (key) => this.#queue.add(key),
    });
    this.#reconciler = new Reconciler({
      caches: this.#caches,
      live: this.#live,
      canaries: this.#canaries,
      peersKeys: this.#peersKeys,
      shells: this.#shells,
      dataPlane: this.#dataPlane,
      schema: this.#schema,
      sampler: this.#sampler,
      scalingOf: (uid) => this.#autoscaler.viewOf(uid),
      sidecar: { image: settings.CORELANE_SIDECAR_IMAGE, pullPolicy: settings.CORELANE_SIDECAR_PULL_POLICY },
      access: { namespace: settings.CORELANE_POD_NAMESPACE, monitoring: settings.CORELANE_MONITORING },
      events: this.#events,
      now: () => new Date(),
      onWrite,
    });
    this.#election = new LeaderElection({
      rest: new Rest(config, { observe, purpose: 'lease' }),
      namespace: settings.CORELANE_POD_NAMESPACE,
      name: settings.CORELANE_LEASE_NAME,
      identity: settings.CORELANE_POD_NAME,
      signal: this.#stop.signal,
      onError: (error) => log.warn({ err: error }, 'leader election: call failed; trying again'),
    });
  }

  /**
   * Why this process neither leads nor could take over, in one line; undefined when it can. That another process leads
   * is no reason.
   */
  get notReady(): string | undefined {
    if (this.#stop.signal.aborted) return 'the operator is stopping';
    return this.#caches.obstacle ?? this.#election.obstacle;
  }

  /**
   * Fills the caches (also while another process leads, so that a fail-over takes no time for it), waits until this
   * process leads, works, and resolves when it has stopped or lost the lead.
   * @returns 'stopped' or 'lost'
   */
  async run(): Promise<'stopped' | 'lost'> {
    const { log, metrics } = this.#options;
    this.#caches.onChange((key, isUrgent) => this.#queue.add(key, isUrgent));
    await Promise.race([this.#caches.start(), aborted(this.#stop.signal)]);
    log.info('caches are filled; waiting for the lead');
    if (await this.#election.acquire()) {
      log.info('this process has the Lease; it lists RenderServices and Deployments before it writes');
      const lost = this.#election.holdUntilLost();
      await Promise.race([this.#lookAfresh(), lost]);
      if (this.#election.isCurrent && !this.#stop.signal.aborted) this.#lead();
      await lost;
      this.#leads = false;
      metrics.leader.set(0);
    }
    const result = this.#stop.signal.aborted ? 'stopped' : 'lost';
    const { rest } = this.#caches;
    // Another process may lead already, where somebody has written the Lease by hand.
    if (result === 'lost') void rest.endWrites('abort');
    this.#sampler.stop();
    this.#live.stop();
    this.#canaries.stop();
    this.#schema.stop();
    this.#dataPlane.stop();
    await this.#autoscaler.stop();
    await this.#queue.stop();
    // Nudges of pods and Events are not waited for above. Another process may write only when all of it has ended.
    await rest.endWrites('finish');
    if (result === 'stopped') await this.#election.release();
    this.#caches.stop();
    return result;
  }

  /** Finishes the running reconciles and gives up the lead; `run` then resolves. */
  stop(): void {
    this.#stop.abort();
  }

  /** Makes events of a pod those of its RenderService. */
  async #report(pod: KubeObject, events: EventDraft[], what: string): Promise<void> {
    const owner = this.#caches.ownerOf(pod);
    if (!owner) return;
    for (const event of events) {
      const key = `${owner.metadata.namespace}/${owner.metadata.name}`;
      this.#options.log.warn({ key, note: event.note }, what);
      await this.#events.record(owner.metadata, event);
    }
  }

  /** Reads anew on what writes depend: the watches may be late, and the leader of before has acted on more. */
  async #lookAfresh(): Promise<void> {
    await Promise.all([this.#caches.refresh(), this.#schema.start()]);
  }

  #lead(): void {
    const { log, metrics } = this.#options;
    log.info('this process leads');
    // Not before: an operator that has the Lease and cannot list leads nobody, and an alert is to tell.
    this.#leads = true;
    metrics.leader.set(1);
    this.#queue.start();
    this.#enqueueAll();
    this.#sampler.start();
    this.#autoscaler.start();
    // A process that has lost the lead must end, and a timer would keep it.
    setInterval(() => this.#enqueueAll(), RESYNC_MS).unref();
  }

  #enqueueAll(): void {
    const all = this.#caches.renderServices.list();
    const uids = new Set(all.map(({ metadata }) => metadata.uid));
    this.#peersKeys.keepOnly(uids);
    this.#shells.keepOnly(uids);
    this.#live.keepOnly(uids);
    this.#canaries.keepOnly(uids);
    for (const one of all) this.#queue.add(`${one.metadata.namespace}/${one.metadata.name}`, hasNewSpec(one));
  }

  async #reconcile(key: string, failures: number): Promise<Outcome> {
    const end = this.#options.metrics.reconcileSeconds.startTimer();
    try {
      const outcome = await this.#reconciler.reconcile(key, failures);
      end({ result: outcome.isStalled ? 'stalled' : 'done' });
      return outcome;
    } catch (error) {
      end({ result: 'error' });
      throw error;
    }
  }
}

function hasObjectives({ spec }: RenderServiceResource): boolean {
  return Boolean((spec as { objectives?: unknown } | undefined)?.objectives);
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
