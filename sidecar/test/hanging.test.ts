/** Something that renders need hangs, and never answers: a render that was given up costs a restart at most. */
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { error, stopWatching, watchReadiness } from './hanging.ts';

let pod: Pod;
beforeAll(async () => {
  pod = await Pod.start({ workersPerPod: 2, timeouts: { render: '4s' } });
});
afterAll(() => pod?.stop());
afterEach(stopWatching);
beforeEach(() => Promise.all([0, 1].map((worker) => until(`worker-${worker} is up`, () => pod.isUp(worker)))));

test('a render that was given up and never ends costs its worker a restart, and the pod stays ready', async () => {
  const readiness = watchReadiness(pod);
  const before = [0, 1].map((worker) => pod.server(worker));
  const hung = [0, 1].map((n) => pod.get(`/?hold=1&id=forever-${n}`, { headers: { 'X-Request-ID': `forever-${n}` } }));
  for (const answer of await Promise.all(hung)) expect(error(answer)).toEqual([504, 'render-timeout', undefined]);
  await until('both are replaced', () => [0, 1].every((worker) => pod.server(worker) !== before[worker]));
  expect((await pod.get('/?id=after')).status).toBe(200);
  expect(await readiness()).toEqual(['200 ok']);
  const logs = (await Promise.all([0, 1].map((worker) => pod.supervisorLog(worker)))).flat();
  const kills = logs.filter(({ event }) => event === 'kill');
  expect(kills.map(({ reason }) => reason)).toEqual(['abandoned', 'abandoned']);
  expect(kills.flatMap(({ requests }) => requests).sort()).toEqual(['forever-0', 'forever-1']);
  for (const worker of [0, 1])
    expect(await pod.runtimeMetric(worker, 'corelane_worker_restarts_total', 'abandoned')).toBe(1);
});

test('no worker has ever had two requests at a time (I1)', () => {
  expect(Math.max(...pod.events({ event: 'begin' }).map(({ inFlight }) => inFlight ?? 0))).toBe(1);
});
