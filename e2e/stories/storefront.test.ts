/** The main path: the storefront example on three nodes, from kubectl apply to kubectl delete. */
import { apply, eventually, get, kubectl } from '../harness/cluster/cluster.ts';
import { lost, startLoad } from '../harness/cluster/load.ts';
import { installOperator } from '../harness/cluster/operator.ts';
import {
  deploymentOf,
  example,
  objectsOf,
  podsOf,
  untilAllWorkersUp,
  untilReady,
} from '../harness/cluster/renderservice.ts';

const NAMESPACE = 'shop';
const NAME = 'storefront';
const URL_IN_CLUSTER = `http://${NAME}.${NAMESPACE}.svc/`;
/** A page of about 20 ms on a free core, a tenth of what the storefront shows by itself. */
const SHORT_PAGE = `${URL_IN_CLUSTER}?products=150`;

beforeAll(async () => {
  await installOperator();
  await kubectl(['-n', NAMESPACE, 'delete', 'renderservice', NAME, '--ignore-not-found'], {});
  await apply(example('storefront.yaml'));
  await untilReady(NAMESPACE, NAME);
});

describe('the storefront example', () => {
  test('runs with proxies as native sidecars and one container per worker', async () => {
    const [pod] = await podsOf(NAMESPACE, NAME);
    expect(pod?.spec.initContainers?.map(({ name, restartPolicy }) => [name, restartPolicy])).toEqual([
      ['corelane-runtime', undefined],
      ['haproxy', 'Always'],
      ['nginx', 'Always'],
    ]);
    expect(pod?.spec.containers.map(({ name }) => name)).toEqual(['worker-0', 'worker-1']);
  });

  test('gives the proxies no token of an account', async () => {
    const [pod] = await podsOf(NAMESPACE, NAME);
    const folder = '/var/run/secrets/kubernetes.io/serviceaccount';
    const look = (container: string) =>
      kubectl(['-n', NAMESPACE, 'exec', pod?.metadata.name ?? '', '-c', container, '--', 'ls', '-A', folder]);
    expect([await look('haproxy'), await look('nginx')]).toEqual(['', '']);
  });

  test('spreads its pods over both nodes that may run them', async () => {
    const pods = await podsOf(NAMESPACE, NAME);
    expect(new Set(pods.map(({ spec }) => spec.nodeName)).size).toBe(2);
  });

  test('counts its workers in status and in kubectl get', async () => {
    const resource = await untilAllWorkersUp(NAMESPACE, NAME);
    expect(resource.status).toMatchObject({ replicas: 3, readyReplicas: 3, workers: { total: 6, ready: 6 } });
    const columns = await kubectl(['-n', NAMESPACE, 'get', 'rsvc', NAME]);
    expect(columns).toMatch(/NAME\s+READY\s+PODS\s+WANTED\s+WORKERS\s+AGE\n\S+\s+True\s+3\s+3\s+6\s/);
  });

  test('runs where Pod Security "restricted" is enforced', async () => {
    const privileged = `{apiVersion: v1, kind: Pod, metadata: {name: bad, namespace: ${NAMESPACE}}, spec: {containers: [{name: a, image: a}]}}`;
    await expect(apply(privileged, '--dry-run=server')).rejects.toThrow(/violates PodSecurity "restricted/);
  });

  test('serves 400 renders at twice its workers, each worker one at a time, all workers in turn', async () => {
    const load = await startLoad(NAMESPACE, 'story-load', [
      ...['--url', SHORT_PAGE, '--requests', '400', '--concurrency', '12'],
    ]);
    const result = await load.result(240_000);
    expect({ ok: result.ok, failed: result.failed, overlaps: result.overlaps }).toEqual({
      ok: 400,
      failed: 0,
      overlaps: 0,
    });
    expect(Object.keys(result.workers as object)).toHaveLength(6);
  });

  test('answers ping, readiness and metrics while every worker is busy', async () => {
    const load = await startLoad(NAMESPACE, 'busy-load', [
      ...['--url', URL_IN_CLUSTER, '--requests', '90', '--concurrency', '20'],
    ]);
    const [pod] = await podsOf(NAMESPACE, NAME);
    const proxy = (port: number, path: string) =>
      kubectl(['get', '--raw', `/api/v1/namespaces/${NAMESPACE}/pods/${pod?.metadata.name}:${port}/proxy${path}`]);
    await eventually('a queue', 60_000, async () => {
      const metrics = await proxy(8999, '/metrics?metrics=haproxy_backend_current_queue');
      const queued = /^haproxy_backend_current_queue\{proxy="line"\} (\d+)/m.exec(metrics)?.[1];
      return Number(queued) > 0 || undefined;
    });
    await proxy(9000, '/ping');
    await proxy(8998, '/readyz');
    expect(await proxy(8999, '/')).toMatch(/Statistics Report for HAProxy/);
    expect((await load.result(240_000)).failed).toBe(0);
  });

  test('can be scaled with kubectl scale', async () => {
    await kubectl(['-n', NAMESPACE, 'scale', 'renderservice', NAME, '--replicas=2']);
    const resource = await untilReady(NAMESPACE, NAME);
    expect(resource.status?.replicas).toBe(2);
    const scale = JSON.parse(
      await kubectl([
        'get',
        '--raw',
        `/apis/corelane.dev/v1alpha1/namespaces/${NAMESPACE}/renderservices/${NAME}/scale`,
      ]),
    );
    expect(scale).toMatchObject({
      spec: { replicas: 2 },
      status: { replicas: 2, selector: `corelane.dev/renderservice=${NAME},corelane.dev/serving=true` },
    });
  });

  test('loses no request in a rolling update', async () => {
    const load = await startLoad(NAMESPACE, 'rollout-load', [
      ...['--url', SHORT_PAGE, '--requests', '2000', '--rate', '8', '--concurrency', '64', '--keep-alive'],
    ]);
    const patch = { spec: { template: { metadata: { annotations: { 'example.com/version': String(Date.now()) } } } } };
    const before = await podsOf(NAMESPACE, NAME);
    await kubectl(['-n', NAMESPACE, 'patch', 'renderservice', NAME, '--type=merge', '-p', JSON.stringify(patch)]);
    await untilReady(NAMESPACE, NAME);
    await eventually('the old pods to be gone', 120_000, async () => {
      const pods = await podsOf(NAMESPACE, NAME);
      return pods.every(({ metadata }) => !metadata.deletionTimestamp) || undefined;
    });
    const result = await load.stop();
    const after = await podsOf(NAMESPACE, NAME);
    expect(
      after.some(({ metadata }) =>
        before.some((old) => old.metadata.name === metadata.name && !metadata.deletionTimestamp),
      ),
    ).toBe(false);
    const { ok, overlaps, statuses } = result;
    expect({ overlaps, errors: lost(result), statuses }).toEqual({ overlaps: 0, errors: {}, statuses: { 200: ok } });
    // All the time: the client was not at its last request.
    expect(ok).toBeLessThan(2000);
    expect(ok).toBeGreaterThan(0);
  });

  test('comes back when its objects are deleted by hand', async () => {
    const deployment = (await deploymentOf(NAMESPACE, NAME)).metadata.name;
    const uid = async (kind: string, name: string) =>
      (await get<{ metadata: { uid: string } }>('-n', NAMESPACE, kind, name)).metadata.uid;
    for (const kind of ['service', 'poddisruptionbudget', 'deployment']) {
      const name = kind === 'deployment' ? deployment : NAME;
      const before = await uid(kind, name);
      await kubectl(['-n', NAMESPACE, 'delete', kind, name, '--wait=false']);
      await eventually(`${kind} to be made again`, 20_000, async () =>
        (await uid(kind, name)) !== before ? true : undefined,
      );
    }
    await untilReady(NAMESPACE, NAME);
  });

  test('leaves nothing behind when it is deleted', async () => {
    await kubectl(['-n', NAMESPACE, 'delete', 'renderservice', NAME]);
    await eventually('everything it owned to be gone', 120_000, async () => {
      const left = await objectsOf(NAMESPACE, NAME);
      if (left.length > 0) throw new Error(`still there: ${left.join(', ')}`);
      return true;
    });
  });
});
