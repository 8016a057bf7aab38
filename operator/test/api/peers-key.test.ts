/** The Secret with the key of the peers: made by an operator that may create Secrets and nothing else. */
import { ApiClient, type Json, type StatusError } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import { asTold, TOLD } from '../support/told.ts';
import { sharedServer, World } from '../support/world.ts';
import { asked, keyOf, secret } from './peers-key.ts';

let world: World;
let operator: OperatorProcess;

beforeAll(async () => {
  world = await World.create(sharedServer(), 'peers-key');
  operator = await world.startOperator();
});

afterAll(() => OperatorProcess.killAll());

test('each RenderService has a key of its own, which goes when it goes and only HAProxy mounts', async () => {
  for (const name of ['one', 'other']) await world.createRenderService(name);
  const [owner] = await Promise.all(['one', 'other'].map((name) => world.untilApplied(name)));
  const { metadata, type, data, immutable } = await secret(world, 'one-peers');
  expect(metadata.labels).toMatchObject({ 'corelane.dev/renderservice': 'one' });
  expect(metadata.ownerReferences).toMatchObject([{ kind: 'RenderService', name: 'one', uid: owner?.metadata.uid }]);
  expect([type, immutable, Object.keys(data)]).toEqual(['Opaque', undefined, ['key']]);
  const keys = [keyOf({ data }), keyOf(await secret(world, 'other-peers'))];
  for (const key of keys) expect(Buffer.from(key, 'base64')).toHaveLength(32);
  expect(new Set(keys).size).toBe(2);

  const { spec } = (await world.deployment('one')).spec.template;
  const volume = spec.volumes.find((one: Json) => one.secret?.secretName === 'one-peers');
  const mounting = [...spec.initContainers, ...spec.containers].filter((container: Json) =>
    container.volumeMounts?.some(({ name }: Json) => name === volume.name),
  );
  expect(mounting.map(({ name }: Json) => name)).toEqual(['haproxy']);
});

test('the operator can neither read nor change nor delete one', async () => {
  const rights = new ApiClient(world.server.operatorKubeconfig);
  const path = world.path('Secret', 'one-peers');
  const calls = [
    rights.get(path),
    rights.get(world.path('Secret')),
    rights.patch(path, { data: {} }),
    rights.delete(path),
  ];
  const codes = await Promise.all(calls.map((call) => call.catch((error: StatusError) => error.code)));
  expect(codes).toEqual([403, 403, 403, 403]);
});

test('what is there is left alone, whoever it belongs to, and pods work with it', async () => {
  const key = Buffer.alloc(32, 'mine').toString('base64');
  await world.admin.post(world.path('Secret'), {
    metadata: { name: 'taken-peers' },
    data: { key: Buffer.from(key).toString('base64') },
  });
  const before = await asked(operator, '409');
  await world.createRenderService('taken');
  await world.untilApplied('taken');
  // A page of metrics is that of a moment ago.
  await eventually('it has asked', async () => expect(await asked(operator, '409')).toBeGreaterThan(before));
  expect(keyOf(await secret(world, 'taken-peers'))).toBe(key);
});

test('a RenderService whose pods do not ask each other has none', async () => {
  await world.createRenderService('alone', { pooling: { enabled: false }, readiness: { shedWhenFull: false } });
  await world.untilApplied('alone');
  expect(await world.find('Secret', 'alone-peers')).toBeUndefined();
  const { spec } = (await world.deployment('alone')).spec.template;
  expect(JSON.stringify(spec.volumes)).not.toContain('alone-peers');
});

test('nothing of a key is in a log, in an Event or in another object', async () => {
  const kinds = ['RenderService', 'Deployment', 'ReplicaSet', 'ConfigMap', 'Pod', 'Event', 'Service'] as const;
  const objects = await Promise.all(kinds.map((kind) => world.list(kind)));
  const text = JSON.stringify(objects) + operator.log;
  const secrets = (await world.list('Secret')).filter(({ data }) => data?.key);
  expect(secrets.length).toBeGreaterThanOrEqual(3);
  for (const one of secrets) {
    for (const form of [keyOf(one), one.data.key, Buffer.from(keyOf(one), 'base64').toString('hex')])
      expect(text).not.toContain(form);
  }
});

test('an operator that may not create Secrets does the rest, and says so once', async () => {
  const role = await world.get('Role', 'corelane');
  const rules = role.rules.filter(({ resources }: Json) => !resources.includes('secrets'));
  await world.admin.put(world.path('Role', 'corelane'), { ...role, rules });
  await world.createRenderService('forbidden');
  await world.untilApplied('forbidden');
  const note = await eventually('an Event', async () => {
    const event = (await world.events('forbidden')).find(({ reason }) => reason === 'NoPeersKey');
    expect(event).toBeDefined();
    return event?.note as string;
  });
  expect(note).toMatch(asTold(TOLD.noPeersKey));
  await eventually('status says so', async () =>
    expect((await world.condition('forbidden', 'Ready')).message).toContain(note),
  );
  expect(await operator.stop()).toBe(0);
  operator = await world.startOperator('operator-1');
  await eventually('another process has looked at it', async () => {
    const { done, depth } = await operator.work();
    expect(done).toBeGreaterThanOrEqual((await world.list('RenderService')).length);
    expect(depth).toBe(0);
    expect(operator.log).toMatch(/forbidden"[^\n]*no key for the peers/);
  });
  expect((await world.events('forbidden')).filter(({ reason }) => reason === 'NoPeersKey')).toHaveLength(1);
});
