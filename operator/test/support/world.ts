/** What an api test file works in: a namespace, the operator's rights in it, an operator, and ways to look. */
import { rules } from '../../src/kube/rbac.ts';
import { type ApiClient, type Json, type KindName, pathOf } from './api-client.ts';
import { ApiServer } from './api-server.ts';
import { eventually } from './eventually.ts';
import type { Kubectl } from './kubectl.ts';
import { OperatorProcess } from './operator-process.ts';

const RBAC = 'rbac.authorization.k8s.io';

/** The API server that all files share. */
export function sharedServer(): ApiServer {
  const { CORELANE_TEST_SERVER: name, CORELANE_TEST_KUBECONFIG: kubeconfig } = process.env;
  if (!name || !kubeconfig) throw new Error('no API server: these tests run in the api project of jest.config.mjs');
  return new ApiServer(name, kubeconfig);
}

/** A namespace on a server. */
export class World {
  readonly server: ApiServer;
  readonly namespace: string;
  readonly admin: ApiClient;
  readonly kubectl: Kubectl;

  constructor(server: ApiServer, namespace: string) {
    this.server = server;
    this.namespace = namespace;
    this.admin = server.admin();
    this.kubectl = server.kubectl(namespace);
  }

  /**
   * A namespace in which user `operator` may do exactly what the chart would allow: `namespace` as in an installation
   * for one namespace, `cluster` as in one for all.
   */
  static async create(server: ApiServer, namespace: string, scope: 'namespace' | 'cluster' = 'namespace') {
    const world = new World(server, namespace);
    await world.admin.post('/api/v1/namespaces', { metadata: { name: namespace } });
    if (scope === 'namespace') {
      await world.#allowInNamespace('corelane', [...rules.namespaced, ...rules.ownNamespace]);
    } else {
      await world.#allowInNamespace('corelane', rules.ownNamespace);
      await world.#allowInCluster();
    }
    return world;
  }

  /** The same rights in another namespace, as with a list of namespaces in the chart. */
  async alsoIn(namespace: string): Promise<World> {
    const other = new World(this.server, namespace);
    await other.admin.post('/api/v1/namespaces', { metadata: { name: namespace } });
    await other.#allowInNamespace('corelane', rules.namespaced);
    return other;
  }

  /** Settings of an operator for this namespace only. */
  settings(podName: string) {
    return {
      kubeconfig: this.server.operatorKubeconfig,
      podName,
      podNamespace: this.namespace,
      namespace: this.namespace,
    };
  }

  /** An operator for this namespace that leads. `readyMs`: how long it may read what there is. */
  async startOperator(podName = 'operator-0', readyMs?: number): Promise<OperatorProcess> {
    const operator = await OperatorProcess.start(this.settings(podName), readyMs);
    await operator.untilLeading();
    return operator;
  }

  path(kind: KindName, name?: string): string {
    return pathOf(kind, this.namespace, name);
  }

  /** The object, which must exist. */
  get(kind: KindName, name: string): Promise<Json> {
    return this.admin.get(this.path(kind, name));
  }

  /** The object, or undefined. */
  find(kind: KindName, name: string): Promise<Json | undefined> {
    return this.admin.find(this.path(kind, name));
  }

  /** The Deployment of the revision that a RenderService asks for, which must exist. */
  async deployment(name: string): Promise<Json> {
    const [newest] = await this.deployments(name);
    if (!newest) throw new Error(`${name} has no Deployment`);
    return newest;
  }

  /** Deployments of a RenderService, the one of the newest revision first. */
  async deployments(name: string): Promise<Json[]> {
    const numberOf = ({ metadata }: Json) => Number(metadata.annotations?.['corelane.dev/revision-number'] ?? 0);
    const all = (await this.list('Deployment')).filter(
      ({ metadata }) => metadata.labels?.['corelane.dev/renderservice'] === name && !metadata.deletionTimestamp,
    );
    return all.toSorted((one, other) => numberOf(other) - numberOf(one));
  }

  async deploymentPath(name: string): Promise<string> {
    return this.path('Deployment', (await this.deployment(name)).metadata.name);
  }

  async list(kind: KindName): Promise<Json[]> {
    return (await this.admin.get(this.path(kind))).items;
  }

  /** Creates a RenderService. `spec` is what it has beside a template with one worker. */
  async createRenderService(name: string, spec: object = {}): Promise<Json> {
    return await this.admin.post(this.path('RenderService'), renderService(this.namespace, name, spec));
  }

