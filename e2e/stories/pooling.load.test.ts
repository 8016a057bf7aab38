/**
 * Connections that stick to one pod, on a real cluster: the other pods' workers serve most of what comes through them.
 *
 * A load test: it counts shares of requests.
 */
import { figure } from '../../operator/test/support/figure.ts';
import { apply, eventually, get, kubectl } from '../harness/cluster/cluster.ts';
import { Fleet } from '../harness/cluster/fleet.ts';
import { type LoadResult, startLoad } from '../harness/cluster/load.ts';
import type { LivePod } from '../harness/cluster/renderservice.ts';

const PODS = 3;
const fleet = new Fleet('pooling-story');

beforeAll(() => fleet.create(PODS), 400_000);
afterAll(() => fleet.remove());

/**
 * Addresses that nobody has, in the ranges of the cluster's own nodes: the headless Service gets them beside its pods,
 * as if there were a fleet of 500 most of which has just died.
 */
async function addressesOfNobody(): Promise<string[]> {
  const { items } = await get<{ items: { spec: { podCIDR: string } }[] }>('nodes');
  const ranges = items.map(({ spec }) => spec.podCIDR.replace(/\.0\/24$/, ''));
  return ranges.flatMap((range) => Array.from({ length: 165 }, (_unused, index) => `${range}.${90 + index}`));
}

function endpointSlice(index: number, addresses: string[]) {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: `nobody-${index}`,
      namespace: fleet.namespace,
      labels: { 'kubernetes.io/service-name': `${fleet.name}-peers`, nobody: 'true' },
    },
    addressType: 'IPv4',
    ports: [{ name: 'peers', port: 9001, protocol: 'TCP' }],
    endpoints: addresses.map((address) => ({ addresses: [address], conditions: { ready: true } })),
  };
}

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
  figure('requests rendered by other pods than the one that got them', (100 * count) / ok, '%', '> 50 %');
  expect(count).toBeGreaterThan(ok / 2);
  expect(served).toHaveLength(2 * PODS);
});

test('a fleet of 500 is found over DNS, a part of it is known, and dead peers cost no request', async () => {
  const [pod] = (await fleet.livePods()) as [LivePod];
  const addresses = await addressesOfNobody();
  const items = [0, 1, 2, 3, 4].map((index) => endpointSlice(index, addresses.slice(99 * index, 99 * (index + 1))));
  await apply(JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
  await eventually(
    'the pod to know as many as it may',
    60_000,
    async () => (await knownPeers(pod)) === 64 || undefined,
  );
  expect(await loadOn(pod)).toMatchObject({ ok: 600, failed: 0, overlaps: 0 });
  await kubectl(['-n', fleet.namespace, 'delete', 'endpointslices', '-l', 'nobody=true']);
  await eventually('the pod to forget them', 60_000, async () => (await knownPeers(pod)) === PODS || undefined);
});
