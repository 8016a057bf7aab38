/** A service of a cluster, through the user's own kubeconfig: what `kubectl get` and `kubectl port-forward` may. */
import type { V1Pod } from '@kubernetes/client-node';
import { type EventObject, eventsOf, type ServiceEvent } from '../../live/events.ts';
import { type PodFigures, readFigures } from '../../live/figures.ts';
import type { Bounds, PodNow, PodState, Snapshot } from '../../live/snapshot.ts';
import { type RequestNow, readNow, readStalls, type Source, type WholeStall } from '../../live/source.ts';
import {
  API_VERSION,
  isWorkerName,
  KIND,
  LABEL_RENDER_SERVICE,
  LABEL_REVISION,
  NGINX_CONTAINER,
  PLURAL,
  PORTS,
} from '../../src/api/names.ts';
import { parseStored, type RenderServiceResource } from '../../src/api/resource.ts';
import { durationMs } from '../../src/api/scalars.ts';
import type { KubeObject } from '../../src/kube/types.ts';
import { podProblem } from '../../src/pods/problems.ts';
import { type Cluster, ifNotAllowed } from '../cluster.ts';
import { bodyText, getPodPage } from '../pod-page.ts';
import { takeProfile } from '../profile.ts';
import { isServing, podsOf } from '../profile-target.ts';
import { inTurn } from './in-turn.ts';

/** Pods that are asked in one look; of a larger fleet those that are ready first. */
export const PODS_MAX = 50;
/** Pods that are asked at the same time, two pages each. */
const AT_A_TIME = 8;
/** Both pages of a pod. */
const POD_SECONDS_MAX = 5;
/** A pod of 64 workers has 470 kB. */
const PAGE_BYTES_MAX = 2 * 1024 ** 2;
/** Of pods that a version without revisions has made. */
const LABEL_TEMPLATE = 'pod-template-hash';

function revisionOf({ metadata }: V1Pod): string {
  return metadata?.labels?.[LABEL_REVISION] ?? metadata?.labels?.[LABEL_TEMPLATE] ?? '';
}

export class ClusterSource implements Source {
  readonly #cluster: Cluster;
  readonly #name: string;
  readonly #podsMax: number;
  #uid: string | undefined;

  /** @param podsMax pods that are asked in one look */
  constructor(name: string, cluster: Cluster, podsMax = PODS_MAX) {
    this.#cluster = cluster;
    this.#name = name;
    this.#podsMax = podsMax;
  }

