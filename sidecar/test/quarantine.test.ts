/** URLs whose requests get workers stuck: who is refused, and who need not wait. */
import { rmSync } from 'node:fs';
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { allUpOf, evil } from './quarantine.ts';

let pod: Pod;
afterEach(() => pod?.stop());

const begun = (id: string) => pod.events({ event: 'begin', id });

test('a URL that nobody has seen answered gets no more workers stuck than that takes', async () => {
  // Longer than a worker can be without CPU.
  const watchdog = { stallTimeout: '4s' };
  pod = await Pod.start({ workersPerPod: 4, watchdog, queue: { timeout: '60s' } });
  await allUpOf(pod);
  const answers = await Promise.all(Array.from({ length: 6 }, () => pod.get('/?id=burst', evil('192.0.2.1'))));
  expect(begun('burst')).toHaveLength(2);
  expect(answers.map(({ status }) => status).sort()).toEqual([502, 502, 503, 503, 503, 503]);
});

test('a worker that is starting is not stuck: nobody waits for it', async () => {
  const warmup = { path: '/?until=warm&id=warm', requests: 1 };
  pod = await Pod.start({ workersPerPod: 4, warmup, queue: { timeout: '60s' } }, { workers: false });
  await pod.startWorkers();
  await until('all warm up', () => begun('warm').length === 4);
  pod.release('warm');
  await allUpOf(pod);
  rmSync(`${pod.notesFile}.warm`);
  await pod.kill(3, pod.server(3), 'KILL');
  await until('another one warms up', () => begun('warm').length === 5);
  const slow = [1, 2, 3].map(() => pod.get('/?until=slow&id=slow'));
  // Two may get their workers stuck. The third waits until it is known that they have not, and that nobody else is.
  await until('all are begun', () => begun('slow').length === 3);
  expect(await pod.isUp(3)).toBe(false);
  pod.release('slow', 'warm');
  for (const answer of slow) expect((await answer).status).toBe(200);
});
