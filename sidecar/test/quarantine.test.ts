/** URLs whose requests get workers stuck: who is refused, and who need not wait. */
import { rmSync } from 'node:fs';
import { type Answer, Pod, until } from '../../e2e/harness/engine/pod.ts';
import { ownPage, waiters } from './cache.ts';
import { allUpOf, evil, from } from './quarantine.ts';

let pod: Pod;
afterEach(() => pod?.stop());

/** Longer than a worker can be without CPU. */
const watchdog = { stallTimeout: '4s' };
const queue = { timeout: '60s' };
const told = ({ status, headers }: Answer) => [status, headers['x-corelane-error']].join(' ').trim();
const begun = (id: string) => pod.events({ event: 'begin', id });

test('a URL that nobody has seen answered gets no more workers stuck than that takes', async () => {
  pod = await Pod.start({ workersPerPod: 4, watchdog, queue });
  await allUpOf(pod);
  const answers = await Promise.all(Array.from({ length: 6 }, () => pod.get('/?id=burst', evil('192.0.2.1'))));
  expect(begun('burst')).toHaveLength(2);
  expect(answers.map(({ status }) => status).sort()).toEqual([502, 502, 503, 503, 503, 503]);
});

test('a worker that is starting is not stuck: nobody waits for it', async () => {
  const warmup = { path: '/?until=warm&id=warm', requests: 1 };
  pod = await Pod.start({ workersPerPod: 4, warmup, queue }, { workers: false });
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

test('a page of the cache is refused to the client that got workers stuck, and to nobody else', async () => {
  pod = await Pod.start({ workersPerPod: 2, watchdog, queue, cache: { enabled: true, key: { headers: ['X-Loop'] } } });
  await allUpOf(pod);
  const page = ownPage('shared', 'max-age=60', '&until=shared');
  for (const _ of [1, 2]) {
    expect(told(await pod.get(page, evil('192.0.2.1')))).toBe('502 worker-stuck');
    await allUpOf(pod);
  }
  expect(told(await pod.get(page, from('192.0.2.1')))).toBe('503 poison');
  // The render that all wait for is lost. Those who are refused then are not the answer for who waits behind them.
  const first = pod.get(page, from('198.51.100.1'));
  const { worker, pid } = await until('it is begun', () => begun('shared')[2]);
  const refused = Array.from({ length: 3 }, () => pod.get(page, from('192.0.2.1')));
  await waiters(pod, 3);
  const served = pod.get(page, from('203.0.113.1'));
  await waiters(pod, 4);
  await pod.kill(worker, pid, 'KILL');
  for (const answer of refused) expect(told(await answer)).toBe('503 poison');
  pod.release('shared');
  for (const answer of [first, served]) expect(told(await answer)).toBe('200');
});
