/** Connections that stick to one pod, on a real cluster: the other pods' workers serve most of what comes through them. */
import { eventually, kubectl } from '../support/cluster.ts';
import { Fleet } from '../support/fleet.ts';
import { type LoadResult, startLoad } from '../support/load.ts';
import type { LivePod } from '../support/renderservice.ts';

const PODS = 3;
const fleet = new Fleet('pooling-story');

beforeAll(() => fleet.create(PODS), 400_000);
afterAll(() => fleet.remove());

/** As many keep-alive clients as the fleet has workers, all of them on one pod. */
async function loadOn({ status }: LivePod): Promise<LoadResult> {
  const url = `http://${status.podIP}:9000/`;
  const args = ['--url', url, '--requests', '600', '--concurrency', String(2 * PODS), '--keep-alive'];
  return (await startLoad(fleet.namespace, 'pinned', args)).result(120_000);
}

/** Addresses that a pod has from DNS, its own among them. */
async function knownPeers({ metadata }: LivePod): Promise<number> {
  const path = `/api/v1/namespaces/${fleet.namespace}/pods/${metadata.name}:8999/proxy/metrics?metrics=haproxy_server_status`;
  const page = await kubectl(['get', '--raw', path]);
  return page.split('\n').filter((line) => /\{proxy="peers",.*state="UP"\} 1$/.test(line)).length;
}

test('with pooling the other pods serve more than half of the requests', async () => {
  const [pod] = (await fleet.livePods()) as [LivePod];
  await eventually('the pod to know its peers', 60_000, async () => (await knownPeers(pod)) === PODS || undefined);
  const { ok, failed, overlaps, workers } = await loadOn(pod);
  expect({ ok, failed, overlaps }).toEqual({ ok: 600, failed: 0, overlaps: 0 });
  const served = Object.entries(workers as Record<string, { requests: number }>);
  const elsewhere = served.filter(([name]) => !name.startsWith(pod.metadata.name));
  const count = elsewhere.reduce((sum, [, { requests }]) => sum + requests, 0);
  console.log(`pooling: ${count} of ${ok} requests were rendered by other pods than the one that got them`);
  expect(count).toBeGreaterThan(ok / 2);
  expect(served).toHaveLength(2 * PODS);
}, 200_000);
