/**
 * A shop whose dashboards have something to show: a real operator at a real API server, a real fleet that stands for
 * its pods (no kubelet runs here), and a Prometheus that scrapes both.
 */
import { ApiServer } from '../../operator/test/support/api-server.ts';
import { OperatorProcess } from '../../operator/test/support/operator-process.ts';
import { podTemplate, World } from '../../operator/test/support/world.ts';
import { OperatorPage } from '../alerts/fleet/operator-page.ts';
import { Prometheus, type Target } from '../alerts/fleet/prometheus.ts';
import { docker } from '../harness/engine/docker.ts';
import { Fleet } from '../harness/engine/fleet.ts';
import { type Pod, until } from '../harness/engine/pod.ts';
import { Mirror } from './mirror.ts';

/** An hour of the rules is a minute. */
export const TIMES = 60;
export const NAMESPACE = 'shop';
export const NAME = 'storefront';
/** One that cannot be carried out: a Service of its name belongs to somebody else. */
export const REFUSED = 'taken';

const PODS = 3;
const SPEC = {
  workersPerPod: 2,
  queue: { maxLength: 3, timeout: '8s' },
  watchdog: { stallTimeout: '1s', quarantine: { enabled: false } },
  cache: { enabled: true },
};
/** Of the operator only. */
const SCALING = { minReplicas: PODS, maxReplicas: PODS + 1, warmUp: '0s', occupancy: {} };
const OBJECTIVES = { availability: 99, latency: { p99: '500ms' } };

/** A pod of the API server. */
interface Named {
  name: string;
  revision: string;
}

/** A pod of the API server, and the one of the fleet that it stands for. */
interface Known extends Target {
  revision: string;
  place: Pod;
}

export class Shop {
  readonly world: World;
  readonly fleet: Fleet;
  readonly prometheus: Prometheus;
  readonly #page: OperatorPage;
  readonly #known: Known[];
  #operator: OperatorProcess;
  /** The operator's page, as it is, where Prometheus reaches it. */
  readonly #mirror: Mirror;

  private constructor(parts: {
    world: World;
    operator: OperatorProcess;
    fleet: Fleet;
    page: OperatorPage;
    prometheus: Prometheus;
    known: Known[];
  }) {
    this.world = parts.world;
    this.fleet = parts.fleet;
    this.prometheus = parts.prometheus;
    this.#known = parts.known;
    this.#operator = parts.operator;
    this.#page = parts.page;
    this.#mirror = new Mirror(
      () => `http://127.0.0.1:${this.#operator.metricsPort}/metrics`,
      (text) => parts.page.set(text),
    );
  }

  static async start(): Promise<Shop> {
    const server = await ApiServer.start('dashboards', { controllers: 'garbage-collector,deployment,replicaset' });
    const world = await World.create(server, NAMESPACE);
    const operator = await startOperator(world, 'operator-a');
    await world.admin.post(world.path('Service'), { metadata: { name: REFUSED }, spec: { ports: [{ port: 80 }] } });
    await world.createRenderService(REFUSED);
    await world.createRenderService(NAME, { ...SPEC, replicas: PODS, objectives: OBJECTIVES, scaling: SCALING });
    const pods = await until('there are pods', async () => {
      const found = await podsOf(world);
      return found.length === PODS ? found : undefined;
    });
    const fleet = await Fleet.start(PODS, SPEC, { revision: pods[0]?.revision as string });
    const known = await Promise.all(pods.map((one, index) => tellAddress(world, one, fleet.pods[index] as Pod)));
    const page = await OperatorPage.start(fleet.network, '');
    const address = await docker(
      ...['inspect', '--format', '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}', page.container],
    );
    const prometheus = await Prometheus.start(fleet.network, known, address, TIMES);
    return new Shop({ world, operator, fleet, page, prometheus, known });
  }

  /** Waits until Prometheus has scraped so many times more. */
  async scrapes(count: number): Promise<void> {
    const done = async () => (await this.prometheus.query('sum(count_over_time(up{job="corelane"}[1h]))'))[0] ?? 0;
    const before = await done();
    await until(`${count} scrapes`, async () => (await done()) >= before + count, 120_000);
  }

  /** Another template, and the first pod of its revision; the others stay. */
  async beginRollout(): Promise<void> {
    await this.world.patchSpec(NAME, { template: podTemplate({ image: 'corelane.test/app:2' }) });
    const before = this.#known[0]?.revision;
    const fresh = await until('there is a pod of the new revision', async () =>
      (await podsOf(this.world)).find(({ revision }) => revision !== before),
    );
    const pod = await this.fleet.add(SPEC, { revision: fresh.revision });
    this.#known.push(await tellAddress(this.world, fresh, pod));
    await this.prometheus.watch(this.#known);
  }

  /** A pod goes without a word; its target stays. */
  async losePod(): Promise<void> {
    const [lost] = this.fleet.pods.splice(0, 1);
    await lost?.stop();
  }

  /** The API server is killed and comes back; then the operator moves, as it does when it has lost the lead by that. */
  async interruptApi(meanwhile: () => Promise<unknown>): Promise<void> {
    await this.world.server.stop('by kill');
    await meanwhile();
    await this.world.server.comeBack();
    await this.#operator.stop();
    this.#operator = await startOperator(this.world, 'operator-b');
  }

  async stop(): Promise<void> {
    await this.#mirror.stop();
    await OperatorProcess.killAll();
    await this.prometheus.stop();
    await docker('rm', '--force', this.#page.container);
    await this.fleet.stop();
    await this.world.server.remove();
  }
}

async function startOperator(world: World, name: string): Promise<OperatorProcess> {
  const operator = await OperatorProcess.start({ ...world.settings(name), scalingPeriodSeconds: 1 });
  await operator.untilLeading(60_000);
  return operator;
}

async function podsOf(world: World): Promise<Named[]> {
  return (await world.list('Pod'))
    .filter(({ metadata }) => metadata.labels['corelane.dev/renderservice'] === NAME && !metadata.deletionTimestamp)
    .map(({ metadata }) => ({ name: metadata.name, revision: metadata.labels['corelane.dev/revision'] }));
}

/** Does kubelet's part: where the pod is, and that it is ready. */
async function tellAddress(world: World, { name, revision }: Named, place: Pod): Promise<Known> {
  const address = await place.address();
  const { spec } = await world.get('Pod', name);
  const containerStatuses = spec.containers.map((one: { name: string; image: string }) => ({
    ...{ name: one.name, image: one.image, imageID: one.image, ready: true, started: true },
    ...{ restartCount: 0, state: { running: {} } },
  }));
  const conditions = [{ type: 'Ready', status: 'True', lastTransitionTime: new Date().toISOString() }];
  await world.admin.patch(`${world.path('Pod', name)}/status`, {
    status: { phase: 'Running', podIP: address, podIPs: [{ ip: address }], conditions, containerStatuses },
  });
  return { pod: name, revision, address, place };
}
