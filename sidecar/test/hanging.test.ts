/**
 * Something that renders need hangs, and never answers: a render that was given up costs a restart at most. What may
 * change something is not given up so soon.
 */
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { error, stopWatching, watchReadiness } from './hanging.ts';

const WORKERS = [0, 1, 2];

let pod: Pod;
beforeAll(async () => {
  pod = await Pod.start({ workersPerPod: WORKERS.length, timeouts: { render: '4s' } });
});
afterAll(() => pod?.stop());
afterEach(stopWatching);
beforeEach(() => Promise.all(WORKERS.map((worker) => until(`worker-${worker} is up`, () => pod.isUp(worker)))));

test('a render that was given up and never ends costs its worker a restart, and the pod stays ready; a POST that takes longer is answered', async () => {
  const readiness = watchReadiness(pod);
  const before = WORKERS.map((worker) => pod.server(worker));
  // It begins before the renders, so it has taken longer than they may when they are given up.
  const payment = pod.get('/?hold=1&id=payment', { method: 'POST', body: 'x' });
  const { worker: payer } = await pod.begun('payment');
  const others = WORKERS.filter((worker) => worker !== payer);
  const hung = [0, 1].map((n) => pod.get(`/?hold=1&id=forever-${n}`, { headers: { 'X-Request-ID': `forever-${n}` } }));
  for (const answer of await Promise.all(hung)) expect(error(answer)).toEqual([504, 'render-timeout', undefined]);
  await until('both are replaced', () => others.every((worker) => pod.server(worker) !== before[worker]));
  expect((await pod.get('/?id=after')).status).toBe(200);
  expect(await pod.isUp(payer)).toBe(true);
  pod.release('payment');
  expect((await payment).status).toBe(200);
  expect(pod.server(payer)).toBe(before[payer]);
  expect(await readiness()).toEqual(['200 ok']);
  const logs = (await Promise.all(WORKERS.map((worker) => pod.supervisorLog(worker)))).flat();
  const kills = logs.filter(({ event }) => event === 'kill');
  expect(kills.map(({ reason }) => reason)).toEqual(['abandoned', 'abandoned']);
  expect(kills.flatMap(({ requests }) => requests).sort()).toEqual(['forever-0', 'forever-1']);
  for (const worker of others)
    expect(await pod.runtimeMetric(worker, 'corelane_worker_restarts_total', 'abandoned')).toBe(1);
});

test('no worker has ever had two requests at a time (I1)', () => {
  expect(Math.max(...pod.events({ event: 'begin' }).map(({ inFlight }) => inFlight ?? 0))).toBe(1);
});
