/** What commands read from a cluster: objects as they are, as far as the user's rights go. */
import { Readable } from 'node:stream';
import type { V1Node, V1Pod, V1PodTemplateSpec } from '@kubernetes/client-node';
import type { Surroundings } from '../check/workload.ts';
import { isRecord, type Manifest, manifestOf } from '../convert/manifests.ts';
import { API_VERSION, isWorkerName, KIND, LABEL_RENDER_SERVICE, PLURAL } from '../src/api/names.ts';
import { parseQuantity } from '../src/api/scalars.ts';
import { PooledKubeConfig } from '../src/kube/config.ts';
import { collectionPath, type Kind, objectPath } from '../src/kube/kinds.ts';
import { APPLY_PATCH, ApiError, isNotFound, MERGE_PATCH, Rest } from '../src/kube/rest.ts';
import type { KubeObject } from '../src/kube/types.ts';
import { linesOf } from './run/each-line.ts';
import type { Subject } from './subject.ts';

/** Kinds that may stand around a Deployment or RenderService; the last ones are there where their operators are. */
const AROUND: [apiVersion: string, kind: string, plural: string][] = [
  ['v1', 'Service', 'services'],
  ['v1', 'PersistentVolumeClaim', 'persistentvolumeclaims'],
  ['v1', 'LimitRange', 'limitranges'],
  ['networking.k8s.io/v1', 'Ingress', 'ingresses'],
  ['autoscaling/v2', 'HorizontalPodAutoscaler', 'horizontalpodautoscalers'],
  ['policy/v1', 'PodDisruptionBudget', 'poddisruptionbudgets'],
  ['networking.k8s.io/v1', 'NetworkPolicy', 'networkpolicies'],
  ['keda.sh/v1alpha1', 'ScaledObject', 'scaledobjects'],
  ['autoscaling.k8s.io/v1', 'VerticalPodAutoscaler', 'verticalpodautoscalers'],
  ['cilium.io/v2', 'CiliumNetworkPolicy', 'ciliumnetworkpolicies'],
  ['crd.projectcalico.org/v1', 'NetworkPolicy', 'networkpolicies'],
  ['security.istio.io/v1', 'AuthorizationPolicy', 'authorizationpolicies'],
  ['security.istio.io/v1', 'PeerAuthentication', 'peerauthentications'],
  ['security.istio.io/v1', 'RequestAuthentication', 'requestauthentications'],
  ['policy.linkerd.io/v1beta3', 'Server', 'servers'],
  ['monitoring.coreos.com/v1', 'PodMonitor', 'podmonitors'],
  ['monitoring.coreos.com/v1', 'ServiceMonitor', 'servicemonitors'],
];
/** Of larger lists the first so many are read. */
const ITEMS_MAX = '500';
const BYTES_MAX = 32 * 1024 ** 2;
/** Of one pod; a line of an access log has some 600 bytes. */
const LOG_BYTES_MAX = 64 * 1024 ** 2;
const LOG_MS_MAX = 60_000;
/** An answer of those who say nothing of the object. */
const NO_ANSWER = [401, 429, 502, 503, 504];
/** Of a line; what a stranger may have in one is bounded by far less. */
const LINE_LENGTH_MAX = 8_192;

interface Items {
  items: Record<string, unknown>[];
}

/** An object that is not there yet; without a name it gets one. */
export interface Draft {
  apiVersion: string;
  kind: string;
  metadata: Partial<KubeObject['metadata']> & { generateName?: string };
  [field: string]: unknown;
}

/** A namespace of the user's cluster. */
export class Cluster {
  readonly namespace: string;
  readonly config: PooledKubeConfig;
  readonly #rest: Rest;

  /**
   * @param of another namespace's, whose connections it shares
   * @throws Error when there is no kubeconfig that could be used
   */
  constructor(namespace: string | undefined, of?: Cluster) {
    this.config = of?.config ?? userKubeConfig();
    this.namespace = namespace ?? this.config.getContextObject(this.config.getCurrentContext())?.namespace ?? 'default';
    this.#rest = of ? of.#rest : new Rest(this.config);
  }

  /** An object of the namespace. @throws Error that says what is missing */
  async get(apiVersion: string, kind: string, plural: string, name: string): Promise<Manifest> {
    try {
      const value = await this.#rest.request<Record<string, unknown>>('GET', this.#path(apiVersion, plural, name));
      return manifestOf({ ...value, apiVersion, kind }, `in the cluster`);
    } catch (error) {
      if (isNotFound(error)) throw new Error(`there is no ${kind} ${name} in namespace ${this.namespace}`);
      throw plain(error, `${kind} ${this.namespace}/${name} cannot be read`);
    }
  }

