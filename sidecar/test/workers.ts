/** Workers whose containers die. */
import { docker } from '../../e2e/harness/engine/docker.ts';
import { type Pod, until } from '../../e2e/harness/engine/pod.ts';

/** 1 if HAProxy takes the worker for up. */
export const up = (pod: Pod, worker: number) =>
  pod.metric(`haproxy_server_status{proxy="workers",server="worker-${worker}",state="UP"}`);

/** Starts containers of workers again, and waits until these are up. */
export async function revive(pod: Pod, ...workers: number[]): Promise<void> {
  await docker('start', ...workers.map((worker) => pod.workers[worker] ?? ''));
  for (const worker of workers) await until(`worker-${worker} is up`, async () => (await up(pod, worker)) === 1);
}

/** A worker dies that has begun this: nobody else does it. */
export async function expectOnce(pod: Pod, method: string): Promise<void> {
  const id = `unsafe-${method}`;
  const dying = pod.get(`/?hold=1&id=${id}`, { method, body: method === 'DELETE' ? undefined : 'x'.repeat(200_000) });
  const { worker } = await pod.begun(id);
  await docker('kill', '--signal', 'KILL', pod.workers[worker] ?? '');
  const { status, headers } = await dying;
  expect([status, headers['x-corelane-error']]).toEqual([502, 'worker-died']);
  expect(pod.events({ event: 'begin', id })).toHaveLength(1);
  await revive(pod, worker);
}
