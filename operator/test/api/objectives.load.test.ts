/**
 * What status says about objectives, of a pod whose pages this file gives in the place of a sidecar.
 *
 * A load test: figures take two rounds of the sampler, of 15 s each, and a write of the status, of 30 s.
 */
import { createServer, type Server } from 'node:http';
import { eventually } from '../support/eventually.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import { sharedServer, World } from '../support/world.ts';

const ADDRESS = '127.53.98.2';
/** A round of the sampler takes 15 s; after two the figures count, and they are written at most twice a minute. */
const PATIENT = { timeoutMs: 120_000, everyMs: 300 };

let world: World;
let operator: OperatorProcess;
let stats: Server;
/** Every look at the page finds 1,000 more requests: one of them failed, 20 took longer than 500 ms. */
let looks = 0;

function counts(): string {
  looks += 1;
  return `corelane_requests_total{code="2xx",reason=""} ${999 * looks}
corelane_requests_total{code="5xx",reason="queue-full"} ${looks}
corelane_request_duration_seconds_bucket{le="0.25"} ${900 * looks}
corelane_request_duration_seconds_bucket{le="0.5"} ${980 * looks}
corelane_request_duration_seconds_bucket{le="+Inf"} ${1000 * looks}
corelane_request_duration_seconds_count ${1000 * looks}
`;
}

beforeAll(async () => {
  world = await World.create(sharedServer(), 'objectives');
  operator = await world.startOperator();
  stats = createServer((request, response) => {
    if (request.url === '/corelane/metrics') response.end(counts());
    else if (request.url?.startsWith('/metrics?'))
      response.end('haproxy_server_status{proxy="workers",server="worker-0",state="UP"} 1\n');
    else response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => stats.listen(8999, ADDRESS, resolve));
});

afterAll(async () => {
  await OperatorProcess.killAll();
  stats.close();
  stats.closeAllConnections();
});

async function objectives() {
  return (await world.get('RenderService', 'shop')).status?.objectives;
}

test('there are none without spec.objectives, and nobody asks for the counts', async () => {
  await world.createRenderService('shop', { replicas: 1 });
  const pod = await eventually('there is a pod', async () => {
    const [first] = await world.list('Pod');
    expect(first).toBeDefined();
    return first;
  });
  await world.makePodsReady('shop');
  const status = { podIP: ADDRESS, podIPs: [{ ip: ADDRESS }] };
  await world.admin.patch(`${world.path('Pod', pod?.metadata.name)}/status`, { status });
  await eventually(
    'the pod has been asked',
    async () => expect(await operator.sum('corelane_operator_pod_samples_total')).toBeGreaterThan(0),
    PATIENT,
  );
  expect([await objectives(), looks]).toEqual([undefined, 0]);
});

test('with them it says how the last minutes were', async () => {
  await world.patchSpec('shop', { objectives: { availability: 99.95, latency: { p99: '500ms', p90: '250ms' } } });
  const found = await eventually(
    'there are figures',
    async () => {
      const figures = await objectives();
      expect(figures?.requests).toBeGreaterThan(0);
      return figures;
    },
    PATIENT,
  );
  expect(found).toEqual({
    seconds: expect.any(Number),
    requests: expect.any(Number),
    availabilityPercent: 99.9,
    latencyPercent: { p90: 90, p99: 98 },
  });
  expect(found.requests % 1000).toBe(0);
  expect(found.seconds).toBeGreaterThanOrEqual(30);
});

test('one that is taken away is gone from the status, and so are all', async () => {
  await world.patchSpec('shop', { objectives: { availability: null, latency: { p90: null } } });
  await eventually('p99 is left', async () => {
    const figures = await objectives();
    expect(figures).toMatchObject({ latencyPercent: { p99: 98 } });
    expect(Object.keys({ ...figures, ...figures.latencyPercent }).toSorted()).toEqual(
      ['latencyPercent', 'p99', 'requests', 'seconds'].toSorted(),
    );
  });
  await world.patchSpec('shop', { objectives: null });
  await eventually('nothing is left', async () => expect(await objectives()).toBeUndefined());
});
