/** More of workers that hang or end. In load: the first one is stopped within a render of half a second. */
import { Pod, until, type WorkerEvent } from '../../e2e/harness/engine/pod.ts';
import { expectRestart, underLoad } from './supervisor.ts';

let pod: Pod;
beforeAll(async () => {
  pod = await Pod.start({ workersPerPod: 2, watchdog: { stallTimeout: '1s' }, queue: { timeout: '60s' } });
});
afterAll(() => pod?.stop());
beforeEach(() => Promise.all([0, 1].map((worker) => until(`worker-${worker} is up`, () => pod.isUp(worker)))));

test('a stopped process (SIGSTOP) counts as stuck', async () => {
  const stop = ({ worker, pid }: WorkerEvent) => pod.kill(worker, pid, 'STOP');
  const { lost } = await underLoad(pod, 'sigstop', stop, 'ms=500');
  expect(lost.status).toBe(502);
});

test.each([['exit=1', 'error']])('a worker that ends by itself (%s) is started again', (query, reason) =>
  expectRestart(pod, query, reason),
);
