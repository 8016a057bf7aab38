/** Two operators, one that writes: what happens when the leader goes, in whatever way. */
import { eventually } from '../support/eventually.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import { sharedServer, World } from '../support/world.ts';
import { holder, writes } from './leader.ts';

let world: World;
let leader: OperatorProcess;
let standby: OperatorProcess;
let sequence = 0;

/** A namespace of its own per test: a Lease of the test before must not matter. */
beforeEach(async () => {
  sequence += 1;
  world = await World.create(sharedServer(), `leader-${sequence}`);
  leader = await world.startOperator('operator-a');
  standby = await OperatorProcess.start(world.settings('operator-b'));
});

afterEach(() => OperatorProcess.killAll());

test('only the leader writes; the other is ready all the same', async () => {
  await world.createRenderService('shop');
  await world.untilApplied('shop');
  expect(await writes(leader)).toBeGreaterThan(0);
  expect(await standby.status('/readyz')).toBe(200);
  expect(await standby.isLeading()).toBe(false);
  expect(await standby.sum('corelane_operator_reconcile_duration_seconds_count')).toBe(0);
  expect(await writes(standby)).toBe(0);
  expect(await holder(world)).toBe('operator-a');
});

/** In this namespace the operator has no rights at all. */
const ELSEWHERE = 'leader-elsewhere';

test('an operator that may not read the Lease is not ready, and says why', async () => {
  const operator = await OperatorProcess.spawn({ ...world.settings('operator-c'), podNamespace: ELSEWHERE });
  await eventually('it says so', async () =>
    expect(await operator.page('/readyz')).toEqual({
      status: 503,
      text: expect.stringMatching(/^cannot read or write Lease leader-elsewhere\/corelane: leases.*is forbidden.*\n$/),
    }),
  );
  await eventually('its log says so, too', () => expect(operator.log).toContain('leader election: call failed'));
  expect(await operator.status('/livez')).toBe(200);
});

test('nor is one that may read it and not write it', async () => {
  const other = new World(sharedServer(), `leader-${sequence}-read`);
  await other.admin.post('/api/v1/namespaces', { metadata: { name: other.namespace } });
  await other.admin.post(other.path('Role'), {
    metadata: { name: 'read' },
    rules: [{ apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['get'] }],
  });
  await other.admin.post(other.path('RoleBinding'), {
    metadata: { name: 'read' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'read' },
    subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'operator' }],
  });
  const operator = await OperatorProcess.spawn({ ...world.settings('operator-c'), podNamespace: other.namespace });
  await eventually('it says so', async () =>
    expect(await operator.page('/readyz')).toEqual({
      status: 503,
      text: expect.stringMatching(/^cannot read or write Lease .*is forbidden.*cannot create resource "leases"/),
    }),
  );
});

test('nor is one that may not read what it is to work on, and it never leads', async () => {
  const namespace = `${world.namespace},${ELSEWHERE}`;
  const operator = await OperatorProcess.spawn({ ...world.settings('operator-c'), namespace });
  await eventually('it says so', async () =>
    expect(await operator.page('/readyz')).toEqual({
      status: 503,
      text: expect.stringMatching(/^cannot list renderservices in namespace leader-elsewhere: .*is forbidden/),
    }),
  );
  expect(await operator.isLeading()).toBe(false);
});

test("a leader that stops leaves a Lease that is nobody's, for the next one to take at once", async () => {
  await standby.kill();
  expect(await leader.stop()).toBe(0);
  const { spec } = await world.get('Lease', 'corelane');
  expect(spec).toMatchObject({ holderIdentity: '', leaseDurationSeconds: 1 });
});

test('a standby that is asked to stop ends with 0 and leaves the Lease alone', async () => {
  expect(await standby.stop()).toBe(0);
  expect(await holder(world)).toBe('operator-a');
  expect(await leader.isLeading()).toBe(true);
});

test('a leader that is asked to stop in the middle of work leaves nothing half done', async () => {
  const names = Array.from({ length: 12 }, (_unused, index) => `shop-${index}`);
  await Promise.all(names.map((name) => world.createRenderService(name, { replicas: 0 })));
  await eventually('the leader is at work', async () => expect(await writes(leader)).toBeGreaterThan(0));
  expect(await leader.stop()).toBe(0);
  // Whatever the first process has begun it has finished: a RenderService has all of its objects or none.
  const versions = Object.keys(await world.resourceVersions());
  const standbyWrites = await writes(standby);
  const counts = names.map(
    (name) => versions.filter((key) => new RegExp(`/${name}(-peers|-[0-9a-f]{10})?$`).test(key)).length,
  );
  if (standbyWrites === 0) expect(counts.filter((count) => count !== 1 && count !== 7)).toEqual([]);
  await standby.untilLeading();
  await Promise.all(names.map((name) => world.untilApplied(name)));
});

test('two operators under one name of the Lease in two namespaces do not know of each other', async () => {
  const other = await World.create(sharedServer(), `leader-${sequence}-other`);
  const operator = await other.startOperator('operator-a');
  expect(await leader.isLeading()).toBe(true);
  expect(await operator.isLeading()).toBe(true);
});
