/** What the operator and kubelet do to a pod. */
import { docker } from '../../e2e/harness/engine/docker.ts';
import { type Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { type LiveCanary, liveSerial, renderLive } from '../../operator/src/render/live.ts';

/** What all pods are told, beside what their spec says. */
export interface Told {
  canary?: LiveCanary;
  /** The revision whose pods live on without getting requests. */
  resting?: string;
}

/** Writes the file of live settings as the operator does, and waits until the pod says that it has it. */
export async function tell(pod: Pod, { canary, resting }: Told): Promise<void> {
  const files = renderLive(pod.spec, undefined, resting, canary);
  pod.writeLive(files);
  const serial = `serial=${liveSerial(files)}\n`;
  await until('the pod has the live settings', async () => {
    const { body } = await pod.get('/live', { port: PORTS.stats });
    return body.startsWith(serial);
  });
}

/** As kubelet ends a pod: the hooks of all containers at the same time, then SIGTERM, workers first. Its notes stay. */
export async function drain(pod: Pod): Promise<void> {
  const hook = (container: string) => docker('exec', container, 'corelane-drain');
  await Promise.all([hook(pod.haproxy), hook(pod.nginx), pod.drainHooks()]);
  for (const container of [...pod.workers, pod.nginx, pod.haproxy]) {
    await docker('kill', '--signal', 'TERM', container);
    await until('the container ends', async () => !(await pod.state(container)).Running);
  }
  await docker('rm', '--force', pod.holder);
}
