/** What the operator reads of a pod: the metrics of HAProxy, and of the supervisor of a worker that had trouble. */

import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { type PodSample, type Stall, samplePod } from '../../operator/src/pods/sample.ts';

let pod: Pod;
const asked: string[] = [];
let lastStalls: Stall[] = [];
/** Reads the pod as the operator does, and notes which pages that took. */
async function sample(before?: PodSample): Promise<PodSample> {
  asked.length = 0;
  const page = async (path: string) => {
    asked.push(path.split('?')[0] as string);
    const { status, body } = await pod.get(path, { port: PORTS.stats });
    if (status !== 200) throw new Error(`${status}`);
    return body;
  };
  const { sample: read, stalls } = await samplePod(page, ['worker-0', 'worker-1'], { before });
  lastStalls = stalls;
  return read;
}

beforeAll(async () => {
  const queue = { maxLength: 2, timeout: '2s' };
  pod = await Pod.start({ workersPerPod: 2, queue, timeouts: { render: '4s' }, watchdog: { stallTimeout: '2s' } });
  for (const worker of [0, 1]) await until(`worker-${worker} is up`, () => pod.isUp(worker));
});
afterAll(() => pod?.stop());

test('a pod at rest costs one request, and a small page', async () => {
  const before = await sample();
  expect(before.workers.map(({ name, up, busy }) => ({ name, up, busy }))).toEqual([
    { name: 'worker-0', up: true, busy: 0 },
    { name: 'worker-1', up: true, busy: 0 },
  ]);
  expect(await sample(before)).toEqual(before);
  expect(asked).toEqual(['/metrics']);
});

test('busy workers, the queue, and both kinds of refusal are counted', async () => {
  const before = await sample();
  const busy = [0, 1].map((n) => pod.get(`/?hold=1&id=sample-${n}`));
  await Promise.all([pod.begun('sample-0'), pod.begun('sample-1')]);
  const waiting = [0, 1].map((n) => pod.get(`/?id=sample-waits-${n}`));
  await pod.queued(2);
  expect((await pod.get('/?id=sample-refused')).headers['x-corelane-error']).toBe('queue-full');
  const { workers, queue, ...counters } = await sample(before);
  expect([workers.map((worker) => worker.busy), queue]).toEqual([[1, 1], 2]);
  expect(counters).toEqual({ queueFullTotal: before.queueFullTotal + 1, queueTimeoutTotal: before.queueTimeoutTotal });

  const errors = (await Promise.all(waiting)).map(({ headers }) => headers['x-corelane-error']);
  expect(errors).toEqual(['queue-timeout', 'queue-timeout']);
  pod.release('sample-0', 'sample-1');
  await Promise.all(busy);
  expect(await sample(before)).toEqual({
    ...before,
    queueFullTotal: before.queueFullTotal + 1,
    queueTimeoutTotal: before.queueTimeoutTotal + 2,
  });
});

test('a worker whose render was given up is there, and has no room', async () => {
  const before = await sample();
  const hung = pod.get('/?until=dependency&id=hung', { headers: { 'X-Request-ID': 'hung' } });
  const { worker } = await pod.begun('hung');
  await until('HAProxy gives it no more', async () => !(await pod.isUp(worker)));
  const { workers } = await sample(before);
  expect(workers[worker]).toMatchObject({ up: true, blocked: true });
  expect(workers[1 - worker]).toMatchObject({ up: true, busy: 0 });
  pod.release('dependency');
  await hung;
  await until('it takes requests', () => pod.isUp(worker));
  expect((await sample()).workers[worker]).not.toHaveProperty('blocked');
});

test('a worker that was stuck: where, and for how long', async () => {
  const before = await sample();
  expect(lastStalls).toEqual([]);
  await pod.get('/?id=stuck&loop=1', { method: 'POST' });
  const { worker } = await pod.begun('stuck');
  await until('it is up again', () => pod.isUp(worker));
  await sample(before);
  expect(lastStalls).toMatchObject([
    { worker: `worker-${worker}`, in: expect.stringMatching(/^render \/app\/worker.mjs:/) },
  ]);
  expect(lastStalls[0]?.seconds).toBeGreaterThanOrEqual(2);
});

test('a worker that ends again and again is told from one that has ended once', async () => {
  let last = await sample();
  const ups = () => pod.events({ event: 'up', worker: 0 });
  const end = async () => {
    const before = ups();
    await pod.kill(0, before.at(-1)?.pid ?? 0, 'KILL');
    await until('it is started again', () => ups().length > before.length);
    await until('it is up again', () => pod.isUp(0));
    last = await sample(last);
    return last.workers[0];
  };
  // The first time it can be back before HAProxy has noticed anything; then nobody is asked.
  expect(await end()).not.toHaveProperty('crashLoop');
  const loop = await until('a loop', async () => (await end())?.crashLoop);
  expect(asked).toContain('/workers/0/metrics');
  expect(loop.exitCode).toBe(137);
  expect(loop.backoffSeconds).toBeGreaterThan(0.5);

  await until('it has been up for a while', async () => {
    last = await sample(last);
    return last.workers[0]?.crashLoop === undefined;
  });
});
