/** What tests of stuck workers read of answers and pods. */
import { type Answer, type Pod, until } from '../../e2e/harness/engine/pod.ts';

/** Status and reason of an answer. */
export const error = ({ status, headers }: Answer) => [status, headers['x-corelane-error']];
/** Each time that a worker has begun with a request. */
export const begun = (pod: Pod, id: string) => pod.events({ event: 'begin', id });
/** Waits until both workers are up. */
export const bothUp = (pod: Pod) =>
  Promise.all([0, 1].map((worker) => until(`worker-${worker} is up`, () => pod.isUp(worker))));

/** A worker gets stuck in a render, which is lost with it, and which nobody else gets. */
export async function expectLost(pod: Pod, method: string): Promise<void> {
  const id = `loop-${method}`;
  expect(error(await pod.get(`/?loop=1&id=${id}`, { method }))).toEqual([502, 'worker-stuck']);
  expect(begun(pod, id)).toHaveLength(1);
  const line = await until('it is logged', async () =>
    (await pod.accessLog()).find(({ uri }) => String(uri).includes(id)),
  );
  expect(line).toMatchObject({ error: 'worker-stuck', stuckIn: expect.stringMatching(/./) });
}
