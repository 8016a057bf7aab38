/**
 * Objects that somebody writes who means no good, or does not know: the operator stays up, and does its work for all
 * others.
 */
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import net from 'node:net';
import type { Json } from '../support/api-client.ts';
import { ApiServer } from '../support/api-server.ts';
import { eventually } from '../support/eventually.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import { asTold, HARMLESS, TOLD } from '../support/told.ts';
import { podTemplate, sharedServer, World } from '../support/world.ts';

let world: World;
let sequence = 0;
const open: (Server | net.Socket)[] = [];

beforeEach(async () => {
  sequence += 1;
  world = await World.create(sharedServer(), `hostile-objects-${sequence}`);
});

afterEach(async () => {
  await OperatorProcess.killAll();
  for (const one of open.splice(0)) {
    if (one instanceof net.Socket) one.destroy();
    else one.close();
  }
});

/** The operator still does what it is there for. */
async function expectToWork(operator: OperatorProcess, name = 'honest'): Promise<void> {
  await world.createRenderService(name);
  await world.untilApplied(name);
  expect(operator.hasEnded).toBe(false);
}

/** Waits for the message of Stalled. */
function stalledMessage(name: string, reason: string): Promise<string> {
  return eventually(`${name} is Stalled`, async () => {
    const condition = await world.condition(name, 'Stalled');
    expect(condition).toMatchObject({ status: 'True', reason });
    return condition.message;
  });
}

test(HARMLESS.foreignPod, async () => {
  const address = '127.53.99.1';
  let asked = 0;
  const stats = createServer((_request, response) => {
    asked += 1;
    response.end();
  });
  open.push(stats);
  await new Promise<void>((resolve) => stats.listen(8999, address, resolve));
  const labels = { 'corelane.dev/renderservice': 'honest', app: 'foreign' };
  await world.admin.post(world.path('Pod'), {
    metadata: { name: 'foreign', labels },
    spec: podTemplate({ name: 'worker-0' }).spec,
  });
  const status = {
    phase: 'Running',
    podIP: address,
    podIPs: [{ ip: address }],
    conditions: [{ type: 'Ready', status: 'True' }],
    containerStatuses: [{ name: 'worker-0', image: 'x', imageID: '', ready: true, restartCount: 0, state: {} }],
  };
  await world.admin.patch(`${world.path('Pod', 'foreign')}/status`, { status });
  const operator = await world.startOperator();
  await world.createRenderService('honest', { replicas: 1 });
  await world.untilApplied('honest');
  const own = await eventually('the pod of the RenderService is there', async () => {
    const found = (await world.list('Pod')).find(({ metadata }) => metadata.name.startsWith('honest-'));
    expect(found).toBeDefined();
    return found?.metadata.name as string;
  });
  const noOnes = '127.53.99.2';
  const running = { ...status, podIP: noOnes, podIPs: [{ ip: noOnes }] };
  await world.admin.patch(`${world.path('Pod', own)}/status`, { status: running });
  // The sampler has made a round: it has tried the pod whose address nobody has.
  await eventually('a round of the sampler', async () => {
    expect(await operator.sum('corelane_operator_pod_samples_total')).toBeGreaterThan(0);
  });
  expect(asked).toBe(0);
  // One of the two pods has told of a worker.
  expect((await world.get('RenderService', 'honest')).status.workers).toMatchObject({ total: 1 });
});

test('a template of which 64 copies would fill the memory is Stalled with its size and the bound, and nobody dies of it', async () => {
  const operator = await world.startOperator();
  const large = podTemplate({ env: [{ name: 'LARGE', value: 'x'.repeat(1_350_000) }] });
  await world.createRenderService('large', { workersPerPod: 64, template: large });
  const message = await stalledMessage('large', 'InvalidSpec');
  expect(message).toMatch(asTold(TOLD.templateTooLarge));
  expect(message).toMatch(/some 864\d\d kB.* each of 64 workers has a copy of its container \(1351 kB\)/);
  await expectToWork(operator);
});

test('a template that is too large only with whose its fields are is told before it is built, too', async () => {
  const operator = await world.startOperator();
  // An API server stores a new one without the ownership of its 16,000 fields, and then refuses each apply of it.
  const env = Array.from({ length: 1_000 }, (_unused, n) => ({ name: `V${n}`, value: 'x' }));
  await world.createRenderService('grows', { workersPerPod: 16, template: podTemplate({ env }) });
  expect(await stalledMessage('grows', 'InvalidSpec')).toMatch(
    /^spec\.template: makes a Deployment of some 1[4-6]\d\d kB/,
  );
  await expectToWork(operator);
});