  /** Objects of the namespace. @throws Error that says what is missing */
  async list(
    apiVersion: string,
    kind: string,
    plural: string,
    query: Record<string, string> = {},
  ): Promise<Manifest[]> {
    const options = { query: { limit: ITEMS_MAX, ...query }, bytesMax: BYTES_MAX };
    try {
      const { items } = await this.#rest.request<Items>('GET', this.#path(apiVersion, plural), options);
      return items.map((item) => manifestOf({ ...item, apiVersion, kind }, 'in the cluster'));
    } catch (error) {
      throw plain(error, `${plural} of namespace ${this.namespace} cannot be listed`);
    }
  }

  /** Changes an object of the namespace by a merge patch. @throws Error that says what is missing */
  async patch(apiVersion: string, plural: string, name: string, body: object): Promise<void> {
    const options = { query: { fieldManager: 'corelane-cli' }, contentType: MERGE_PATCH, body };
    try {
      await this.#rest.request('PATCH', this.#path(apiVersion, plural, name), options);
    } catch (error) {
      throw plain(error, `${plural} ${this.namespace}/${name} cannot be changed`);
    }
  }

  /** The object, or undefined where there is none. @throws Error that says what is missing */
  async find(kind: Kind, name: string): Promise<KubeObject | undefined> {
    try {
      return await this.#rest.request<KubeObject>('GET', objectPath(kind, this.namespace, name));
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw plain(error, `${kind.kind} ${this.namespace}/${name} cannot be read`);
    }
  }

  /**
   * What the API server would make of an object of the namespace if it were applied. Nothing is written.
   * @throws ApiError with the API server's own words, Error that says what is missing
   */
  async dryRun(plural: string, draft: Draft): Promise<Draft> {
    const { apiVersion, kind, metadata } = draft;
    const place = { apiVersion, kind, plural };
    const query = { dryRun: 'All', fieldManager: 'corelane-cli', fieldValidation: 'Strict' };
    try {
      if (metadata.name === undefined)
        return await this.#rest.request<Draft>('POST', collectionPath(place, this.namespace), { query, body: draft });
      const path = objectPath(place, this.namespace, metadata.name);
      const options = { query: { ...query, force: 'true' }, contentType: APPLY_PATCH, body: draft };
      return await this.#rest.request<Draft>('PATCH', path, options);
    } catch (error) {
      if (error instanceof ApiError && !NO_ANSWER.includes(error.status)) throw error;
      throw plain(error, `the API server cannot be asked about ${kind}`);
    }
  }

