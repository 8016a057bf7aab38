/** The supervisor in a pod that serves: a worker that crashes, hangs or ends costs nothing but what it has begun. */

import { docker } from '../../e2e/harness/engine/docker.ts';
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { runtimePage } from './explain.ts';
import { expectRestart, post, statuses, underLoad } from './supervisor.ts';

let pod: Pod;
beforeAll(async () => {
  // Longer than a worker can be without CPU.
  pod = await Pod.start({ workersPerPod: 2, watchdog: { stallTimeout: '4s' }, queue: { timeout: '60s' } });
});
afterAll(() => pod?.stop());
// A fresh back-off for each test would cost 10 s; a worker that is up is enough.
beforeEach(() => Promise.all([0, 1].map((worker) => until(`worker-${worker} is up`, () => pod.isUp(worker)))));

test('the supervisors are there, and workers are watched', async () => {
  for (const worker of [0, 1]) expect(await pod.runtimeMetric(worker, 'corelane_worker_up')).toBe(1);
  expect((await pod.supervisorLog(0)).find(({ event }) => event === 'up')).toMatchObject({ watched: true });
  expect((await pod.get('/workers/2/metrics', { port: PORTS.stats })).status).toBe(404);
});

test('an infinite loop: down, killed, serving again; only its own request is lost', async () => {
  const stalled = (worker: number) => pod.runtimeMetric(worker, 'corelane_worker_stalls_total');
  const before = [await stalled(0), await stalled(1)];
  const { lost, worker } = await underLoad(pod, 'loop', () => 0, 'loop=1');
  expect([lost.status, lost.headers['x-corelane-error']]).toEqual([502, 'worker-stuck']);
  expect(lost.headers['x-corelane-stuck']).toBeUndefined();
  expect(await stalled(worker)).toBe(Number(before[worker]) + 1);
  // The same place in the supervisor's log, on its page, and in the access log.
  const [logged] = (await pod.supervisorLog(worker)).filter(({ event }) => event === 'stalled');
  const place = expect.stringMatching(/^render \/app\/worker\.mjs:[0-9]+$/);
  expect(logged).toMatchObject({
    in: place,
    stack: expect.arrayContaining([expect.objectContaining({ function: 'render' })]),
  });
  const { requests } = logged as { requests: string[] };
  const page = await pod.get(`/workers/${worker}/stalls`, { port: PORTS.stats });
  // No more than that for all who can reach the pod: ids and stacks only for those who are in it.
  expect(JSON.parse(page.body).stalls).toEqual([{ time: expect.any(String), seconds: expect.any(Number), in: place }]);
  const whole = JSON.parse(await runtimePage(pod, worker, '/stalls'));
  expect(whole.stalls).toMatchObject([{ in: place, requests }]);
  const line = await until('it is logged', async () => (await pod.accessLog()).find(({ stuckIn }) => stuckIn));
  expect(line).toMatchObject({ stuckIn: place, status: 502, error: 'worker-stuck', requestId: requests[0] });
});

test('kill -9 of the worker process', async () => {
  const safe = Array.from({ length: 10 }, (_unused, n) => pod.get(`/?id=safe-${n}&ms=100`));
  const { lost } = await underLoad(pod, 'sigkill', ({ worker, pid }) => pod.kill(worker, pid, 'KILL'), 'hold=1');
  expect(lost.status).toBe(502);
  expect(statuses(await Promise.all(safe))).toEqual(Array(10).fill(200));
});

test.each([
  ['exit=0', 'exit'],
  ['fault=throw', 'error'],
])('a worker that ends by itself (%s) is started again', (query, reason) => expectRestart(pod, query, reason));

test('children of a killed worker are gone, those without a parent too, and nobody is left unreaped', async () => {
  // Waits without blocking: the watchdog must not be faster with the kill than this test.
  const lost = post(pod, 'helpers', 'helper=1&hold=1');
  const { worker, pid: first } = await pod.begun('helpers');
  await until(
    'both helpers run',
    async () => (await pod.processes(worker)).filter(({ args }) => args.startsWith('sleep 100')).length === 2,
  );
  await pod.kill(worker, first, 'KILL');
  await lost;
  await until('another one is up', () => pod.events({ event: 'up', worker }).at(-1)?.pid !== first);
  const isLeft = ({ args, state }: { args: string; state: string }) => args.includes('sleep') || state.startsWith('Z');
  await until('nothing is left', async () => !(await pod.processes(worker)).some(isLeft));
});

test('a script that is run in the container is not supervised', async () => {
  const script = 'console.log(process.env.CORELANE_SUPERVISOR ?? "alone")';
  expect(await docker('exec', pod.workers[0] ?? '', 'node', '-e', script)).toBe('alone');
  expect(await docker('exec', pod.workers[0] ?? '', 'node', '/app/once.cjs', 'a b')).toBe('once ["a b"]');
});

test('no worker has ever had two requests at a time (I1)', () => {
  expect(Math.max(...pod.events({ event: 'begin' }).map(({ inFlight }) => inFlight ?? 0))).toBe(1);
});
