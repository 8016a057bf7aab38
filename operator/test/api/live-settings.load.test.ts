/**
 * `concurrency: Auto` and live settings: what the pods of a fleet have found, and one that does not take them.
 *
 * A load test: pods are asked every 15 s, and figures written every 30 s.
 */
import type { Server } from 'node:http';
import { eventually } from '../support/eventually.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import { sharedServer, World } from '../support/world.ts';
import { addressPods, serveAt, settingsOf } from './live-settings.ts';

const ADDRESS = '127.54.0.3';

let world: World;
let server: Server;
/** HAProxy's metrics of the pod; undefined: it says nothing. */
let metrics: string | undefined;
/** Pods are asked every 15 s, and figures written every 30 s. */
const SELDOM = { timeoutMs: 90_000 };

beforeAll(async () => {
  world = await World.create(sharedServer(), 'live-load');
  // The serial is that of no settings.
  server = await serveAt(ADDRESS, (url) =>
    url === '/live' ? 'serial=undefined\n' : url.startsWith('/metrics') ? metrics : undefined,
  );
});

afterAll(async () => {
  await OperatorProcess.killAll();
  server.close();
});

test('concurrency: Auto: what the fleet has found is in the ConfigMap, for new pods, and is nothing to be applied', async () => {
  const status = (limit: number) =>
    ['workers', 'workers-alive']
      .flatMap((proxy) => [
        `haproxy_server_status{proxy="${proxy}",server="worker-0",state="UP"} 1`,
        `haproxy_server_limit_sessions{proxy="${proxy}",server="worker-0"} ${limit}`,
      ])
      .concat('')
      .join('\n');
  const start = async () => /^concurrency-start=([0-9]+)$/m.exec((await settingsOf(world, 'finds')).text)?.[1];
  await world.startOperator();
  await world.createRenderService('finds', { replicas: 1, concurrency: 'Auto', workersPerPod: 1 });
  await world.untilApplied('finds');
  await addressPods(world, 'finds', [ADDRESS]);
  const { serial } = await settingsOf(world, 'finds');
  expect(await start()).toBeUndefined();
  metrics = status(7);
  await eventually('it is there', async () => expect(await start()).toBe('6'), SELDOM);
  expect((await settingsOf(world, 'finds')).serial).toBe(serial);
  metrics = undefined;
  await OperatorProcess.killAll();
  await world.startOperator();
  await eventually(
    'nobody tells any',
    async () => {
      const { status } = await world.get('RenderService', 'finds');
      expect(status.concurrency).toBeUndefined();
    },
    SELDOM,
  );
  await world.patchSpec('finds', { queue: { maxLength: 9 } });
  await eventually('it is applied', async () =>
    expect((await settingsOf(world, 'finds')).text).toContain('queue-length-max=9\n'),
  );
  expect(await start()).toBe('6');
});

test('a pod that does not take its live settings keeps Ready open for two minutes, and not until something happens', async () => {
  await world.createRenderService('refuses', { replicas: 1 });
  await world.untilApplied('refuses');
  await addressPods(world, 'refuses', [ADDRESS]);
  await eventually('the pod has others', async () =>
    expect(await world.condition('refuses', 'LiveSettingsApplied')).toMatchObject({ reason: 'Waiting' }),
  );
  await eventually(
    'Ready',
    async () => expect(await world.condition('refuses', 'Ready')).toMatchObject({ status: 'True' }),
    { timeoutMs: 180_000 },
  );
  expect(await world.condition('refuses', 'LiveSettingsApplied')).toMatchObject({ status: 'False', reason: 'Waiting' });
});
