/** What the operator reads of a pod: the metrics of HAProxy. */
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { isFull, readEventLoops } from '../../operator/src/pods/sample.ts';
import { Reader } from './pod-sample.ts';

let pod: Pod;
let reader: Reader;
beforeAll(async () => {
  pod = await Pod.start({ workersPerPod: 2, queue: { maxLength: 2, timeout: '6s' } });
  for (const worker of [0, 1]) await until(`worker-${worker} is up`, () => pod.isUp(worker));
  reader = new Reader(pod);
});
afterAll(() => pod?.stop());

test('a pod at rest costs one request, and a small page', async () => {
  const before = await reader.sample();
  expect(before.workers.map(({ name, up, busy }) => ({ name, up, busy }))).toEqual([
    { name: 'worker-0', up: true, busy: 0 },
    { name: 'worker-1', up: true, busy: 0 },
  ]);
  expect(await reader.sample(before)).toEqual(before);
  expect(reader.asked).toEqual(['/metrics']);
});

test('busy workers, the queue, and both kinds of refusal are counted', async () => {
  const before = await reader.sample();
  const busy = [0, 1].map((n) => pod.get(`/?hold=1&id=sample-${n}`));
  await Promise.all([pod.begun('sample-0'), pod.begun('sample-1')]);
  const waiting = [0, 1].map((n) => pod.get(`/?id=sample-waits-${n}`));
  await pod.queued(2);
  expect((await pod.get('/?id=sample-refused')).headers['x-corelane-error']).toBe('queue-full');
  const full = await reader.sample(before);
  const { workers, queue, ...counters } = full;
  expect([workers.map((worker) => worker.busy), queue]).toEqual([[1, 1], 2]);
  expect(counters).toEqual({ queueFullTotal: before.queueFullTotal + 1, queueTimeoutTotal: before.queueTimeoutTotal });
  expect([isFull(full, before), isFull(before)]).toEqual([true, false]);
  // What the operator asks for then.
  const { body } = await pod.get('/corelane/metrics', { port: PORTS.stats });
  expect(readEventLoops(body)).toEqual({ activeS: expect.any(Number), idleS: expect.any(Number) });

  const errors = (await Promise.all(waiting)).map(({ headers }) => headers['x-corelane-error']);
  expect(errors).toEqual(['queue-timeout', 'queue-timeout']);
  pod.release('sample-0', 'sample-1');
  await Promise.all(busy);
  expect(await reader.sample(before)).toEqual({
    ...before,
    queueFullTotal: before.queueFullTotal + 1,
    queueTimeoutTotal: before.queueTimeoutTotal + 2,
  });
});
