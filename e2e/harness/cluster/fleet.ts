/**
 * A fleet that renders without burning CPU, and three clients that never stop asking: one at random times through the
 * Service, one with a kept connection to one pod, one that finds pods as an ingress does. For stories about
 * disturbances.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { apply, corelane, eventually, get, kubectl, SELDOM_MS } from './cluster.ts';
import { allowEndpoints, type Load, type LoadResult, startLoad } from './load.ts';
import { imageNames, installOperator } from './operator.ts';
import { type LivePod, podsOf, untilReady } from './renderservice.ts';
import { ROOT } from './shell.ts';

/** Of the RenderService. */
const NAME = 'blocker';
const REQUESTS_MAX = 200_000;
/** The client with one connection, which sends one request after the other. */
const PINNED = 'pinned';

/** `[due at, latency]` in ms, and of one that failed how, and its id. */
export type TimelineEntry = [dueAtMs: number, latencyMs: number, how?: string, requestId?: string];

export interface ClientResult extends LoadResult {
  name: string;
  timeline: TimelineEntry[];
}

/** A time in which one thing was done to the fleet. */
export interface Phase {
  name: string;
  /** How often it was done. */
  count: number;
  beginMs: number;
  endMs: number;
}

interface Client extends Load {
  name: string;
}

export class Fleet {
  readonly namespace: string;
  readonly name = NAME;
  readonly phases: Phase[] = [];
  #clients: Client[] = [];

  constructor(namespace: string) {
    this.namespace = namespace;
  }

  /**
   * Installs the operator, and brings up `replicas` pods of two workers in an empty namespace.
   * @param spec further fields; @param container further fields of the worker; @param others containers beside it
   */
  async create(replicas: number, spec: object = {}, container: object = {}, others: object[] = []): Promise<void> {
    const { namespace } = this;
    await installOperator();
    await kubectl(['delete', 'namespace', namespace, '--ignore-not-found'], { timeoutMs: 240_000 });
    await apply(JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } }));
    await allowEndpoints(namespace);
    const data = { 'blocker.mjs': readFileSync(join(ROOT, 'e2e/harness/cluster/blocker.mjs'), 'utf8') };
    await apply(JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: NAME, namespace }, data }));
    const template = { spec: { containers: [{ ...worker(), ...container }, ...others], volumes: [volume] } };
    const resource = {
      apiVersion: 'corelane.dev/v1alpha1',
      kind: 'RenderService',
      metadata: { name: NAME, namespace },
      spec: { replicas, workersPerPod: 2, rollout: { rolling: { maxSurge: 2 } }, template, ...spec },
    };
    await apply(JSON.stringify(resource));
    await untilReady(namespace, NAME);
  }

  /** Starts the three clients. @param args further options of the one that asks at random times */
  async startClients(ratePerS: number, secondsMax: number, ...args: string[]): Promise<void> {
    // With its last dot: every other form asks CoreDNS for six names where two do.
    const service = ['--url', `http://${NAME}.${this.namespace}.svc.cluster.local./`];
    const endpoints = ['--endpoints', `${this.namespace}/${NAME}`];
    await this.#startClient('open-loop', ratePerS, secondsMax, ...service, ...args);
    await this.#startClient(PINNED, 5, secondsMax, ...service, '--concurrency', '1', '--keep-alive');
    await this.#startClient('ingress', 10, secondsMax, ...endpoints, '--keep-alive');
  }

  /** Stops them; what was in flight then is nobody's loss. */
  async stopClients(): Promise<ClientResult[]> {
    const results: ClientResult[] = [];
    for (const { name, stop } of this.#clients) {
      const { timeline, ...rest } = await stop();
      const entries = timeline as TimelineEntry[];
      const sent = name === PINNED ? fromSending(entries) : entries;
      const ended = sent.filter(([, , how]) => how !== 'STOPPED');
      results.push({ ...rest, name, timeline: ended } as ClientResult);
    }
    this.#clients = [];
    return results;
  }

  /** Does something to the fleet `count` times, and notes from when until when. */
  async phase(name: string, count: number, work: (index: number) => Promise<void>): Promise<void> {
    const beginMs = Date.now();
    for (let index = 0; index < count; index += 1) await work(index);
    this.phases.push({ name, count, beginMs, endMs: Date.now() });
  }

  /** Changes its spec, as `kubectl patch` does. */
  async change(spec: object): Promise<void> {
    const patch = `--patch=${JSON.stringify({ spec })}`;
    await kubectl(['-n', this.namespace, 'patch', 'renderservice', NAME, '--type=merge', patch]);
  }

  /** `corelane rollout VERB OPTIONS` of it, as a user has it. */
  async rollout(verb: string, ...options: string[]): Promise<void> {
    await corelane(['rollout', verb, NAME, ...options, '-n', this.namespace], { timeoutMs: 300_000 });
  }

  /** Pods that are not on their way out. */
  async livePods(): Promise<LivePod[]> {
    return (await podsOf(this.namespace, NAME)).filter(({ metadata }) => !metadata.deletionTimestamp);
  }

  /** Waits until the fleet is as its spec asks and nothing is on its way out. */
  async settled(): Promise<void> {
    const untilReadyHere = () => untilReady(this.namespace, NAME, 180_000);
    const check = async () => {
      const stopping = (await podsOf(this.namespace, NAME)).some(({ metadata }) => metadata.deletionTimestamp);
      return stopping ? undefined : true;
    };
    await untilReadyHere();
    await eventually('stopping pods to be gone', 120_000, check, SELDOM_MS);
    // Again: right after a deletion the status was still that of before, and where pods start slowly the new one comes
    // after the old one has gone. The next disturbance would meet a fleet that lacks a pod.
    await untilReadyHere();
  }

  async remove(): Promise<void> {
    await kubectl(['delete', 'namespace', this.namespace, '--wait=false', '--ignore-not-found']);
  }

  async #startClient(name: string, ratePerS: number, secondsMax: number, ...args: string[]): Promise<void> {
    const requests = String(Math.min(ratePerS * secondsMax, REQUESTS_MAX));
    const bounds = ['--requests', requests, '--rate', String(ratePerS), '--max-seconds', String(2 * secondsMax)];
    const notes = ['--timeout', '30s', '--timeline', '--request-ids', name];
    this.#clients.push({ name, ...(await startLoad(this.namespace, name, [...bounds, ...notes, ...args])) });
    await eventually(`load pod ${name} to run`, 60_000, async () => {
      const { status } = await get<LivePod>('-n', this.namespace, 'pod', name);
      return status.phase === 'Running' || undefined;
    });
  }
}

/**
 * The same requests from when they were sent, not from when they were due: whoever has one connection falls behind
 * while answers are late, and would otherwise tell of nothing else for the rest of the run.
 */
function fromSending(timeline: TimelineEntry[]): TimelineEntry[] {
  let endMs = 0;
  return timeline.map(([dueAtMs, latencyMs, ...rest]) => {
    const sentAtMs = Math.max(dueAtMs, endMs);
    endMs = dueAtMs + latencyMs;
    // As precise as the client tells it, in spite of the subtraction.
    return [sentAtMs, Math.round((endMs - sentAtMs) * 10) / 10, ...rest];
  });
}

const volume = { name: 'app', configMap: { name: NAME } };

function worker() {
  return {
    name: 'worker',
    image: imageNames().storefront,
    command: ['node', '/app/blocker.mjs'],
    resources: { requests: { cpu: '20m', memory: '64Mi' } },
    volumeMounts: [{ name: 'app', mountPath: '/app' }],
  };
}
