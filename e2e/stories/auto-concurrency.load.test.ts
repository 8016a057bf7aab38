/**
 * `concurrency: Auto` on a fleet whose renders wait for data: the workers find how many requests they can have at a
 * time, status says it, and the worker of a new pod begins with what the fleet has found.
 *
 * A load test: it depends on how many requests a second the machine renders.
 */
import { figure } from '../../operator/test/support/figure.ts';
import { eventually, get, kubectl, SELDOM_MS } from '../harness/cluster/cluster.ts';
import { Fleet } from '../harness/cluster/fleet.ts';
import { failedRequests } from '../harness/cluster/outcome.ts';
import type { LiveRenderService } from '../harness/cluster/renderservice.ts';

type WithConcurrency = LiveRenderService & { status?: { concurrency?: { median: number } } };

const fleet = new Fleet('auto-story');
const env = [
  { name: 'RENDER_MS', value: '10' },
  { name: 'WAIT_MS', value: '60' },
];

beforeAll(async () => {
  const spec = { concurrency: 'Auto', workersPerPod: 1, queue: { maxLength: 500, timeout: '20s' } };
  await fleet.create(2, spec, { env });
  // One request at a time would be 14 a second for each of the two workers.
  await fleet.startClients(40, 300);
}, 400_000);

afterAll(async () => {
  await fleet.stopClients();
  await fleet.remove();
});

const status = async () =>
  (await get<WithConcurrency>('-n', fleet.namespace, 'renderservice', fleet.name)).status ?? {};
const podNames = async () => (await fleet.livePods()).map(({ metadata }) => metadata.name);

/** What the fleet tells new workers, in the ConfigMap that the pods read. */
async function beginning(): Promise<number> {
  interface ConfigMap {
    data?: Record<string, string>;
  }
  const { data = {} } = await get<ConfigMap>('-n', fleet.namespace, 'configmap', `${fleet.name}-live`);
  return Number(/^concurrency-start=([0-9]+)$/m.exec(Object.values(data).join('\n'))?.[1] ?? 1);
}

/** What the supervisor of a pod's worker has said of its number of requests, the first one first. */
async function changes(pod: string): Promise<{ from: number; to: number; waitRatio?: number }[]> {
  const lines = (await kubectl(['-n', fleet.namespace, 'logs', pod, '-c', 'worker-0'])).split('\n');
  return lines.filter((line) => line.includes('"event":"concurrency"')).map((line) => JSON.parse(line));
}

test('workers find a number, and one of a new pod begins with it', async () => {
  const [first] = await podNames();
  await eventually(
    'both workers to have found more than one',
    180_000,
    async () => (((await status()).concurrency?.median ?? 0) > 2 && (await beginning()) > 2) || undefined,
    SELDOM_MS,
  );
  // It was found by measuring: with a ratio of waiting to computing, from one request on.
  expect((await changes(first as string))[0]).toMatchObject({ from: 1, waitRatio: expect.any(Number) });
  const before = await podNames();
  await kubectl(['-n', fleet.namespace, 'delete', 'pod', first as string, '--wait=false']);
  const born = await eventually('a pod in its place to be up', 120_000, async () => {
    const name = (await podNames()).find((pod) => !before.includes(pod));
    return name && (await changes(name)).length > 0 ? name : undefined;
  });
  const [begins] = await changes(born);
  // This one has measured nothing yet.
  expect(begins).not.toHaveProperty('waitRatio');
  figure('concurrency that a worker of a new pod begins with', Number(begins?.to), '', '> 2');
  expect(begins?.to).toBeGreaterThan(2);
}, 400_000);

test('no request is lost', async () => {
  await fleet.settled();
  const clients = await fleet.stopClients();
  const failed = failedRequests(clients);
  const sent = clients.reduce((sum, { timeline }) => sum + timeline.length, 0);
  figure('requests lost', failed.length, `of ${sent}`, '0');
  expect(failed).toEqual([]);
}, 300_000);
