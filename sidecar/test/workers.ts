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
