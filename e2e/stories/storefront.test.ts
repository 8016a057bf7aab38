/** The main path: the storefront example on three nodes, from kubectl apply to kubectl delete. */
import { apply, eventually, get, kubectl } from '../harness/cluster/cluster.ts';
import { deploymentOf, objectsOf, podsOf, untilAllWorkersUp, untilReady } from '../harness/cluster/renderservice.ts';
import { applyStorefront, NAME, NAMESPACE } from './storefront.ts';

beforeAll(applyStorefront);

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

  test('comes back when its objects are deleted by hand', async () => {
    const deployment = (await deploymentOf(NAMESPACE, NAME)).metadata.name;
    const uid = async (kind: string, name: string) =>
      (await get<{ metadata: { uid: string } }>('-n', NAMESPACE, kind, name)).metadata.uid;
    for (const kind of ['service', 'poddisruptionbudget', 'deployment']) {
      const name = kind === 'deployment' ? deployment : NAME;
      const before = await uid(kind, name);
      await kubectl(['-n', NAMESPACE, 'delete', kind, name, '--wait=false']);
      await eventually(`${kind} to be made again`, 60_000, async () =>
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
