/**
 * `helm upgrade` under load: no pod restarts by itself, services get another sidecar image one after the other, one
 * that is broken stops at the first of them, `helm rollback` brings that one back, and no request is lost in all of it.
 * SERVICES=20 tries it with as many, for docs/upgrades.md.
 *
 * A load test: no request may fail for minutes.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { figure } from '../../operator/test/support/figure.ts';
import { apply, eventually, get, KUBECONFIG, kubectl, SELDOM_MS } from '../harness/cluster/cluster.ts';
import { type Load, type LoadResult, lost, startLoad } from '../harness/cluster/load.ts';
import { imageNames, installOperator, OPERATOR_NAMESPACE } from '../harness/cluster/operator.ts';
import { deploymentOf, type LiveDeployment, type LivePod, untilReady } from '../harness/cluster/renderservice.ts';
import { ROOT, run } from '../harness/cluster/shell.ts';

const NAMESPACE = 'upgrade-story';
const COUNT = Number(process.env.SERVICES ?? 4);
const SERVICES = Array.from({ length: COUNT }, (_unused, index) => `service-${String(index + 1).padStart(2, '0')}`);
const FIRST = SERVICES[0] as string;
const OTHERS = SERVICES.slice(1);
const PAUSE_S = 3;
/** Of each service; two cores have to carry all of them, and the clients. */
const RATE_PER_S = Math.max(2, 20 / COUNT);
/** One after the other takes a while. */
const ALL_MS_MAX = 180_000 + COUNT * 60_000;
/** The clients are stopped before. */
const SECONDS_MAX = 3_000;

interface Conditions {
  metadata: { name: string };
  status?: { conditions?: { type: string; reason: string; lastTransitionTime: string }[] };
}

const loads: Load[] = [];
/** Of clients that have ended before the others. */
const results: LoadResult[] = [];

/** Says which sidecar image another version of the operator has. */
const upgradeTo = (tag: string) =>
  installOperator(`dataPlaneRollout.pauseBetween=${PAUSE_S}s`, `sidecar.image.tag=${tag}`);

/** The Deployments of the revisions that they ask for. */
const newest = (names: string[]): Promise<LiveDeployment[]> =>
  Promise.all(names.map((name) => deploymentOf(NAMESPACE, name)));

/** What they say of their data plane, in the order of SERVICES. */
async function current() {
  const { items } = await get<{ items: Conditions[] }>('-n', NAMESPACE, 'renderservices');
  const resources = SERVICES.map((name) => items.find(({ metadata }) => metadata.name === name) as Conditions);
  return resources.map(({ status }) => status?.conditions?.find(({ type }) => type === 'DataPlaneCurrent'));
}

async function untilReasons(what: string, first: string, others: string, timeoutMs = ALL_MS_MAX): Promise<void> {
  const wanted = SERVICES.map((name) => (name === FIRST ? first : others));
  await eventually(
    what,
    timeoutMs,
    async () => {
      const now = (await current()).map((one) => one?.reason).join();
      if (now !== wanted.join()) throw new Error(now);
      return true;
    },
    SELDOM_MS,
  );
}

const untilUpToDate = () => untilReasons('all to be up to date', 'UpToDate', 'UpToDate');

/** Names of the pods of these services that get requests, without those that are on their way out. */
async function podNames(names: string[]): Promise<string[]> {
  const selector = `corelane.dev/renderservice in (${names.join()}),corelane.dev/serving!=false`;
  const { items } = await get<{ items: LivePod[] }>('-n', NAMESPACE, 'pods', '-l', selector);
  const stay = items.filter(({ metadata }) => !metadata.deletionTimestamp);
  return stay.map(({ metadata }) => metadata.name).toSorted();
}

/** The sidecar image of this clone under another tag. */
function sidecarAs(tag: string): string {
  const image = imageNames().sidecar;
  return `${image.slice(0, image.lastIndexOf(':'))}:${tag}`;
}