  async look(): Promise<Snapshot> {
    const { namespace } = this.#cluster;
    const { value } = await this.#cluster.get(API_VERSION, KIND, PLURAL, this.#name);
    const resource = value as unknown as RenderServiceResource;
    this.#uid = resource.metadata.uid;
    const labelSelector = `${LABEL_RENDER_SERVICE}=${this.#name}`;
    const pods = (await this.#cluster.list('v1', 'Pod', 'pods', { labelSelector }))
      .map((manifest) => manifest.value as unknown as V1Pod)
      .filter(isServing)
      .toSorted((one, other) => rank(one) - rank(other) || (nameOf(one) < nameOf(other) ? -1 : 1));
    const asked = pods.slice(0, this.#podsMax);
    return {
      name: this.#name,
      namespace,
      atMs: Date.now(),
      bounds: boundsOf(resource),
      status: resource.status ?? {},
      generation: resource.metadata.generation,
      pods: await inTurn(asked, AT_A_TIME, (pod) => this.#podNow(pod)),
      podsNotAsked: pods.length - asked.length,
    };
  }

  /** Pods whose containers run, or have run, those that serve first. @throws Error if there is no such service */
  async podNames(): Promise<string[]> {
    const pods = await podsOf(this.#cluster, this.#name);
    const started = pods.filter(({ status }) => status?.phase !== 'Pending');
    return started
      .toSorted((one, other) => rank(one) - rank(other))
      .slice(0, this.#podsMax)
      .map(nameOf);
  }

  async requests(pod: string, worker: number): Promise<RequestNow[]> {
    return readNow(await this.#page(pod, PORTS.firstWorkerRuntime + worker, '/now'));
  }

  async stalls(pod: string, worker: number): Promise<WholeStall[]> {
    return readStalls(await this.#page(pod, PORTS.firstWorkerRuntime + worker, '/stalls'));
  }

  profile(pod: string, worker: number, seconds: number): Promise<string> {
    const { namespace, config } = this.#cluster;
    return takeProfile(config, { namespace, pod, worker }, seconds);
  }

  async accessLog(pod: string, sinceSeconds: number, onLine: (line: string) => void): Promise<void> {
    await this.#cluster.podLog(pod, NGINX_CONTAINER, sinceSeconds, onLine);
  }

  async events(): Promise<ServiceEvent[] | undefined> {
    const selectors = {
      'involvedObject.kind': KIND,
      'involvedObject.name': this.#name,
      // One of the same name, which is gone, has left its own.
      ...(this.#uid !== undefined && { 'involvedObject.uid': this.#uid }),
    };
    const fieldSelector = Object.entries(selectors)
      .map((pair) => pair.join('='))
      .join(',');
    const found = await this.#cluster.list('v1', 'Event', 'events', { fieldSelector }).catch(ifNotAllowed);
    return found && eventsOf(found.map(({ value }) => value as unknown as EventObject));
  }

  async close(): Promise<void> {
    await this.#cluster.close();
  }

  async #podNow(pod: V1Pod): Promise<PodNow> {
    const state = stateOf(pod);
    const now = {
      name: nameOf(pod),
      revision: revisionOf(pod),
      state,
      ...(state !== 'leaving' && { problem: podProblem([pod as unknown as KubeObject], new Date()) }),
    };
    if (pod.status?.phase !== 'Running') return now;
    return this.#figures(pod).then(
      (figures) => ({ ...now, figures }),
      // One that is just starting, or going, has nothing to say yet, or any more.
      (error: Error) => (state === 'ready' ? { ...now, silence: error.message } : now),
    );
  }

  #figures(pod: V1Pod): Promise<PodFigures> {
    const names = (pod.spec?.containers ?? []).map(({ name }) => name).filter(isWorkerName);
    return readFigures((path) => this.#page(nameOf(pod), PORTS.stats, path), names, Date.now());
  }

  async #page(pod: string, port: number, path: string): Promise<string> {
    const { namespace, config } = this.#cluster;
    const { status, body } = await getPodPage(config, { namespace, pod, port, path, secondsMax: POD_SECONDS_MAX });
    const text = await bodyText(body, PAGE_BYTES_MAX);
    if (status !== 200) throw new Error(`${path} answers ${status}`);
    return text;
  }
}

function nameOf({ metadata }: V1Pod): string {
  return metadata?.name ?? '';
}

function stateOf({ metadata, status }: V1Pod): PodState {
  const is = (type: string, value: string) =>
    status?.conditions?.some((condition) => condition.type === type && condition.status === value) === true;
  if (status?.phase === 'Failed' || status?.phase === 'Succeeded') return 'ended';
  if (metadata?.deletionTimestamp) return 'leaving';
  if (is('Ready', 'True')) return 'ready';
  return is('PodScheduled', 'False') ? 'unscheduled' : 'not ready';
}

/** Those that serve first, then those that should. */
function rank(pod: V1Pod): number {
  return (['ready', 'not ready', 'unscheduled', 'leaving', 'ended'] as PodState[]).indexOf(stateOf(pod));
}

/** Of a spec that is no valid one only what it says. */
function boundsOf(resource: RenderServiceResource): Bounds {
  const parsed = parseStored(resource);
  if (!parsed.ok) return { queueLength: 0, latencyMs: {} };
  const { replicas, scaling, queue, concurrency, pooling, objectives } = parsed.renderService.spec;
  const latency = Object.entries(objectives?.latency ?? {}).filter((one): one is [string, string] => Boolean(one[1]));
  return {
    replicas,
    ...(scaling && { scaling: { min: scaling.minReplicas, max: scaling.maxReplicas } }),
    queueLength: queue.maxLength,
    ...(concurrency !== 'Auto' && { concurrency }),
    ...(pooling.enabled && { peersMax: pooling.maxPeers }),
    latencyMs: Object.fromEntries(latency.map(([name, time]) => [name, durationMs(time)])),
  };
}
