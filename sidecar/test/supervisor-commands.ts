/** Pods of one worker, whose container runs what a test wants. */
import { docker } from '../../e2e/harness/engine/docker.ts';
import { Pod, until, type WorkerOptions } from '../../e2e/harness/engine/pod.ts';
import type { RenderServiceSpecInput } from '../../operator/src/api/spec.ts';

/** Starts one. */
export const one = (options: WorkerOptions & { workers?: boolean }, input: Partial<RenderServiceSpecInput> = {}) =>
  Pod.start({ workersPerPod: 1, watchdog: { stallTimeout: '4s' }, queue: { timeout: '60s' }, ...input }, options);
/** The container of its worker. */
export const containerOf = (pod: Pod) => pod.workers[0] ?? '';

/** SIGTERM as kubelet sends it, and the exit code. */
export async function terminate(pod: Pod): Promise<number> {
  await docker('kill', '--signal', 'TERM', containerOf(pod));
  await until('the container ends', async () => !(await pod.state(containerOf(pod))).Running);
  return (await pod.state(containerOf(pod))).ExitCode;
}
