/**
 * Ordinary trouble: pods that ended, an object that comes late, a start that fails. What the operator then does is
 * right, and it says why.
 */
import { createServer } from 'node:http';
import { KubeConfig } from '@kubernetes/client-node';
import { apply } from '../../src/kube/apply.ts';
import { PooledKubeConfig } from '../../src/kube/config.ts';
import { Informer } from '../../src/kube/informer.ts';
import { kinds } from '../../src/kube/kinds.ts';
import { Rest } from '../../src/kube/rest.ts';
import { eventually } from '../support/eventually.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import { asTold, HARMLESS, TOLD } from '../support/told.ts';
import { sharedServer, World } from '../support/world.ts';

let world: World;

beforeAll(async () => {
  world = await World.create(sharedServer(), 'under-pressure');
  await world.startOperator();
});

afterAll(() => OperatorProcess.killAll());

test(HARMLESS.evicted, async () => {
  await world.createRenderService('evicted', { replicas: 2 });
  const pods = await eventually('two pods', async () => {
    const found = (await world.list('Pod')).filter(({ metadata }) => metadata.name.startsWith('evicted-'));
    expect(found).toHaveLength(2);
    return found;
  });
  await world.makePodsReady('evicted');
  await eventually('four workers', async () => {
    expect((await world.get('RenderService', 'evicted')).status?.workers?.total).toBe(4);
  });
  const status = { phase: 'Failed', reason: 'Evicted', message: 'The node was low on resource: memory.' };
  await world.admin.patch(`${world.path('Pod', pods[0]?.metadata.name)}/status`, { status });
  await eventually('another pod is made in its place', async () => {
    const found = (await world.list('Pod')).filter(({ metadata }) => metadata.name.startsWith('evicted-'));
    expect(found).toHaveLength(3);
  });
  await world.makePodsReady('evicted');
  await eventually('four workers, not six', async () => {
    const { workers } = (await world.get('RenderService', 'evicted')).status;
    expect(workers).toMatchObject({ total: 4, ready: 4 });
  });
});

test(HARMLESS.lateObject, async () => {
  const config = new PooledKubeConfig();
  const { clusters, users, contexts, currentContext } = kubeConfig();
  config.loadFromOptions({ clusters, users, contexts, currentContext });
  const rest = new Rest(config);
  const informer = new Informer({ rest, kind: kinds.service, namespace: world.namespace, onError: () => {} });
  const foreign = { metadata: { name: 'late' }, spec: { selector: { app: 'mine' }, ports: [{ port: 8080 }] } };
  await world.admin.post(world.path('Service'), foreign);
  const ours = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: 'late', namespace: world.namespace },
    spec: { selector: { app: 'ours' }, ports: [{ port: 80 }] },
  };
  await expect(apply(rest, informer, ours)).rejects.toMatchObject({ status: 409 });
  expect((await world.get('Service', 'late')).spec.selector).toEqual({ app: 'mine' });
  await config.close();
});

function kubeConfig(): KubeConfig {
  const config = new KubeConfig();
  config.loadFromFile(sharedServer().adminKubeconfig);
  return config;
}

test('a start that another one may get right ends with 1, a wrong environment with 78', async () => {
  const taken = createServer();
  await new Promise<void>((resolve) => taken.listen(0, resolve));
  const { port } = taken.address() as { port: number };
  const settings = world.settings('operator-of-trouble');
  const unlucky = await OperatorProcess.spawn(settings, { CORELANE_METRICS_PORT: String(port) });
  const ended = await unlucky.exitCode(60_000).finally(() => taken.close());
  expect(ended).toBe(1);
  expect(lastLine(unlucky.log)).toMatch(asTold(TOLD.portTaken));
  const wrong = await OperatorProcess.spawn(settings, { CORELANE_CONCURRENCY: '0' });
  expect(await wrong.exitCode(60_000)).toBe(78);
  expect(wrong.log).toContain('CORELANE_CONCURRENCY');
});

function lastLine(log: string): string {
  return log.trim().split('\n').at(-1) as string;
}