/** Gives the sidecar image another name on every node: what another version of it would be. */
async function nameSidecar(tag: string): Promise<void> {
  const { items } = await get<{ items: { metadata: { name: string } }[] }>('nodes');
  for (const { metadata } of items) {
    const ctr = ['exec', metadata.name, 'ctr', '--namespace', 'k8s.io', 'images', 'tag', '--force'];
    await run('docker', [...ctr, imageNames().sidecar, sidecarAs(tag)], { timeoutMs: 60_000 });
  }
}

/** Puts one onto the nodes whose proxies start, and end after so many seconds. */
async function makeFailing(tag: string, seconds: number): Promise<void> {
  // What copies the worker runtime runs to its end.
  const script = `[[ $1 =~ ^(haproxy|nginx)$ ]] || exec corelane-entrypoint "$@"; corelane-entrypoint "$@" & sleep ${seconds}; exit 1`;
  const entrypoint = JSON.stringify(['bash', '-c', script, tag]);
  const input = `FROM ${imageNames().sidecar}\nENTRYPOINT ${entrypoint}\n`;
  await run('docker', ['build', '--tag', sidecarAs(tag), '-'], { input });
  await run('e2e/cluster/load-image.sh', [sidecarAs(tag)]);
  await run('docker', ['image', 'rm', sidecarAs(tag)]);
}

function service(name: string): object {
  const volume = { name: 'app', configMap: { name: 'app' } };
  const worker = {
    ...{ name: 'worker', image: imageNames().storefront, command: ['node', '/app/blocker.mjs'] },
    env: [{ name: 'RENDER_MS', value: '20' }],
    resources: { requests: { cpu: '20m', memory: '64Mi' } },
    volumeMounts: [{ name: 'app', mountPath: '/app' }],
  };
  const small = { cpu: '10m' };
  return {
    apiVersion: 'corelane.dev/v1alpha1',
    kind: 'RenderService',
    metadata: { name, namespace: NAMESPACE },
    spec: {
      replicas: COUNT > 8 ? 1 : 2,
      workersPerPod: 1,
      queue: { maxLength: 500, timeout: '20s' },
      sidecar: { nginx: small, haproxy: small },
      rollout: { rolling: { maxSurge: 1, progressDeadlineSeconds: 30 } },
      template: { spec: { containers: [worker], volumes: [volume] } },
    },
  };
}

function startClient(name: string): Promise<Load> {
  const url = `http://${name}.${NAMESPACE}.svc.cluster.local./`;
  const requests = Math.floor(0.9 * RATE_PER_S * SECONDS_MAX);
  const bounds = ['--requests', `${requests}`, '--rate', `${RATE_PER_S}`, '--max-seconds', `${SECONDS_MAX}`];
  return startLoad(NAMESPACE, `load-${name}`, ['--url', url, ...bounds, '--timeout', '30s']);
}

beforeAll(async () => {
  await installOperator(`dataPlaneRollout.pauseBetween=${PAUSE_S}s`);
  await kubectl(['delete', 'namespace', NAMESPACE, '--ignore-not-found'], { timeoutMs: 240_000 });
  await apply(JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } }));
  const data = { 'blocker.mjs': readFileSync(join(ROOT, 'e2e/harness/cluster/blocker.mjs'), 'utf8') };
  const metadata = { name: 'app', namespace: NAMESPACE };
  const items = [{ apiVersion: 'v1', kind: 'ConfigMap', metadata, data }, ...SERVICES.map(service)];
  await apply(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
  for (const name of SERVICES) await untilReady(NAMESPACE, name, ALL_MS_MAX);
  for (const name of SERVICES) loads.push(await startClient(name));
}, 600_000 + ALL_MS_MAX);

afterAll(async () => {
  await kubectl(['delete', 'namespace', NAMESPACE, '--wait=false', '--ignore-not-found']);
  await installOperator();
}, 300_000);

