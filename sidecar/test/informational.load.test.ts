/**
 * An answer below 200 that is all that comes costs nobody but itself, and is found out at once (I5). Here because "at
 * once" is a duration.
 */
import { Pod } from '../../e2e/harness/engine/pod.ts';
import { figure } from '../../operator/test/support/figure.ts';
import { statuses } from './informational.ts';

let pod: Pod;
beforeAll(async () => {
  pod = await Pod.start({ workersPerPod: 2 });
});
afterAll(() => pod?.stop());

// HAProxy refuses a 101 that nobody has asked for; after any other it waits for the page, and then the connection ends.
test.each([
  [100, 'worker-died'],
  [101, 'bad-response'],
  [102, 'worker-died'],
  [103, 'worker-died'],
])('a page that is answered %d and nothing else is a 502 at once, and others do not notice', async (odd, reason) => {
  const honest = Array.from({ length: 20 }, (_unused, n) => `/?id=honest-${odd}-${n}&ms=5`);
  const oddOnes = Array.from({ length: 6 }, (_unused, n) => `/?id=odd-${odd}-${n}&status=${odd}`);
  const begin = performance.now();
  const [ours, others] = await Promise.all([statuses(pod, honest), statuses(pod, oddOnes)]);
  expect(ours).toEqual(Array(20).fill('200'));
  expect(others).toEqual(Array(6).fill(`502 ${reason}`));
  const tookMs = performance.now() - begin;
  figure(`time of 20 honest requests beside six answered ${odd} and nothing else`, tookMs, 'ms', '< 8000 ms');
  expect(tookMs).toBeLessThan(8_000);
});
