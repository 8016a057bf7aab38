/** A pod whose workers never come up: it answers all the same, in time, and not more wait than may (I3). */
import { Pod, until } from '../../e2e/harness/engine/pod.ts';

let pod: Pod;
beforeAll(async () => {
  const queue = { maxLength: 2, timeout: '8s' };
  pod = await Pod.start({ workersPerPod: 1, queue, timeouts: { render: '1s' } }, { workers: false });
});
afterAll(() => pod?.stop());

function error({ status, headers }: Awaited<ReturnType<Pod['get']>>) {
  return [status, headers['x-corelane-error'], headers['retry-after']];
}

test('a request waits for a worker as long as queue.timeout, and no more of them than queue.maxLength', async () => {
  const waiting = [1, 2].map((n) => pod.get(`/?id=waits-${n}`));
  const inWaitingRoom = 'haproxy_frontend_current_sessions{proxy="waiting-room"}';
  await until('one waits', async () => (await pod.metric(inWaitingRoom)) === 1);
  await pod.queued(1);
  expect(error(await pod.get('/?id=refused'))).toEqual([503, 'queue-full', '1']);
  const errors = (await Promise.all(waiting)).map(error);
  expect(errors).toContainEqual([503, 'no-worker', '1']);
  // The one in the queue: it may be let into the room just as the first one leaves it.
  for (const [, why] of errors) expect(['no-worker', 'queue-timeout']).toContain(why);
});
