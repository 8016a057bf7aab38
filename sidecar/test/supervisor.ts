/** A pod whose workers crash, hang or end while requests queue. */
import { type Answer, type Pod, until, type WorkerEvent } from '../../e2e/harness/engine/pod.ts';
import { figure } from '../../operator/test/support/figure.ts';

/** Of answers. */
export const statuses = (answers: Answer[]) => answers.map(({ status }) => status);
/** Unsafe on purpose: nginx replays none of them, so a single one that is lost shows. */
export const post = (pod: Pod, id: string, query = '') =>
  pod.get(`/?id=${id}&${query}`, { method: 'POST', body: 'x'.repeat(50_000) });

/** Runs `trouble` while requests queue, and gives the time from its begin until the worker has served again. */
export async function underLoad(pod: Pod, name: string, trouble: (begun: WorkerEvent) => unknown, query: string) {
  const containers = await Promise.all(pod.workers.map((worker) => pod.startedAt(worker)));
  const victim = post(pod, name, query);
  const begun = await pod.begun(name);
  const others = Array.from({ length: 20 }, (_unused, n) => post(pod, `${name}-other-${n}`, 'ms=150'));
  const began = performance.now();
  await trouble(begun);
  const lost = await victim;
  const tookMs = performance.now() - began;
  expect(statuses(await Promise.all(others))).toEqual(Array(20).fill(200));
  expect(await Promise.all(pod.workers.map((worker) => pod.startedAt(worker)))).toEqual(containers);
  const again = await until('it serves again', async () => {
    // On a busy machine the other worker has done all of them by now.
    await post(pod, `${name}-again`);
    const all = pod.events({ event: 'begin', worker: begun.worker });
    return all.find(({ pid, at }) => pid !== begun.pid && at > begun.at);
  });
  const up = pod.events({ event: 'up', worker: begun.worker, pid: again.pid })[0] as WorkerEvent;
  figure(`${name}: time until the client of the lost render is answered`, tookMs, 'ms');
  figure(`${name}: time until the next process listens`, up.at - begun.at, 'ms');
  figure(`${name}: time until the next render begins`, again.at - begun.at, 'ms');
  return { lost, worker: begun.worker };
}

/** A worker ends by itself in this render, and is started again for that reason. */
export async function expectRestart(pod: Pod, query: string, reason: string): Promise<void> {
  const count = (worker: number) => pod.runtimeMetric(worker, 'corelane_worker_restarts_total', reason);
  const before = [await count(0), await count(1)];
  const { worker } = await underLoad(pod, `end-${query.slice(0, 6)}`.replace('=', '-'), () => 0, query);
  expect(await count(worker)).toBe(Number(before[worker]) + 1);
}
