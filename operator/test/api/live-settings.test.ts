/**
 * Settings that reach pods that run: what the operator writes, whom it nudges, and what status says meanwhile. There is
 * no kubelet here: the pods' port 8999 is the test's, which says what they have.
 */
import type { Server } from 'node:http';
import type { Json } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import { sharedServer, World } from '../support/world.ts';
import { addressPods, podsOf, serveAt, settingsOf } from './live-settings.ts';

const ADDRESSES = ['127.54.0.1', '127.54.0.2'];

let world: World;
/** By address: the serial of the settings that the pod has. */
const has: Record<string, string> = {};
let servers: Server[] = [];

beforeAll(async () => {
  world = await World.create(sharedServer(), 'live');
  servers = await Promise.all(
    ADDRESSES.map((address) => serveAt(address, (url) => (url === '/live' ? `serial=${has[address]}\n` : undefined))),
  );
});

afterAll(async () => {
  await OperatorProcess.killAll();
  for (const server of servers) server.close();
});

const pods = (): Promise<Json[]> => podsOf(world, 'shop');
const settings = () => settingsOf(world, 'shop');

async function live(): Promise<unknown[]> {
  const { status, metadata } = await world.get('RenderService', 'shop');
  const condition = await world.condition('shop', 'LiveSettingsApplied');
  const { observedGeneration = 0, pods: count } = status?.liveSettings ?? {};
  return [condition?.status, condition?.reason, observedGeneration === metadata.generation, count];
}

const untilLive = (...expected: unknown[]) =>
  eventually(`live settings: ${expected}`, async () => expect(await live()).toEqual(expected));

/** What says that pods are to be replaced. (A generation would not: it counts annotations, too.) */
async function templates(): Promise<[name: string, template: unknown][]> {
  return (await world.deployments('shop')).map(({ metadata, spec }) => [metadata.name, spec.template]);
}

test('a change of a live field: the ConfigMap, a nudge for each pod, and status when all have it', async () => {
  await world.startOperator();
  await world.createRenderService('shop', { replicas: 2 });
  await world.untilApplied('shop');
  const first = await settings();
  for (const address of ADDRESSES) has[address] = first.serial;
  await addressPods(world, 'shop', ADDRESSES);
  await untilLive('True', 'AllPods', true, 2);
  // They had them from the start.
  for (const { metadata } of await pods()) expect(metadata.annotations?.['corelane.dev/live']).toBeUndefined();
  const before = await templates();

  await world.patchSpec('shop', { queue: { maxLength: 7 } });
  await untilLive('False', 'Waiting', false, 0);
  const second = await settings();
  expect(second.text).toContain('queue-length-max=7\n');
  expect(second.serial).not.toBe(first.serial);
  await eventually('both are nudged', async () => {
    for (const { metadata } of await pods())
      expect(metadata.annotations?.['corelane.dev/live']).toContain(second.serial);
  });
  expect(await world.condition('shop', 'Ready')).toMatchObject({ status: 'Unknown', reason: 'Progressing' });

  has[ADDRESSES[0] as string] = second.serial;
  await untilLive('False', 'Waiting', false, 1);
  expect((await world.condition('shop', 'LiveSettingsApplied')).message).toContain('it still has those of before');
  has[ADDRESSES[1] as string] = second.serial;
  await untilLive('True', 'AllPods', true, 2);
  await eventually('Ready', async () =>
    expect(await world.condition('shop', 'Ready')).toMatchObject({ status: 'True' }),
  );
  expect(await templates()).toEqual(before);
});

test('what somebody writes into the ConfigMap goes again', async () => {
  const { text } = await settings();
  await world.admin.patch(world.path('ConfigMap', 'shop-live'), {
    data: { settings: 'queue-length-max=0\n', more: 'x' },
  });
  await eventually('it is as it was', async () => {
    expect((await world.get('ConfigMap', 'shop-live')).data).toEqual({ settings: text });
  });
});

test('pods that cannot be asked hold nothing up', async () => {
  for (const server of servers) {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
  await OperatorProcess.killAll();
  await world.startOperator();
  await eventually('it says so', async () => {
    const condition = await world.condition('shop', 'LiveSettingsApplied');
    expect(condition).toMatchObject({ status: 'Unknown', reason: 'PodsUnreachable' });
    expect(condition.message).toContain('does a NetworkPolicy forbid it?');
  });
  expect(await world.condition('shop', 'Ready')).toMatchObject({ status: 'True' });
});