  patchSpec(name: string, spec: object): Promise<Json> {
    return this.admin.patch(this.path('RenderService', name), { spec });
  }

  /** Condition of a RenderService by its type. */
  async condition(name: string, type: string): Promise<Json> {
    const { status } = await this.get('RenderService', name);
    return status?.conditions?.find((condition: Json) => condition.type === type);
  }

  /** Waits until the status speaks about the newest spec and all objects are there. */
  async untilApplied(name: string): Promise<Json> {
    return await eventually(`RenderService ${name} is applied`, async () => {
      const resource = await this.get('RenderService', name);
      expect(resource.status?.observedGeneration).toBe(resource.metadata.generation);
      const stalled = resource.status.conditions.find((condition: Json) => condition.type === 'Stalled');
      expect(stalled).toMatchObject({ status: 'False' });
      await this.deployment(name);
      return resource;
    });
  }

  /** Events about a RenderService. */
  async events(name: string): Promise<Json[]> {
    return (await this.list('Event')).filter(
      ({ regarding }) => regarding?.kind === 'RenderService' && regarding.name === name,
    );
  }

  /** Resource versions of all objects that a RenderService owns, and of itself. */
  async resourceVersions(): Promise<Record<string, string>> {
    const kinds: KindName[] = [
      'RenderService',
      'Deployment',
      'ConfigMap',
      'Service',
      'PodDisruptionBudget',
      'NetworkPolicy',
    ];
    const lists = await Promise.all(kinds.map((kind) => this.list(kind)));
    return Object.fromEntries(
      lists.flatMap((items, index) =>
        items.map(({ metadata }) => [`${kinds[index]}/${metadata.name}`, metadata.resourceVersion]),
      ),
    );
  }

  /**
   * Does kubelet's part: says of every pod of a RenderService that it is ready, once. The rest, up to the Deployment's
   * status, is done by the real controllers.
   */
  async makePodsReady(name: string): Promise<void> {
    const pods = (await this.list('Pod')).filter(
      ({ metadata, status }) =>
        metadata.labels['corelane.dev/renderservice'] === name &&
        !metadata.deletionTimestamp &&
        status?.phase !== 'Failed' &&
        !isReady(status),
    );
    await this.makeReady(pods);
  }

  /**
   * The same for these pods, however often it is called.
   * @param initContainerStatuses what it says of their proxies
   */
  async makeReady(pods: Json[], initContainerStatuses: object[] = []): Promise<void> {
    await Promise.all(
      pods.map(({ metadata, spec }) =>
        this.admin.patch(`${this.path('Pod', metadata.name)}/status`, {
          status: {
            phase: 'Running',
            conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: new Date().toISOString() }],
            containerStatuses: spec.containers.map((container: Json) => containerStatus(container)),
            initContainerStatuses,
          },
        }),
      ),
    );
  }

  async #allowInNamespace(name: string, policy: unknown): Promise<void> {
    await this.admin.post(this.path('Role'), { metadata: { name }, rules: policy });
    await this.admin.post(this.path('RoleBinding'), binding(name, 'Role'));
  }

  async #allowInCluster(): Promise<void> {
    const root = `/apis/${RBAC}/v1`;
    await this.admin.post(`${root}/clusterroles`, { metadata: { name: 'corelane' }, rules: rules.namespaced });
    await this.admin.post(`${root}/clusterrolebindings`, binding('corelane', 'ClusterRole'));
  }
}

function binding(name: string, kind: 'Role' | 'ClusterRole') {
  return {
    metadata: { name },
    roleRef: { apiGroup: RBAC, kind, name },
    subjects: [{ apiGroup: RBAC, kind: 'User', name: 'operator' }],
  };
}

function isReady(status: Json): boolean {
  return status?.conditions?.some(({ type, status }: Json) => type === 'Ready' && status === 'True') ?? false;
}

function containerStatus({ name, image }: Json) {
  return { name, image, imageID: image, ready: true, started: true, restartCount: 0, state: { running: {} } };
}

/** The smallest RenderService, with `spec` over it. */
export function renderService(namespace: string, name: string, spec: object = {}): Json {
  return {
    apiVersion: 'corelane.dev/v1alpha1',
    kind: 'RenderService',
    metadata: { name, namespace },
    spec: { template: podTemplate(), ...spec },
  };
}

/** A template with one worker; `container` and `pod` come over it. */
export function podTemplate(container: object = {}, pod: object = {}): Json {
  return { spec: { containers: [{ name: 'worker', image: 'corelane.test/app:1', ...container }], ...pod } };
}