  /** Objects of all namespaces, as they are. @throws Error that says what is missing */
  async listEverywhere(apiVersion: string, plural: string): Promise<Record<string, unknown>[]> {
    const options = { query: { limit: ITEMS_MAX }, bytesMax: BYTES_MAX };
    try {
      return (await this.#rest.request<Items>('GET', `${rootOf(apiVersion)}/${plural}`, options)).items;
    } catch (error) {
      throw plain(error, `${plural} of all namespaces cannot be listed`);
    }
  }

  /**
   * All objects around; of a kind that is not there, or may not be listed, none. `unread`: the latter kinds.
   * @param more kinds beside the usual ones
   */
  async around(
    more: typeof AROUND = [],
  ): Promise<{ manifests: Manifest[]; hasLimitRanges: boolean; unread: string[] }> {
    const unread: string[] = [];
    const groups = await this.#groups();
    const lists = await Promise.all(
      [...AROUND, ...more].map(
        async ([apiVersion, kind, plural]) =>
          await this.#listServed(servedOf(apiVersion, groups), kind, plural).catch((error: Error) => {
            if (statusOf(error) === 403) unread.push(kind);
            return ifNotAllowed(error);
          }),
      ),
    );
    const limitRanges = AROUND.findIndex(([, kind]) => kind === 'LimitRange');
    const hasLimitRanges = lists[limitRanges] !== undefined;
    return { manifests: lists.flatMap((list) => list ?? []), hasLimitRanges, unread: unread.sort() };
  }

  /** Versions of each API group that there is; undefined where the cluster does not say. */
  async #groups(): Promise<Map<string, string[]> | undefined> {
    type Groups = { groups: { name: string; versions: { version: string }[] }[] };
    const options = { bytesMax: BYTES_MAX };
    const found = await this.#rest.request<Groups>('GET', '/apis', options).catch(() => undefined);
    return found && new Map(found.groups.map(({ name, versions }) => [name, versions.map(({ version }) => version)]));
  }

  /** Objects of the first of these versions that has such a kind; undefined where none has. */
  async #listServed(apiVersions: string[], kind: string, plural: string): Promise<Manifest[] | undefined> {
    for (const apiVersion of apiVersions) {
      try {
        return await this.list(apiVersion, kind, plural);
      } catch (error) {
        if (statusOf(error as Error) !== 404) throw error;
      }
    }
    return undefined;
  }

  /** ConfigMaps that containers of a pod template get variables from. */
  async configMapsOf(workload: Manifest): Promise<Manifest[]> {
    const { template } = (workload.value.spec ?? {}) as { template?: V1PodTemplateSpec };
    const names = (template?.spec?.containers ?? []).flatMap(({ envFrom }) =>
      (envFrom ?? []).flatMap(({ configMapRef }) => configMapRef?.name ?? []),
    );
    const found = await Promise.all(
      [...new Set(names)].map((name) => this.get('v1', 'ConfigMap', 'configmaps', name).catch(() => undefined)),
    );
    return found.filter((one) => one !== undefined);
  }

  /** The nodes' allocatable CPUs; undefined where they may not be listed. */
  async nodes(): Promise<Surroundings['nodes']> {
    const options = { query: { limit: ITEMS_MAX }, bytesMax: BYTES_MAX };
    try {
      const { items } = await this.#rest.request<Items>('GET', '/api/v1/nodes', options);
      const nodes = (items as V1Node[]).filter(({ spec }) => !spec?.unschedulable);
      return nodes.map(({ metadata, status }) => ({
        name: `node ${metadata?.name}`,
        cpu: parseQuantity(status?.allocatable?.cpu ?? '') ?? 0,
      }));
    } catch (error) {
      return ifNotAllowed(plain(error, 'the nodes cannot be listed'));
    }
  }

  /**
   * Calls `onLine` for each line of a container's log of the last seconds, at most so many bytes of it.
   * @throws Error that says what is missing
   */
  async podLog(pod: string, container: string, sinceSeconds: number, onLine: (line: string) => void): Promise<void> {
    const query = { container, sinceSeconds: String(sinceSeconds), limitBytes: String(LOG_BYTES_MAX) };
    try {
      const signal = AbortSignal.timeout(LOG_MS_MAX);
      const bytes = await this.#rest.stream(`${this.#path('v1', 'pods', pod)}/log`, query, signal);
      await linesOf(Readable.from(bytes), LINE_LENGTH_MAX, onLine);
    } catch (error) {
      if (isNotFound(error)) throw new Error(`pod ${pod} is gone`);
      throw plain(error, `the log of ${container} of pod ${pod} cannot be read`);
    }
  }

  /** Closes the connections, so that the process can end. */
  async close(): Promise<void> {
    await this.config.close();
  }

  #path(apiVersion: string, plural: string, name?: string): string {
    const root = rootOf(apiVersion);
    const namespace = encodeURIComponent(this.namespace);
    return [root, 'namespaces', namespace, plural, ...(name === undefined ? [] : [encodeURIComponent(name)])].join('/');
  }
}

/**
 * The versions to ask for: the one that is known, then the others of its group, since a mesh may be old. None where the
 * group is not there: the API server would refuse those with few rights, as if they might not read what does not exist.
 */
function servedOf(apiVersion: string, groups: Map<string, string[]> | undefined): string[] {
  const [group = '', version] = apiVersion.split('/');
  if (version === undefined || groups === undefined) return [apiVersion];
  const versions = groups.get(group) ?? [];
  const inOrder = [...new Set([version, ...versions])].filter((one) => versions.includes(one));
  return inOrder.map((one) => `${group}/${one}`);
}

function rootOf(apiVersion: string): string {
  return apiVersion === 'v1' ? '/api/v1' : `/apis/${apiVersion}`;
}

