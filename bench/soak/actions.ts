/** Does what the sequence says. */
import { setTimeout as delay } from 'node:timers/promises';
import { corelane, kubectl } from '../../e2e/harness/cluster/cluster.ts';
import { killProxy, signalWorker } from '../../e2e/harness/cluster/processes.ts';
import { LABEL_RENDER_SERVICE, LABEL_SERVING } from '../../operator/src/api/names.ts';
import { collectionPath, type Kind as KubeKind, kinds, objectPath } from '../../operator/src/kube/kinds.ts';
import { ApiError } from '../../operator/src/kube/rest.ts';
import type { Api, Metadata } from './api.ts';
import type { Cluster } from './cluster.ts';
import { foreignService, HONEST_SPEC, REFUSED, renderService, template } from './manifests.ts';
import { type Action, BROKEN, HONEST, type Kind, type Service } from './sequence.ts';
import type { Resource } from './standing.ts';

const STRATEGIC_PATCH = 'application/strategic-merge-patch+json';
/** In the middle of a change of pods. */
const AMID_MS = { min: 500, more: 5_000 };
/** What the operator would have taken by mistake it takes at once. */
const LEFT_ALONE_MS = 3_000;

/** What must hold in the end beside the status; looked at until it does. */
export type Also = () => Promise<boolean>;

interface Live {
  metadata: Metadata;
  spec?: { replicas?: number; template?: { spec: { containers: { name: string }[] } } };
  data?: unknown;
}

/** Of an action with a RenderService. */
interface Turn {
  service: Service;
  chance: number;
  path: string;
  queueLength: number;
}

const pathOf = ({ namespace, name }: Pick<Service, 'namespace' | 'name'>) =>
  objectPath(kinds.renderService, namespace, name);

export class Actions {
  readonly #api: Api;
  readonly #cluster: Cluster;
  readonly #image: string;

  /** @param image of the workers */
  constructor(api: Api, cluster: Cluster, image: string) {
    this.#api = api;
    this.#cluster = cluster;
    this.#image = image;
  }

  /**
   * Does it. Resolves with what must hold in the end beside the status.
   * @throws Error when it cannot be done, or something came of it that must not
   */
  async do({ kind, service, chance, queueLength = 0 }: Action): Promise<Also | undefined> {
    if (!service) return await this.#disturb(kind, chance);
    const turn = { service, chance, queueLength, path: pathOf(service) };
    const base = kind.replace('honest: ', '');
    if (base === 'write into an owned object') return await this.#writeIntoOwned(turn);
    if (base === 'delete an owned object') return await this.#deleteOwned(turn);
    if (base === 'live setting') return await this.#live(turn, kind.startsWith('honest: '));
    if (base.startsWith('create')) return await this.#create(kind, turn);
    if (base.startsWith('change to ')) {
      const broken = BROKEN.find((how) => base.endsWith(how));
      return await this.#patch(turn, { template: template(this.#image, service.version, broken) });
    }
    return await this.#toService(base, turn);
  }

  /** Creates an honest RenderService. */
  async createHonest(service: Service): Promise<void> {
    const resource = renderService(service, this.#image, undefined, HONEST_SPEC);
    await this.#api.create(collectionPath(kinds.renderService, service.namespace), resource);
  }

  async #disturb(kind: Kind, chance: number): Promise<undefined> {
    if (kind === 'leader deleted') await this.#cluster.deleteLeader();
    else if (kind === 'operator killed') await this.#cluster.killLeader();
    else if (kind === 'API server killed') await this.#cluster.killApiServer();
    else if (kind === 'etcd frozen') await this.#cluster.freezeEtcd(chance);
    else if (kind === 'CoreDNS restarted') await this.#cluster.restartCoreDns();
    else if (kind === 'node drained') await this.#cluster.drainNode(chance);
    return undefined;
  }

