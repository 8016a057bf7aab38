/**
 * Objects that somebody writes who means no good, where that takes long: too large for a small etcd, megabytes of them,
 * a Lease that is nobody's.
 *
 * A load test: two API servers of their own, 150 MB to read, and a wait of a minute for the Lease.
 */
import { readFileSync } from 'node:fs';
import type { Json } from '../support/api-client.ts';
import { ApiServer } from '../support/api-server.ts';
import { eventually } from '../support/eventually.ts';
import { figure } from '../support/figure.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import { asTold, HARMLESS, TOLD } from '../support/told.ts';
import { podTemplate, sharedServer, World } from '../support/world.ts';
import { expectToWork, stalledMessage } from './hostile-objects.ts';

let world: World;

afterEach(() => OperatorProcess.killAll());

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
    expect(await stalledMessage(world, 'grows', 'Rejected')).toMatch(asTold(TOLD.rejectedTooLarge));
    await expectToWork(world, operator);
    await eventually('one Event tells it', async () =>
      expect((await world.events('grows')).map(({ reason }) => reason)).toEqual(['Rejected']),
    );
  } finally {
    await OperatorProcess.killAll();
    await server.remove();
  }
});

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
  await expectToWork(world, operator);
  const peak = peakKb(operator);
  figure('peak memory of the operator with 150 foreign objects of 1 MB', peak / 1024, 'MiB', '< 320 MiB');
  expect(peak).toBeLessThan(MEMORY_LIMIT_KB);
}

test(HARMLESS.lease, async () => {
  world = await World.create(sharedServer(), 'hostile-lease');
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
  const began = performance.now();
  await operator.untilLeading(75_000);
  figure('time to take over a Lease of an unknown holder', (performance.now() - began) / 1000, 's', '< 75 s');
});
