/**
 * The Secret with the key of the peers, once it is deleted.
 *
 * A load test: that the operator asks no more is known after its ten seconds, and one more.
 */
import { eventually, settled } from '../support/eventually.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import { sharedServer, World } from '../support/world.ts';
import { asked, keyOf, secret } from './peers-key.ts';

let world: World;
let operator: OperatorProcess;

beforeAll(async () => {
  world = await World.create(sharedServer(), 'peers-key-load');
  operator = await world.startOperator();
});

afterAll(() => OperatorProcess.killAll());

test('a deleted one is made again for the next pod, with another key', async () => {
  await world.createRenderService('one');
  await world.untilApplied('one');
  await eventually('its pods', async () => expect(await world.list('Pod')).toHaveLength(2));
  const old = await secret(world, 'one-peers');
  await world.admin.delete(world.path('Secret', 'one-peers'));
  const pods = (await world.list('Pod')).filter(
    ({ metadata }) => metadata.labels['corelane.dev/renderservice'] === 'one',
  );
  await world.admin.delete(world.path('Pod', pods[0].metadata.name));
  const made = await secret(world, 'one-peers');
  expect(made.metadata.uid).not.toBe(old.metadata.uid);
  expect(keyOf(made)).not.toBe(keyOf(old));
  // Nobody asks again while no pod comes. For those that have come it is asked within ten seconds.
  const times = await settled('the questions for Secrets', () => asked(operator, '409'), { forMs: 11_000 });
  await world.admin.patch(world.path('RenderService', 'one'), { metadata: { annotations: { touched: 'yes' } } });
  await world.patchSpec('one', { service: { port: 81 } });
  await eventually('the Service has the port', async () => {
    expect((await world.get('Service', 'one')).spec.ports[0].port).toBe(81);
  });
  expect(await asked(operator, '409')).toBe(times);
});