  async #toService(base: string, turn: Turn): Promise<undefined> {
    const { service, chance, path } = turn;
    const good = { template: template(this.#image, service.version) };
    const amid = () => delay(AMID_MS.min + chance * AMID_MS.more);
    const does: Record<string, () => Promise<unknown>> = {
      'rolling change': () => this.#patch(turn, good),
      'change amid a change': async () => {
        await this.#patch(turn, { template: template(this.#image, -service.version) });
        await amid();
        await this.#patch(turn, good);
      },
      'change, refused': () => this.#refused('PATCH', path, chance, (spec) => ({ spec })),
      undo: () => this.#undo(service),
      mend: () => this.#patch(turn, good),
      pause: () => this.#patch(turn, { ...good, rollout: { paused: true } }),
      resume: () => this.#patch(turn, { rollout: { paused: false } }),
      scale: () => this.#patch(turn, { replicas: service.replicas }),
      delete: () => this.#api.delete(path),
      'delete amid a change': async () => {
        await this.#patch(turn, good);
        await amid();
        await this.#api.delete(path);
      },
      'delete and make again': async () => {
        await this.#api.delete(path);
        await this.#createService(service);
      },
      'name given free': () => this.#api.delete(objectPath(kinds.service, service.namespace, service.name)),
      'name taken, delete': () => this.#deleteBesideForeign(service),
      'pod deleted': () => this.#deletePod(turn, {}),
      'pod killed': () => this.#deletePod(turn, { gracePeriodSeconds: 0 }),
      'worker killed': async () => signalWorker(service.namespace, await this.#podOf(turn), 'KILL'),
      'HAProxy killed': async () => killProxy(service.namespace, await this.#podOf(turn), 'haproxy', 'head'),
      'nginx killed': async () => killProxy(service.namespace, await this.#podOf(turn), 'nginx', 'tail'),
    };
    const work = does[base];
    if (!work) throw new Error(`nobody knows how to do: ${base}`);
    await work();
    return undefined;
  }

  async #patch({ path }: Turn, spec: object): Promise<undefined> {
    await this.#api.patch(path, { spec });
    return undefined;
  }

  /** The other honest one has it as well: pods that run get it, so nobody's memory begins anew. */
  async #live(turn: Turn, isHonest: boolean): Promise<undefined> {
    const spec = { queue: { maxLength: turn.queueLength } };
    if (isHonest) await this.#api.patch(pathOf(HONEST.steady), { spec });
    return await this.#patch(turn, spec);
  }

  async #create(kind: Kind, { service, chance }: Turn): Promise<undefined> {
    const { namespace } = service;
    if (kind === 'create, refused') {
      const whole = renderService(service, this.#image) as { spec: object };
      const body = (spec: object) => ({ ...whole, spec: { ...whole.spec, ...spec } });
      await this.#refused('POST', collectionPath(kinds.renderService, namespace), chance, body);
      return undefined;
    }
    if (kind === 'create, name taken') {
      await this.#api.create(collectionPath(kinds.service, namespace), foreignService(service));
    }
    const broken = BROKEN.find((how) => kind.endsWith(how));
    await this.#createService(service, broken);
    return undefined;
  }

  async #createService(service: Service, broken?: (typeof BROKEN)[number]): Promise<void> {
    const collection = collectionPath(kinds.renderService, service.namespace);
    await this.#api.create(collection, renderService(service, this.#image, broken));
  }

  /** The API server must say no, and to what. */
  async #refused(
    method: 'POST' | 'PATCH',
    path: string,
    chance: number,
    bodyOf: (spec: object) => object,
  ): Promise<void> {
    const [spec, says] = REFUSED[Math.floor(chance * REFUSED.length)] as [object, string];
    const contentType = method === 'PATCH' ? { contentType: 'application/merge-patch+json' } : {};
    const error = await this.#api.request(method, path, { body: bodyOf(spec), ...contentType }).then(
      () => undefined,
      (reason: unknown) => reason,
    );
    if (error instanceof ApiError && error.status === 422 && error.message.includes(says)) return;
    throw new Error(`${JSON.stringify(spec)} was not refused with a word of ${says}: ${error ?? 'it was taken'}`);
  }

  async #undo({ namespace, name }: Service): Promise<void> {
    await corelane(['rollout', 'undo', name, '-n', namespace]);
  }

  /** Whose name was taken leaves the other one alone when it goes. */
  async #deleteBesideForeign(service: Service): Promise<void> {
    const path = objectPath(kinds.service, service.namespace, service.name);
    const before = await this.#api.find<Live>(path);
    await this.#api.delete(pathOf(service));
    await delay(LEFT_ALONE_MS);
    const after = await this.#api.find<Live>(path);
    await this.#api.delete(path);
    if (!before || contentOf(before) !== contentOf(after) || before.metadata.uid !== after?.metadata.uid) {
      throw new Error(`Service ${service.namespace}/${service.name} of somebody else did not stay as it was`);
    }
  }

  async #deletePod(turn: Turn, options: object): Promise<void> {
    const { namespace } = turn.service;
    await this.#api.delete(objectPath(kinds.pod, namespace, await this.#podOf(turn)), options);
  }

  /** Name of a pod that gets requests. */
  async #podOf({ service, chance }: Turn): Promise<string> {
    const selector = `${LABEL_RENDER_SERVICE}=${service.name},${LABEL_SERVING}!=false`;
    const ready = ['get', 'pods', '-l', selector, '--field-selector=status.phase=Running', '-o', 'name'];
    const names = (await kubectl(['-n', service.namespace, ...ready])).split('\n').filter(Boolean).toSorted();
    const all = await this.#api.metadata(collectionPath(kinds.pod, service.namespace), selector);
    const staying = all.filter(({ deletionTimestamp, name }) => !deletionTimestamp && names.includes(`pod/${name}`));
    const chosen = staying[Math.floor(chance * staying.length)];
    if (!chosen) throw new Error(`${service.namespace}/${service.name} has no pod that runs`);
    return chosen.name;
  }

  /** Objects of a RenderService that are there as long as it is, the Deployment of its present revision first. */
  async #ownedBy({ service: { namespace, name }, path }: Turn): Promise<{ kind: KubeKind; path: string }[]> {
    const { status } = await this.#api.request<Resource>('GET', path);
    const object = (kind: KubeKind, of: string) => ({ kind, path: objectPath(kind, namespace, of) });
    return [
      object(kinds.deployment, `${name}-${status?.rollout?.revision}`),
      object(kinds.service, name),
      object(kinds.podDisruptionBudget, name),
      object(kinds.configMap, `${name}-live`),
      object(kinds.service, `${name}-peers`),
      object(kinds.networkPolicy, name),
      object(kinds.secret, `${name}-peers`),
    ];
  }

  async #writeIntoOwned(turn: Turn): Promise<Also> {
    const owned = await this.#ownedBy(turn);
    const writes: [index: number, body: (live: Live) => object, contentType?: string][] = [
      [0, ({ spec }) => ({ spec: { replicas: (spec?.replicas ?? 0) + 1 } })],
      [0, () => ({ spec: { replicas: 0 } })],
      [0, foreignImage, STRATEGIC_PATCH],
      [1, () => ({ spec: { selector: { [LABEL_RENDER_SERVICE]: 'nobody' } } })],
      [2, () => ({ spec: { maxUnavailable: 0 } })],
      [3, () => ({ data: { settings: 'nonsense' } })],
    ];
    const [index, bodyOf, contentType] = writes[Math.floor(turn.chance * writes.length)] as (typeof writes)[number];
    const { path } = owned[index] as { path: string };
    const before = await this.#api.request<Live>('GET', path);
    await this.#api.patch(path, bodyOf(before), contentType);
    return async () => contentOf(await this.#api.find<Live>(path)) === contentOf(before);
  }

  async #deleteOwned(turn: Turn): Promise<Also> {
    const owned = await this.#ownedBy(turn);
    const { kind, path } = owned[Math.floor(turn.chance * owned.length)] as (typeof owned)[number];
    const uid = async () => {
      const collection = collectionPath(kind, turn.service.namespace);
      const all = await this.#api.metadata(collection, `${LABEL_RENDER_SERVICE}=${turn.service.name}`);
      return all.find(({ name }) => path.endsWith(`/${name}`))?.uid;
    };
    const before = await uid();
    if (before === undefined) throw new Error(`there is no ${path}`);
    await this.#api.delete(path);
    // Nobody may watch Secrets: it comes with the next pods, or within ten minutes. What is done next must not mind.
    if (kind === kinds.secret) return async () => true;
    return async () => ![undefined, before].includes(await uid());
  }
}

const contentOf = (live: Live | undefined) => JSON.stringify([live?.spec, live?.data]);

function foreignImage({ spec }: Live): object {
  const [first] = spec?.template?.spec.containers ?? [];
  return { spec: { template: { spec: { containers: [{ name: first?.name, image: 'registry.invalid/other:1' }] } } } };
}
