/**
 * Settings that reach pods that run: `kubectl apply`, a second later all pods have them, no pod is another one, and the
 * clients have noticed nothing.
 *
 * A load test: no request may fail for minutes.
 */
import { figure } from '../../operator/test/support/figure.ts';
import { eventually, get, SELDOM_MS } from '../harness/cluster/cluster.ts';
import { Fleet } from '../harness/cluster/fleet.ts';
import { failedRequests } from '../harness/cluster/outcome.ts';
import { type LiveRenderService, untilReady } from '../harness/cluster/renderservice.ts';

/** What is changed, one after the other; all of it is live. */
const CHANGES: [what: string, spec: object][] = [
  ['more places in the queue', { queue: { maxLength: 1_000 } }],
  ['two requests at a time', { concurrency: 2 }],
  ['a longer time for renders', { timeouts: { render: '50s' } }],
  ['one request at a time', { concurrency: 1 }],
  ['one pod is asked', { pooling: { maxAsks: 1 } }],
  ['no pod leaves the Service', { readiness: { shedWhenFull: false } }],
];

interface Status {
  liveSettings?: { observedGeneration: number; pods: number };
}
type WithLive = LiveRenderService & { status?: Status };

const fleet = new Fleet('live-story');

beforeAll(async () => {
  await fleet.create(4, { queue: { maxLength: 500, timeout: '20s' } }, { env: [{ name: 'RENDER_MS', value: '50' }] });
  await fleet.startClients(40, 600);
}, 400_000);

afterAll(async () => {
  await fleet.stopClients();
  await fleet.remove();
});

const podNames = async () => (await fleet.livePods()).map(({ metadata }) => metadata.name).toSorted();
const read = () => get<WithLive>('-n', fleet.namespace, 'renderservice', fleet.name);

/** Changes the spec, and waits until status says that all pods have it. Gives how long that took. */
async function change(spec: object): Promise<number> {
  const began = performance.now();
  await fleet.change(spec);
  await eventually('all pods to have it', 60_000, async () => {
    const { metadata, status } = await read();
    const { observedGeneration, pods } = status?.liveSettings ?? {};
    return (observedGeneration === metadata.generation && pods === 4) || undefined;
  });
  return (performance.now() - began) / 1000;
}

test('each change reaches all pods, and no pod is another one', async () => {
  const before = await podNames();
  expect(before).toHaveLength(4);
  for (const [what, spec] of CHANGES) figure(`${what}: time until all pods have it`, await change(spec), 's');
  await untilReady(fleet.namespace, fleet.name);
  expect(await podNames()).toEqual(before);
}, 300_000);

test('a change of another field replaces them, and the new ones have all of it from the start', async () => {
  const before = await podNames();
  await change({ queue: { timeout: '19s' } });
  await eventually(
    'other pods',
    180_000,
    async () => {
      const now = await podNames();
      return (now.length === 4 && now.every((name) => !before.includes(name))) || undefined;
    },
    SELDOM_MS,
  );
  await fleet.settled();
  const { metadata, status } = await read();
  expect(status?.liveSettings).toEqual({ observedGeneration: metadata.generation, pods: 4 });
}, 300_000);

test('no request is lost', async () => {
  const clients = await fleet.stopClients();
  const failed = failedRequests(clients);
  const sent = clients.reduce((sum, { timeline }) => sum + timeline.length, 0);
  figure('requests lost', failed.length, `of ${sent}`, '0');
  expect(failed).toEqual([]);
  for (const { timeline } of clients) expect(timeline.length).toBeGreaterThan(0);
});
