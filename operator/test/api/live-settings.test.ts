/**
 * Settings that reach pods that run: what the operator writes, whom it nudges, and what status says meanwhile. There is
 * no kubelet here: the pods' port 8999 is the test's, which says what they have.
 */
import { createServer, type Server } from 'node:http';
import type { Json } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import { sharedServer, World } from '../support/world.ts';

const ADDRESSES = ['127.54.0.1', '127.54.0.2'];
/** Of the pod of `finds`. */
const ITS_ADDRESS = '127.54.0.3';

let world: World;
/** By address: the serial of the settings that the pod has. */
const has: Record<string, string> = {};
/** HAProxy's metrics of that one; undefined: it says nothing. */
let metrics: string | undefined;
const servers: Server[] = [];
/** Pods are asked every 15 s, and figures written every 30 s. */
const SELDOM = { timeoutMs: 90_000 };

beforeAll(async () => {
  world = await World.create(sharedServer(), 'live');
  for (const address of [...ADDRESSES, ITS_ADDRESS]) {
    const server = createServer(({ url }, response) => {
      const body =
        url === '/live'
          ? `serial=${has[address]}\n`
          : url?.startsWith('/metrics') && address === ITS_ADDRESS
            ? metrics
            : undefined;
      response.writeHead(body === undefined ? 404 : 200).end(body);
    });
    servers.push(server);
    await new Promise<void>((resolve) => server.listen(8999, address, resolve));
  }
});

afterAll(async () => {
  await OperatorProcess.killAll();
  for (const server of servers) server.close();
});

async function pods(name = 'shop'): Promise<Json[]> {
  return (await world.list('Pod')).filter(({ metadata }) => metadata.name.startsWith(`${name}-`));
}

/** Tells the API server where the pods of a RenderService are, as kubelet would. */
async function address(name: string, addresses: string[]): Promise<void> {
  await eventually('all pods are there', async () => expect(await pods(name)).toHaveLength(addresses.length));
  await world.makePodsReady(name);
  for (const [index, { metadata }] of (await pods(name)).entries()) {
    const podIP = addresses[index];
    await world.admin.patch(`${world.path('Pod', metadata.name)}/status`, {
      status: { podIP, podIPs: [{ ip: podIP }] },
    });
  }
}

async function settings(name = 'shop'): Promise<{ serial: string; text: string }> {
  const { data } = await world.get('ConfigMap', `${name}-live`);
  return { serial: /^serial=(\w+)$/m.exec(data.settings)?.[1] as string, text: data.settings };
}

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
  await address('shop', ADDRESSES);
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

test('concurrency: Auto: what the fleet has found is in the ConfigMap, for new pods, and is nothing to be applied', async () => {
  const status = (limit: number) =>
    ['workers', 'workers-alive']
      .flatMap((proxy) => [
        `haproxy_server_status{proxy="${proxy}",server="worker-0",state="UP"} 1`,
        `haproxy_server_limit_sessions{proxy="${proxy}",server="worker-0"} ${limit}`,
      ])
      .concat('')
      .join('\n');
  const start = async () => /^concurrency-start=([0-9]+)$/m.exec((await settings('finds')).text)?.[1];
  await world.createRenderService('finds', { replicas: 1, concurrency: 'Auto', workersPerPod: 1 });
  await world.untilApplied('finds');
  await address('finds', [ITS_ADDRESS]);
  const { serial } = await settings('finds');
  expect(await start()).toBeUndefined();
  metrics = status(7);
  await eventually('it is there', async () => expect(await start()).toBe('6'), SELDOM);
  expect((await settings('finds')).serial).toBe(serial);
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
    expect((await settings('finds')).text).toContain('queue-length-max=9\n'),
  );
  expect(await start()).toBe('6');
}, 240_000);

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
