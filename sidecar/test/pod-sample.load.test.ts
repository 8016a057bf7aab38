/**
 * What the operator reads of a pod whose workers had trouble, the metrics of a supervisor among them. In load: a
 * time-out of renders, a stall limit of two seconds, and how fast HAProxy notices a worker's end.
 */
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { figure } from '../../operator/test/support/figure.ts';
import { Reader } from './pod-sample.ts';

let pod: Pod;
let reader: Reader;
beforeAll(async () => {
  pod = await Pod.start({ workersPerPod: 2, timeouts: { render: '4s' }, watchdog: { stallTimeout: '2s' } });
  for (const worker of [0, 1]) await until(`worker-${worker} is up`, () => pod.isUp(worker));
  reader = new Reader(pod);
});
afterAll(() => pod?.stop());

test('a worker whose render was given up is there, and has no room', async () => {
  const before = await reader.sample();
  const hung = pod.get('/?until=dependency&id=hung', { headers: { 'X-Request-ID': 'hung' } });
  const { worker } = await pod.begun('hung');
  await until('HAProxy gives it no more', async () => !(await pod.isUp(worker)));
  const { workers } = await reader.sample(before);
  expect(workers[worker]).toMatchObject({ up: true, blocked: true });
  expect(workers[1 - worker]).toMatchObject({ up: true, busy: 0 });
  pod.release('dependency');
  await hung;
  await until('it takes requests', () => pod.isUp(worker));
  expect((await reader.sample()).workers[worker]).not.toHaveProperty('blocked');
});

test('a worker that was stuck: where, and for how long', async () => {
  const before = await reader.sample();
  expect(reader.lastStalls).toEqual([]);
  await pod.get('/?id=stuck&loop=1', { method: 'POST' });
  const { worker } = await pod.begun('stuck');
  await until('it is up again', () => pod.isUp(worker));
  await reader.sample(before);
  expect(reader.lastStalls).toMatchObject([
    { worker: `worker-${worker}`, in: expect.stringMatching(/^render \/app\/worker.mjs:/) },
  ]);
  figure('time that a stuck worker is said to have been stuck', Number(reader.lastStalls[0]?.seconds), 's', '>= 2 s');
  expect(reader.lastStalls[0]?.seconds).toBeGreaterThanOrEqual(2);
});

test('a worker that ends again and again is told from one that has ended once', async () => {
  let last = await reader.sample();
  const ups = () => pod.events({ event: 'up', worker: 0 });
  const end = async () => {
    const before = ups();
    await pod.kill(0, before.at(-1)?.pid ?? 0, 'KILL');
    await until('it is started again', () => ups().length > before.length);
    await until('it is up again', () => pod.isUp(0));
    last = await reader.sample(last);
    return last.workers[0];
  };
  // The first time it can be back before HAProxy has noticed anything; then nobody is reader.asked.
  expect(await end()).not.toHaveProperty('crashLoop');
  const loop = await until('a loop', async () => (await end())?.crashLoop);
  expect(reader.asked).toContain('/workers/0/metrics');
  expect(loop.exitCode).toBe(137);
  figure('back-off of a worker that ends again and again', loop.backoffSeconds, 's', '> 0.5 s');
  expect(loop.backoffSeconds).toBeGreaterThan(0.5);

  await until('it has been up for a while', async () => {
    last = await reader.sample(last);
    return last.workers[0]?.crashLoop === undefined;
  });
});