test(
  'another sidecar image: one service after the other, each when the one before has been healthy',
  async () => {
    await untilUpToDate();
    const before = await podNames(SERVICES);
    await nameSidecar('next');
    const startMs = Date.now();
    await upgradeTo('next');
    // Until the new operator has looked at them, they say what the one before has seen.
    await eventually('the first to get its turn', 120_000, async () => {
      const { metadata } = await deploymentOf(NAMESPACE, FIRST);
      return metadata.annotations['corelane.dev/renewed'];
    });
    await untilUpToDate();
    figure(`time to upgrade ${COUNT} services to another sidecar image`, (Date.now() - startMs) / 1_000, 's');
    expect((await podNames(SERVICES)).filter((name) => before.includes(name))).toEqual([]);
    const said = await current();
    const turns = (await newest(SERVICES)).map(({ metadata }, index) => ({
      begunMs: Date.parse(metadata.annotations['corelane.dev/renewed'] ?? ''),
      healthyMs: Date.parse(said[index]?.lastTransitionTime ?? ''),
    }));
    const pausesMs = turns.slice(1).map(({ begunMs }, index) => begunMs - (turns[index]?.healthyMs ?? Number.NaN));
    figure('shortest pause between two services', Math.min(...pausesMs) / 1_000, 's', `>= ${PAUSE_S} s`);
    const early = turns.filter(({ begunMs }, index) => {
      const previous = turns[index - 1];
      return previous !== undefined && !(begunMs >= previous.healthyMs + PAUSE_S * 1_000);
    });
    expect(early).toEqual([]);
  },
  600_000 + ALL_MS_MAX,
);

/** How long the containers of a sidecar image live that starts and fails. */
const LIFE_S = 12;

describe('a sidecar image stops at the first service, and helm rollback brings that one back and touches no other', () => {
  test.each([
    // No node has it, and there is no registry to get it from.
    ['that no node can get', 'broken', async () => {}],
    [
      'that starts, and fails as soon as pods are ready with it',
      'failing',
      async () => {
        await makeFailing('failing', LIFE_S);
        // While such pods are ready they get requests, and lose those that they have when they end.
        results.push(await (loads.shift() as Load).stop());
        // What lives for less is no pod that an old one may go for.
        const spec = { rollout: { rolling: { minReadySeconds: LIFE_S + 3 } } };
        const patch = ['patch', 'renderservice', FIRST, '--type=merge', '-p', JSON.stringify({ spec })];
        await kubectl(['-n', NAMESPACE, ...patch]);
      },
    ],
  ])(
    'one %s',
    async (_what, tag, prepare) => {
      await prepare();
      await untilUpToDate();
      const [first, others] = [await podNames([FIRST]), await podNames(OTHERS)];
      const generations = async () => (await newest(OTHERS)).map(({ metadata }) => metadata.generation);
      const before = await generations();
      await kubectl(['-n', NAMESPACE, 'delete', 'events', '--field-selector', 'reason=DataPlaneFailed']);
      await upgradeTo(tag);
      await untilReasons('it to stop', 'Failed', 'Held');
      await eventually('an Event that tells it', 30_000, async () => {
        const events = await kubectl(['-n', NAMESPACE, 'get', 'events', '-o', 'jsonpath={.items[*].reason}']);
        return events.split(' ').includes('DataPlaneFailed') || undefined;
      });
      expect(await podNames(OTHERS)).toEqual(others);
      expect(await podNames([FIRST])).toEqual(expect.arrayContaining(first));
      await run('helm', [
        ...['--kubeconfig', KUBECONFIG, 'rollback', 'corelane', '--namespace', OPERATOR_NAMESPACE],
        ...['--wait', '--timeout', '120s'],
      ]);
      await untilUpToDate();
      await untilReady(NAMESPACE, FIRST);
      expect(await podNames(OTHERS)).toEqual(others);
      expect(await generations()).toEqual(before);
    },
    600_000 + ALL_MS_MAX,
  );
});

test('no request is lost', async () => {
  results.push(...(await Promise.all(loads.map((load) => load.stop()))));
  const answered = results.map(({ ok }) => ok);
  const failed = results.flatMap((result) => Object.values(lost(result))).reduce((sum, count) => sum + count, 0);
  const sent = results.reduce((sum, { requests }) => sum + requests, 0);
  figure('requests lost', failed, `of ${sent}`, '0');
  figure('fewest requests of a service that are answered', Math.min(...answered), '', '> 100');
  expect(results.map(lost)).toEqual(SERVICES.map(() => ({})));
  for (const { ok } of results) expect(ok).toBeGreaterThan(100);
}, 200_000);
