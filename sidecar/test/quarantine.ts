/** Clients of pages that get workers stuck. */
import { type Call, type Pod, until } from '../../e2e/harness/engine/pod.ts';

/** A request of this client. */
export const from = (client: string, headers: object = {}): Call => ({
  headers: { 'x-forwarded-for': client, ...headers },
});
/** One whose page gets stuck, by a header of its own. */
export const evil = (client: string, headers: object = {}) => from(client, { 'x-loop': '1', ...headers });
/** Waits until all workers are up. */
export const allUpOf = (pod: Pod) =>
  Promise.all(pod.workers.map((_unused, worker) => until('it is up', () => pod.isUp(worker))));
