/** Requests that take their worker's event loop with them: what one of them costs. */
import { Pod } from '../../e2e/harness/engine/pod.ts';
import { bothUp, expectLost } from './poison.ts';

let pod: Pod;
beforeAll(async () => {
  // Longer than a worker can be without CPU.
  pod = await Pod.start({ workersPerPod: 2, watchdog: { stallTimeout: '4s' }, replay: 'Always' });
  await bothUp(pod);
});
afterAll(() => pod?.stop());

test.each(['GET'])('a render that its worker got stuck in is not given to a second one: %s', (method) =>
  expectLost(pod, method),
);
