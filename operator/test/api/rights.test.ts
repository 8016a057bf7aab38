/** What the operator may do: enough for everything that it does, nothing beyond, and in its namespaces only. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type PolicyRule, rules } from '../../src/kube/rbac.ts';
import { ApiServer } from '../support/api-server.ts';
import { eventually } from '../support/eventually.ts';
import { CONTROLLERS } from '../support/global-setup.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import { sharedServer, World } from '../support/world.ts';

afterEach(() => OperatorProcess.killAll());

const NOT_SEEN = [
  // No request asks for it: an admission plugin does, where the owner of an object is set (rbac.ts).
  'corelane.dev/renderservices/finalizers update',
  // Only where a write of the number of pods meets another one (unit/autoscaler).
  'corelane.dev/renderservices get',
];

/** Of a pod whose page of live settings this file gives. No other file has it: their servers would answer. */
const ADDRESS = '127.56.0.1';

function allowed(list: PolicyRule[]): string[] {
  return list.flatMap(({ apiGroups, resources, verbs }) =>
    apiGroups.flatMap((group) => resources.flatMap((resource) => verbs.map((verb) => `${group}/${resource} ${verb}`))),
  );
}

test('every right is used, and no other one is asked for', async () => {
  const server = await ApiServer.start('rights', { controllers: CONTROLLERS, audit: true });
  const stats = createServer(({ url }, response) => response.writeHead(url === '/live' ? 200 : 404).end('serial=0\n'));
  try {
    const world = await World.create(server, 'rights');
    const operator = await world.startOperator();
    const scaling = { minReplicas: 2, maxReplicas: 4 };
    await world.createRenderService('shop', { replicas: 0 });
    await world.createRenderService('scaled', { replicas: 1, scaling });
    await world.untilApplied('shop');
    const deployment = (await world.deployment('shop')).metadata.name;
    // Somebody adds fields: they are taken away by a whole update.
    const add = (kind: 'Service' | 'Deployment' | 'PodDisruptionBudget' | 'NetworkPolicy', spec: object) =>
      world.admin.patch(`${world.path(kind, kind === 'Deployment' ? deployment : 'shop')}?fieldManager=somebody`, {
        spec,
      });
    await add('Service', { externalIPs: ['192.0.2.1'] });
    await add('Deployment', { paused: true });
    await add('PodDisruptionBudget', { maxUnavailable: null, minAvailable: 1 });
    await add('NetworkPolicy', { egress: [{}] });
    await world.admin.patch(`${world.path('ConfigMap', 'shop-live')}?fieldManager=somebody`, { data: { more: 'x' } });
    await eventually('they are gone', async () => {
      expect((await world.get('Service', 'shop')).spec.externalIPs).toBeUndefined();
      expect((await world.deployment('shop')).spec.paused).toBeUndefined();
      expect((await world.get('PodDisruptionBudget', 'shop')).spec.minAvailable).toBeUndefined();
      expect((await world.get('NetworkPolicy', 'shop')).spec.egress).toBeUndefined();
      expect((await world.get('ConfigMap', 'shop-live')).data.more).toBeUndefined();
    });
    // What the plan no longer has goes; a ConfigMap when no ReplicaSet has it any more.
    for (const seconds of [11, 12, 13, 14]) {
      await world.patchSpec('shop', {
        queue: { timeout: `${seconds}s` },
        disruptionBudget: { enabled: false },
        networkPolicy: { enabled: false },
      });
      await eventually('the Deployment controller has seen it', async () => {
        const { metadata } = await world.untilApplied('shop');
        expect(metadata.generation).toBeGreaterThan(1);
        const { metadata: live, status } = await world.deployment('shop');
        expect(status?.observedGeneration).toBe(live.generation);
      });
    }
    await eventually('the scaled one has grown', async () => {
      expect((await world.get('RenderService', 'scaled')).spec.replicas).toBe(2);
    });
    const pods = await eventually('both pods of the scaled one are there', async () => {
      const found = (await world.list('Pod')).filter(({ metadata }) => metadata.name.startsWith('scaled-'));
      expect(found).toHaveLength(2);
      return found;
    });
    await world.makePodsReady('scaled');
    // A pod that has other live settings than it should: the operator patches an annotation of it.
    await once(stats.listen(8999, ADDRESS), 'listening');
    await world.admin.patch(`${world.path('Pod', pods[0]?.metadata.name)}/status`, {
      status: { podIP: ADDRESS, podIPs: [{ ip: ADDRESS }] },
    });
    // Everybody who may log in may read the schemas (system:discovery).
    const schema = '/openapi/v3/apis/corelane.dev/v1alpha1';
    const wanted = [...allowed(rules.namespaced), ...allowed(rules.ownNamespace), schema];
    await eventually('all rights have been used', async () => {
      expect([...new Set([...(await server.asked()), ...NOT_SEEN])].sort()).toEqual(wanted.sort());
    });
    expect(operator.log).not.toContain('is forbidden');
  } finally {
    await OperatorProcess.killAll();
    stats.close();
    await server.remove();
  }
});

test('a list of namespaces: it leads, works in these, and has rights nowhere else', async () => {
  const one = await World.create(sharedServer(), 'rights-one');
  const two = await one.alsoIn('rights-two');
  // From four on the watches once took all connections there were. rights.load.test.ts has a hundred.
  const others = await Promise.all(['three', 'four', 'five'].map((name) => one.alsoIn(`rights-${name}`)));
  const namespace = [one, two, ...others].map((world) => world.namespace).join(',');
  const operator = await OperatorProcess.start({ ...one.settings('operator-0'), namespace });
  await operator.untilLeading();
  for (const world of [one, two, ...others]) {
    await world.createRenderService('shop');
    await world.untilApplied('shop');
    await world.admin.delete(world.path('Service', 'shop'));
    await eventually('it is back', () => world.get('Service', 'shop'));
  }
  await two.patchSpec('shop', { disruptionBudget: { enabled: false } });
  await eventually('its budget is gone, and the other one is not', async () => {
    expect(await two.find('PodDisruptionBudget', 'shop')).toBeUndefined();
    expect(await one.find('PodDisruptionBudget', 'shop')).toBeDefined();
  });
  expect(operator.log).not.toContain('is forbidden');
});