test('what only the API server finds too large is said once, and not tried for ever', async () => {
  // One whose etcd takes less than it does by default, which nobody but itself knows.
  const server = await ApiServer.start('small-store', { etcdBytes: 1_000_000 });
  try {
    world = await World.create(server, 'small-store');
    const operator = await world.startOperator();
    await world.createRenderService('grows', { workersPerPod: 2 });
    await world.untilApplied('grows');
    const large = podTemplate({ env: [{ name: 'LARGE', value: 'x'.repeat(600_000) }] });
    await world.patchSpec('grows', { template: large });
    expect(await stalledMessage('grows', 'Rejected')).toMatch(asTold(TOLD.rejectedTooLarge));
    await expectToWork(operator);
    await eventually('one Event tells it', async () =>
      expect((await world.events('grows')).map(({ reason }) => reason)).toEqual(['Rejected']),
    );
  } finally {
    await OperatorProcess.killAll();
    await server.remove();
  }
}, 180_000);

/**
 * So many characters of labels, of which nobody counts the number; the API server writes down whose each one is, too.
 */
function manyLabels(length: number): Record<string, string> {
  const prefix = `${'x'.repeat(60)}.`.repeat(4);
  const value = 'x'.repeat(63);
  const count = length / (prefix.length + value.length);
  return Object.fromEntries(Array.from({ length: count }, (_unused, n) => [`${prefix}x/l${n}`, value]));
}

/** The chart's memory limit of the operator. Its heap has 192 MB: one that kept all of them would end. */
const MEMORY_LIMIT_KB = 320 * 1024;

/** The most memory that a process has had so far. */
function peakKb({ pid }: OperatorProcess): number {
  return Number(/^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]);
}

test(HARMLESS.megabytes, async () => {
  // A server of its own: to store and to delete all that keeps one from answering for so long that other tests fail.
  const server = await ApiServer.start('megabytes');
  try {
    world = await World.create(server, 'megabytes');
    await expectMegabytesHarmless();
  } finally {
    await OperatorProcess.killAll();
    await server.remove();
  }
}, 300_000);

async function expectMegabytesHarmless(): Promise<void> {
  const owner = await world.createRenderService('owner', { replicas: 0 });
  const data = { large: 'x'.repeat(1_000_000) };
  const labels = { 'corelane.dev/renderservice': 'honest' };
  const claim = { apiVersion: owner.apiVersion, kind: owner.kind, name: 'owner', uid: owner.metadata.uid };
  /** Whose they say they are, and where the megabyte is. */
  const forms = [
    { metadata: { labels }, data },
    { metadata: { labels, ownerReferences: [{ ...claim, controller: true }] }, data },
    // Of a kind that nobody knows, so nobody finds out that there is no such owner.
    { metadata: { labels, ownerReferences: [{ ...claim, apiVersion: 'example.com/v1', controller: true }] }, data },
    { metadata: { labels: { ...labels, ...manyLabels(600_000) } } },
  ];
  const objects = Array.from({ length: 150 }, (_unused, n) => ({ n, ...(forms[n % forms.length] as Json) }));
  for (let from = 0; from < objects.length; from += 10) {
    const posts = objects.slice(from, from + 10).map(({ n, ...form }) => {
      // Names like those of a configuration.
      const metadata = { ...form.metadata, name: `owner-${n}` };
      return world.admin.post(world.path('ConfigMap'), { ...form, metadata });
    });
    await Promise.all(posts);
  }
  // It reads all of them before it is ready: some seconds, and a minute and more where other tests have the processor.
  const operator = await world.startOperator('operator-0', 180_000);
  await expectToWork(operator);
  expect(peakKb(operator)).toBeLessThan(MEMORY_LIMIT_KB);
}

test(HARMLESS.lease, async () => {
  await world.admin.post(world.path('Lease'), {
    metadata: { name: 'corelane' },
    spec: {
      holderIdentity: 'nobody',
      leaseDurationSeconds: 1_000_000_000,
      renewTime: '2026-01-01T00:00:00.000000Z',
      leaseTransitions: 2 ** 31 - 1, // and one more is no number that the API server takes
    },
  });
  const operator = await OperatorProcess.start(world.settings('operator-0'));
  await operator.untilLeading(75_000);
}, 90_000);

test(HARMLESS.connections, async () => {
  const operator = await world.startOperator();
  let ended = 0;
  for (let n = 0; n < 300; n += 1) {
    const socket = net.connect(operator.metricsPort, '127.0.0.1');
    socket
      .on('error', () => {})
      .on('close', () => {
        ended += 1;
      });
    open.push(socket);
  }
  // Who comes later has the place of the oldest.
  await eventually('most had to make room', () => expect(ended).toBeGreaterThan(250));
  expect(await operator.metrics()).not.toEqual([]);
  expect(await operator.status('/livez')).toBe(200);
  expect(await operator.status('/readyz')).toBe(200);
});
