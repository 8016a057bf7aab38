/**
 * Settings that reach pods that run: what the operator writes, whom it nudges, and what status says meanwhile. There is
 * no kubelet here: the pods' port 8999 is the test's, which says what they have.
 */
import type { Server } from 'node:http';
import type { Json } from '../support/api-client.ts';
import { eventually, settled } from '../support/eventually.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import { podTemplate, sharedServer, World } from '../support/world.ts';
import { addressPods, podsOf, refuse, serveAt, settingsOf } from './live-settings.ts';

const ADDRESSES = ['127.54.0.1', '127.54.0.2'];

let world: World;
/** By address: the serial of the settings that the pod has. */
const has: Record<string, string> = {};
/** By address: how often it was asked for that. */
const asked: Record<string, number> = {};
let servers: Server[] = [];

beforeAll(async () => {
  world = await World.create(sharedServer(), 'live');
  servers = await Promise.all(
    ADDRESSES.map((address) =>
      serveAt(address, (url) => {
        if (url !== '/live') return undefined;
        asked[address] = (asked[address] ?? 0) + 1;
        return `serial=${has[address]}\n`;
      }),
    ),
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

/** The pods have what the operator has written. */
async function takeSettings(): Promise<void> {
  const { serial } = await settings();
  for (const address of ADDRESSES) has[address] = serial;
}

/** All that somebody sees of it, once nothing changes any more. */
async function atRest() {
  const pods = 'cannot read port 8999';
  await eventually('its pods have been asked for their figures', async () =>
    expect((await world.condition('shop', 'WorkersHealthy')).message).toContain(pods),
  );
  const versions = await settled('all objects', () => world.resourceVersions());
  const events = (await world.events('shop')).map(({ reason }) => reason);
  return { versions, events, status: (await world.get('RenderService', 'shop')).status };
}

/** Another process takes over, asks all pods, and has nothing left to do. */
async function takeOver(name: string): Promise<OperatorProcess> {
  await OperatorProcess.stopAll();
  for (const address of ADDRESSES) asked[address] = 0;
  const operator = await world.startOperator(name);
  await eventually('it has asked all pods, and has nothing to do', async () => {
    const { done, depth } = await operator.work();
    expect([done > 0, depth, ADDRESSES.every((address) => asked[address])]).toEqual([true, 0, true]);
    expect(await operator.sum('corelane_operator_pod_samples_total')).toBeGreaterThanOrEqual(ADDRESSES.length);
  });
  return operator;
}

test('where the Deployment of a change is refused the live settings of it reach the pods, and status says that alone', async () => {
  const undo = await refuse(world, 'Deployment', (await world.deployment('shop')).metadata.name);
  await world.patchSpec('shop', { queue: { maxLength: 8 }, template: podTemplate({ image: 'corelane.test/app:2' }) });
  await eventually('it is refused', async () =>
    expect(await world.condition('shop', 'Stalled')).toMatchObject({ status: 'True', reason: 'Rejected' }),
  );
  await untilLive('False', 'Waiting', false, 0);
  const { serial, text } = await settings();
  expect(text).toContain('queue-length-max=8\n');
  await eventually('both are nudged', async () => {
    for (const { metadata } of await pods()) expect(metadata.annotations?.['corelane.dev/live']).toContain(serial);
  });
  await takeSettings();
  await untilLive('True', 'AllPods', true, 2);
  expect(await world.condition('shop', 'Ready')).toMatchObject({ status: 'False', reason: 'Rejected' });
  // There are none of the template of the spec.
  expect((await world.get('RenderService', 'shop')).status.updatedReplicas).toBe(0);
  await world.patchSpec('shop', { template: podTemplate() });
  await undo();
  await world.untilApplied('shop');
});

test('live settings that the API server refuses are not called applied', async () => {
  const before = await settings();
  const undo = await refuse(world, 'ConfigMap', 'shop-live');
  const { metadata } = await world.patchSpec('shop', { queue: { maxLength: 9 } });
  await untilLive('False', 'NotWritten', false, 0);
  const { observedGeneration } = await world.condition('shop', 'LiveSettingsApplied');
  expect(observedGeneration).toBe(metadata.generation);
  expect(await world.condition('shop', 'Stalled')).toMatchObject({ status: 'True', reason: 'Rejected' });
  expect(await settings()).toEqual(before);
  await undo();
  await eventually('they are written', async () => expect((await settings()).text).toContain('queue-length-max=9\n'));
  await takeSettings();
  await untilLive('True', 'AllPods', true, 2);
});

test('another process that takes over changes no condition, and writes nothing', async () => {
  const before = await atRest();
  expect(before.status.conditions).toContainEqual(expect.objectContaining({ type: 'LiveSettingsApplied' }));
  const operator = await takeOver('operator-1');
  expect(await atRest()).toEqual(before);
  expect(await operator.sum('corelane_operator_writes_total')).toBe(0);
});

test('nor does one that takes over while pods lack live settings', async () => {
  await world.patchSpec('shop', { queue: { maxLength: 10 } });
  await untilLive('False', 'Waiting', false, 0);
  const before = await atRest();
  expect(await world.condition('shop', 'Ready')).toMatchObject({ status: 'Unknown', reason: 'Progressing' });
  await takeOver('operator-2');
  const { status, events } = await atRest();
  expect([status, events]).toEqual([before.status, before.events]);
  await takeSettings();
  await untilLive('True', 'AllPods', true, 2);
});

test('settings that somebody else writes again and again are not called applied', async () => {
  const { text } = await settings();
  // The line with the serial stays, as in an edit by hand.
  const write = (suffix: string) =>
    world.admin.patch(world.path('ConfigMap', 'shop-live'), { data: { settings: `${text}${suffix}` } });
  // Pods that have acknowledged them may have got the others: they are asked again.
  for (const address of ADDRESSES) has[address] = '0';
  await write('# 0\n');
  await untilLive('False', 'Waiting', true, 0);
  await takeSettings();
  await untilLive('True', 'AllPods', true, 2);

  let told: Json | undefined;
  for (let rewrites = 1; !told; rewrites += 1) {
    expect(rewrites).toBeLessThan(60);
    await write(`# ${rewrites}\n`);
    told = await eventually('it is restored, or told', async () => {
      const { text: now } = await settings();
      const { status } = await world.get('RenderService', 'shop');
      const isTold = status.conditions.some(({ reason }: Json) => reason === 'NotWritten');
      expect(isTold || now === text).toBe(true);
      return isTold ? status : undefined;
    });
  }
  expect(told.liveSettings.pods).toBe(0);
  const expected = { type: 'LiveSettingsApplied', status: 'False', observedGeneration: told.observedGeneration };
  expect(told.conditions).toContainEqual(expect.objectContaining(expected));
  expect(told.conditions).not.toContainEqual(expect.objectContaining({ type: 'Ready', status: 'True' }));
  await write('');
  await untilLive('True', 'AllPods', true, 2);
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
