/**
 * What a canary is judged by: the time of a render. A load test: the time of a real render is compared with a limit.
 */
import { type Pod, until } from '../../e2e/harness/engine/pod.ts';
import { figure } from '../../operator/test/support/figure.ts';
import { CanaryFleet, canaryAt, IN_QUEUE } from './canary.ts';
import { page } from './canary-judged.ts';

let all: CanaryFleet;
let stable: Pod;
let canary: Pod;
beforeAll(async () => {
  all = await CanaryFleet.start(1, 1, { workersPerPod: 1, queue: { maxLength: 3 } });
  [stable, canary] = [all.stable[0] as Pod, all.canary[0] as Pod];
  await all.untilSidesKnown();
  await all.set(canaryAt(10_000));
});
afterAll(() => all?.stop());

/** The longest time of a bucket. */
const borderMs = (bucket: number) => 2 ** (bucket / 8);

test('the time of a render is that of its worker, without the wait in the queue', async () => {
  const [held, waits] = ['held', 'waits'];
  const before = await page(stable);
  const first = stable.get(`/?hold=1&id=${held}`);
  await canary.begun(held);
  const second = stable.get(`/?id=${waits}`);
  await until('it waits', async () => (await canary.metric(IN_QUEUE)) === 1);
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  canary.release(held);
  expect([(await first).status, (await second).status]).toEqual([200, 200]);
  const after = await page(stable);
  const times = after.canary.times.flatMap((count, bucket) =>
    Array.from({ length: count - (before.canary.times[bucket] ?? 0) }, () => borderMs(bucket)),
  );
  expect(times).toHaveLength(2);
  figure('render time of a render that is held for 1.5 s', Math.max(...times), 'ms', '>= 1500 ms');
  figure('render time of a render that waits 1.5 s in the queue', Math.min(...times), 'ms', '< 1000 ms');
  expect(Math.max(...times)).toBeGreaterThanOrEqual(1_500);
  expect(Math.min(...times)).toBeLessThan(1_000);
});