/** A Deployment with what stands around it. */
export async function readDeployment(name: string, namespace: string | undefined) {
  const cluster = new Cluster(namespace);
  try {
    const deployment = await cluster.get('apps/v1', 'Deployment', 'deployments', name);
    // A Service may lead to pods of others, too.
    const { manifests, unread } = await cluster.around([['apps/v1', 'Deployment', 'deployments']]);
    const others = manifests.filter((one) => one.kind !== 'Deployment' || one.name !== name);
    const configMaps = await cluster.configMapsOf(deployment);
    const nodes = await cluster.nodes();
    const { namespace } = cluster;
    return { manifests: [deployment, ...others, ...configMaps], deployment, nodes, namespace, unread };
  } finally {
    await cluster.close();
  }
}

/** What is to be checked: one object, or all RenderServices of a namespace. */
export async function readSubjects(
  wanted: { kind?: string; name: string } | undefined,
  namespace: string | undefined,
): Promise<Subject[]> {
  const cluster = new Cluster(namespace);
  try {
    const found = await subjectsOf(cluster, wanted);
    const { manifests, hasLimitRanges } = await cluster.around();
    const nodes = await cluster.nodes();
    return await Promise.all(
      found.map(async (manifest) => ({
        manifest,
        others: [...manifests, ...(await cluster.configMapsOf(manifest))],
        known: {
          nodes,
          ...(hasLimitRanges && { limitRanges: valuesOf(manifests, 'LimitRange') }),
          ...(await running(cluster, manifest)),
        },
      })),
    );
  } finally {
    await cluster.close();
  }
}

async function subjectsOf(cluster: Cluster, wanted: { kind?: string; name: string } | undefined): Promise<Manifest[]> {
  if (wanted?.kind === 'Deployment') return [await cluster.get('apps/v1', 'Deployment', 'deployments', wanted.name)];
  if (wanted) return [await cluster.get(API_VERSION, KIND, PLURAL, wanted.name)];
  const all = await cluster.list(API_VERSION, KIND, PLURAL);
  if (all.length === 0)
    throw new Error(
      `there is no ${KIND} in namespace ${cluster.namespace}; name a Deployment, or another namespace with -n`,
    );
  return all;
}

/** What only a running one tells: images of its workers by id, and what the operator says of it. */
async function running(cluster: Cluster, { kind, name, value }: Manifest): Promise<Partial<Surroundings>> {
  if (kind !== KIND) return {};
  const labelSelector = `${LABEL_RENDER_SERVICE}=${name}`;
  const pods = await cluster.list('v1', 'Pod', 'pods', { labelSelector }).catch(ifNotAllowed);
  const images = (pods ?? []).flatMap(({ value: pod }) =>
    ((pod as V1Pod).status?.containerStatuses ?? [])
      .filter((status) => isWorkerName(status.name) && status.imageID)
      .map(({ image, imageID }) => ({ image, imageID })),
  );
  // Old and new pods of a rollout have different images rightly; only one name with two ids has moved.
  const names = new Set(images.map(({ image }) => image));
  const ids = new Set(images.map(({ imageID }) => imageID));
  const conditions = isRecord(value.status) ? value.status.conditions : undefined;
  return {
    ...(names.size === 1 && { runningImages: [...ids] }),
    ...(Array.isArray(conditions) && { conditions }),
  };
}

function valuesOf(manifests: Manifest[], wanted: string): Surroundings['limitRanges'] {
  return manifests.filter(({ kind }) => kind === wanted).map(({ value }) => value);
}

function userKubeConfig(): PooledKubeConfig {
  const config = new PooledKubeConfig();
  try {
    config.loadFromDefault();
  } catch (error) {
    throw new Error(`the kubeconfig cannot be read: ${(error as Error).message}`);
  }
  // What the library makes up where there is none.
  if (config.getCurrentCluster()?.server === 'http://localhost:8080')
    throw new Error('there is no kubeconfig: set KUBECONFIG, or make ~/.kube/config');
  if (!config.getCurrentCluster()) throw new Error('the current context of the kubeconfig names no cluster');
  return config;
}

/** A kind that the cluster has not, or a list that the user may not read, is not known; all else is an error. */
export function ifNotAllowed(error: Error): undefined {
  const status = statusOf(error);
  if (status === 403 || status === 404) return undefined;
  throw error;
}

function statusOf(error: Error): number | undefined {
  return (error.cause as ApiError | undefined)?.status;
}

/** The API server's own words, or those of the network. */
function plain(error: unknown, what: string): Error {
  const { message, cause } = error as Error;
  const said =
    error instanceof ApiError ? `${error.status} ${message.slice(0, 500)}` : cause ? `${message}: ${cause}` : message;
  return new Error(`${what}: ${said}`, { cause: error });
}
