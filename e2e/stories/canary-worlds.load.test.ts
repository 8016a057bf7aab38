/**
 * What may come in the middle of a canary, under an open-loop load, with a client that keeps its connection and one
 * that finds pods as an ingress does: it never becomes ready, another change comes, the fleet grows and shrinks, the
 * node of its pod is drained, the RenderService is deleted. Nothing is lost, and the share is what it was.
 *
 * A load test: it counts shares of requests, and no request may fail for minutes.
 */
import { figure } from '../../operator/test/support/figure.ts';
import { eventually, get, kubectl } from '../harness/cluster/cluster.ts';
import { Fleet } from '../harness/cluster/fleet.ts';
import { failedRequests } from '../harness/cluster/outcome.ts';
import { type LivePod, objectsOf } from '../harness/cluster/renderservice.ts';
import { readFleet, renderedBy, untilAsked, untilRollout } from '../harness/cluster/rollout.ts';

const PODS = 2;
const SHARE = 50;
const fleet = new Fleet('canary-worlds');
let cordoned: string | undefined;

beforeAll(async () => {
  const env = [{ name: 'RENDER_MS', value: '20' }];
  const canary = {
    steps: [{ share: SHARE, approval: true }],
    analysis: { minRequests: 0, latency: { enabled: false } },
  };
  const rollout = { canary, rolling: { progressDeadlineSeconds: 30 } };
  await fleet.create(PODS, { rollout, queue: { maxLength: 1_000, timeout: '20s' } }, { env });
  await fleet.startClients(15, 900);
}, 400_000);

afterAll(async () => {
  if (cordoned) await kubectl(['uncordon', cordoned]);
  await fleet.stopClients();
  await fleet.remove();
});

const change = (version: string, more: object = {}) =>
  fleet.change({ template: { metadata: { annotations: { 'example.com/version': version } }, ...more } });

async function podsOfRevision(revision: string): Promise<LivePod[]> {
  const selector = `corelane.dev/renderservice=${fleet.name},corelane.dev/revision=${revision}`;
  const { items } = await get<{ items: LivePod[] }>('-n', fleet.namespace, 'pods', '-l', selector);
  return items.filter(({ metadata }) => !metadata.deletionTimestamp);
}

test('one whose image is nowhere: nobody is sent to it, and it is over when its time is', async () => {
  const { spec } = (await readFleet(fleet)) as unknown as { spec: { template: { spec: { containers: object[] } } } };
  const { containers } = spec.template.spec;
  const without = containers.map((one) => ({ ...one, image: 'corelane.local/nowhere:1' }));
  await change('1', { spec: { containers: without } });
  const shares = new Set<number>();
  const { reason, message } = await untilRollout(fleet, 'it to be aborted', ({ phase, canary }) => {
    shares.add(canary?.share ?? 0);
    return phase === 'Aborted';
  });
  expect([reason, [...shares]]).toEqual(['NeverReady', [0]]);
  expect(message).toMatch(/stable serves with 2 of 2/);
  await change('2', { spec: { containers } });
}, 300_000);

test('another change in the middle of one: that gets nothing any more, and the other one begins with its first step', async () => {
  const { revision: before } = await untilAsked(fleet, SHARE, ({ canary }) => canary?.attempt === 1);
  await change('3');
  const { revision, canary } = await untilAsked(fleet, SHARE, (rollout) => rollout.revision !== before);
  expect(canary).toMatchObject({ revision, attempt: 1, step: 1 });
  expect(await renderedBy(fleet, before, 200)).toEqual([0, 200]);
}, 300_000);

test('more pods, and fewer: both sides, and the share stays', async () => {
  for (const replicas of [6, PODS]) {
    await fleet.change({ replicas });
    const pods = replicas + replicas / 2;
    const { canary, revision } = await untilRollout(
      fleet,
      `${pods} pods that know it`,
      (rollout) => rollout.canary?.pods === pods && rollout.canary.appliedPods === pods,
    );
    expect(canary).toMatchObject({ revision, share: SHARE });
    expect((await podsOfRevision(revision)).length).toBe(replicas / 2);
  }
}, 300_000);

test('the node of its only pod is drained: another pod takes its place, and it goes on', async () => {
  const { revision } = await untilAsked(fleet, SHARE, () => true);
  const [pod] = await podsOfRevision(revision);
  const node = pod?.spec.nodeName as string;
  cordoned = node;
  const selector = `--pod-selector=corelane.dev/renderservice=${fleet.name}`;
  await kubectl(['drain', node, '--ignore-daemonsets', '--delete-emptydir-data', selector, '--timeout=240s'], {
    timeoutMs: 300_000,
  });
  await untilAsked(fleet, SHARE, ({ canary }) => canary?.pods === PODS + 1 && canary.appliedPods === PODS + 1);
  const pods = await podsOfRevision(revision);
  expect(pods.map(({ metadata }) => metadata.name)).not.toContain(pod?.metadata.name);
  await kubectl(['uncordon', node]);
  cordoned = undefined;
  const [own, all] = await renderedBy(fleet, revision, 400);
  figure(`requests of a canary of ${SHARE} % after the drain of its node`, own, `of ${all}`, '> 100');
  expect(all).toBe(400);
  expect(own).toBeGreaterThan(100);
}, 500_000);

test('no request is lost', async () => {
  const clients = await fleet.stopClients();
  const failed = failedRequests(clients);
  const sent = clients.reduce((sum, { timeline }) => sum + timeline.length, 0);
  figure('requests lost', failed.length, `of ${sent}`, '0');
  expect(failed).toEqual([]);
  for (const { timeline } of clients) expect(timeline.length).toBeGreaterThan(0);
}, 200_000);

test('it is deleted in the middle: nothing of either side is left', async () => {
  await kubectl(['-n', fleet.namespace, 'delete', 'renderservice', fleet.name, '--wait=false']);
  await eventually('all to be gone', 120_000, async () => {
    const left = await objectsOf(fleet.namespace, fleet.name);
    return left.length === 0 || undefined;
  });
}, 200_000);
