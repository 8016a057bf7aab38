/** What happens to pods of a fleet: stuck renders, dead workers, workers that are all taken. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Fleet } from '../../harness/engine/fleet.ts';
import { type Pod, until } from '../../harness/engine/pod.ts';

/** Of a client that was refused. */
const RETRY_MS = 100;

/** So many renders of a pod never end; the watchdog ends their workers. */
export async function getStuck(pod: Pod, times: number): Promise<void> {
  for (let n = 0; n < times; n += 1) {
    await pod.get(`/?loop=1&id=stuck-${n}`);
    await until('the worker is back', async () => (await pod.isUp(0)) && pod.isUp(1));
  }
}

/** Each worker in turn: one that ends again and again is in a loop. */
export async function killWorkers(fleet: Fleet, times: number): Promise<void> {
  const { length } = fleet.pods;
  for (let n = 0; n < times; n += 1) {
    const pod = fleet.pods[n % length] as Pod;
    const worker = Math.floor(n / length) % pod.workers.length;
    const victim = pod.server(worker);
    await pod.kill(worker, victim, 'KILL');
    await until('the worker is back', async () => pod.server(worker) !== victim && (await pod.isUp(worker)));
  }
}

/** Gives each worker of the fleet a render that ends when the returned function is called. */
export async function takeAllWorkers(fleet: Fleet): Promise<() => Promise<unknown>> {
  let isOver = false;
  const refused: Record<string, unknown> = {};
  // Where all workers are busy still, it may be refused, and asks again.
  const hold = async (pod: Pod, id: string) => {
    while (!isOver) {
      const { status, headers } = await pod.get(`/?hold=1&id=${id}`);
      if (isOver) break;
      refused[id] = [status, headers['x-corelane-error']];
      await delay(RETRY_MS);
    }
  };
  const wanted = fleet.pods.flatMap((pod, index) =>
    [...pod.workers.keys()].map((worker) => ({ pod, id: `held-${index}-${worker}` })),
  );
  const held = wanted.map(({ pod, id }) => hold(pod, id));
  const ids = wanted.map(({ id }) => id);
  const release = () => {
    isOver = true;
    fleet.release(...ids);
    return Promise.allSettled(held);
  };
  const begun = (id: string) => fleet.pods.some((pod) => pod.events({ event: 'begin', id })[0]);
  try {
    await until('all workers have one', () => ids.every(begun));
  } catch (error) {
    const missing = ids.filter((id) => !begun(id));
    void release();
    throw new Error(`Not begun: ${missing}; refused: ${JSON.stringify(refused)}`, { cause: error });
  }
  return release;
}
