/** `corelane explain` and `top` at a real API server: Events in order, services of namespaces, rights. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Json } from '../support/api-client.ts';
import { repository } from '../support/api-server.ts';
import { bareEnvironment } from '../support/bare-environment.ts';
import { eventually } from '../support/eventually.ts';
import { sharedServer, World } from '../support/world.ts';

const run = promisify(execFile);

// Names that come first: of the services of other tests there may be more than are looked at.
let world: World;
let other: World;

beforeAll(async () => {
  world = await World.create(sharedServer(), 'a-look');
  other = await world.alsoIn('a-look-other');
  const operator = await world.startOperator();
  await world.admin.post(world.path('Service'), { metadata: { name: 'shop' }, spec: { ports: [{ port: 80 }] } });
  await world.createRenderService('shop', { replicas: 2 });
  await untilEvent('NotOwned');
  await world.admin.delete(world.path('Service', 'shop'));
  await eventually('it is ready', async () => {
    await world.makePodsReady('shop');
    expect(await world.condition('shop', 'Ready')).toMatchObject({ status: 'True' });
  });
  await untilEvent('AllPodsReady');
  await operator.stop();
  await other.createRenderService('blog', { replicas: 0 });
});

async function untilEvent(reason: string): Promise<void> {
  await eventually(`there is an event ${reason}`, async () => {
    expect((await world.events('shop')).map((event) => event.reason)).toContain(reason);
  });
}

/** As a user with this kubeconfig calls it. */
async function corelane(kubeconfig: string, ...args: string[]): Promise<string> {
  const { stdout, stderr } = await run(process.execPath, [join(repository, 'operator/bin/corelane.mjs'), ...args], {
    env: bareEnvironment('/nonexistent', { PATH: process.env.PATH, KUBECONFIG: kubeconfig }),
  });
  expect(stderr).toBe('');
  return stdout;
}
const admin = (...args: string[]) => corelane(world.server.adminKubeconfig, ...args);

test('explain: what happened, in order, with the reasons that can be searched', async () => {
  const text = await admin('explain', 'shop', '-n', world.namespace, '--for', '1s');
  expect(text).toMatch(/^a-look\/shop: /);
  expect(text).toMatch(
    /^Events \(UTC, the newest last\):\n {2}\d\d:\d\d:\d\d Warning NotOwned: .*Service.*\n {2}\d\d:\d\d:\d\d AllPodsReady: .*\n$/m,
  );
});

test('explain -o json: the same for programs', async () => {
  const { name, pods, events, text } = JSON.parse(
    await admin('explain', 'shop', '-n', world.namespace, '--for', '1s', '-o', 'json'),
  );
  expect({ name, pods }).toMatchObject({ name: 'shop', pods: { all: 2, ready: 2, asked: 0 } });
  expect(events).toMatchObject([
    { type: 'Warning', reason: 'NotOwned' },
    { type: 'Normal', reason: 'AllPodsReady' },
  ]);
  expect(text[0]).toMatch(/^a-look\/shop: /);
});

test('an Event about another one, or about an earlier one of the name, is not shown', async () => {
  await world.createRenderService('shop-2', { replicas: 0 });
  const { metadata } = await world.get('RenderService', 'shop-2');
  const about = (name: string, uid: string, reason: string) =>
    world.admin.post(world.path('Event'), {
      ...{ metadata: { name: reason.toLowerCase() }, reason, type: 'Normal', action: 'Test', note: 'by a test' },
      ...{ eventTime: '2026-11-25T12:00:00.000000Z', reportingController: 'test', reportingInstance: 'test' },
      regarding: { apiVersion: metadata.apiVersion, kind: 'RenderService', name, namespace: world.namespace, uid },
    });
  await about('shop-2', metadata.uid, 'Own');
  await about('shop-2', '00000000-0000-4000-8000-000000000000', 'OfAnother');
  const { events } = JSON.parse(await admin('explain', 'shop-2', '-n', world.namespace, '--for', '1s', '-o', 'json'));
  expect(events.map(({ reason }: Json) => reason)).toEqual(['Own']);
});

test('explain: who may not list Events is told so, and all else', async () => {
  const { operatorKubeconfig } = world.server;
  const text = await corelane(operatorKubeconfig, 'explain', 'shop', '-n', world.namespace, '--for', '1s');
  expect(text).toMatch(/^a-look\/shop: /);
  expect(text).toMatch(/^Events: not known, they may not be listed\n$/m);
});

test('top without a name: the services of a namespace, and of all', async () => {
  const names = async (...args: string[]) => {
    const { services } = JSON.parse(await admin('top', '--interval', '1s', '-o', 'json', ...args));
    return services
      .map(({ namespace, name }: Json) => `${namespace}/${name}`)
      .filter((name: string) => name.startsWith('a-look'));
  };
  expect(await names('-n', world.namespace)).toEqual(expect.arrayContaining(['a-look/shop']));
  expect(await names('-n', other.namespace)).toEqual(['a-look-other/blog']);
  // Where there are more than a hundred it looks at those first that are not ready. The shop is, once its pods are.
  expect(await names('-A')).toEqual(expect.arrayContaining(['a-look-other/blog', 'a-look/shop-2']));
  const text = await admin('top', '--interval', '1s', '-n', other.namespace);
  expect(text).toMatch(/^namespace a-look-other: 1 RenderService\nNAMESPACE .*\na-look-other +blog +0\/0 .* no pods: /);
});

test('top -A: who may not list them everywhere is told which right is missing', async () => {
  await expect(corelane(world.server.operatorKubeconfig, 'top', '-A', '--interval', '1s')).rejects.toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^corelane: renderservices of all namespaces cannot be listed: 403 /),
  });
});
