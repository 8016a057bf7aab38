/** What kubelet does to a pod that is to stop, and what the pod says. */
import { docker } from '../../e2e/harness/engine/docker.ts';
import { type Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';

/** The steps of a stop, of that pod. */
export function stopping(thePod: () => Pod) {
  /** The preStop hooks of all containers, at the same time. */
  function preStop() {
    const hook = (container: string) => docker('exec', container, 'corelane-drain');
    return {
      proxies: Promise.all([hook(thePod().haproxy), hook(thePod().nginx)]),
      workers: thePod().drainHooks(),
    };
  }

  /** The exit code of a container once it has ended. */
  async function exitCode(container: string): Promise<number> {
    await until('the container ends', async () => !(await thePod().state(container)).Running);
    return (await thePod().state(container)).ExitCode;
  }

  /** SIGTERM, and the exit code once the container has ended. */
  async function terminate(container: string): Promise<number> {
    await docker('kill', '--signal', 'TERM', container);
    return exitCode(container);
  }

  function untilRefused(): Promise<unknown> {
    const isRefused = () =>
      thePod()
        .get('/ping')
        .then(
          () => false,
          () => true,
        );
    return until('nothing new is accepted', isRefused);
  }

  async function readiness(): Promise<string> {
    const { status, body } = await thePod().get('/readyz', { port: PORTS.health });
    return `${status} ${body}`;
  }

  return { preStop, exitCode, terminate, untilRefused, readiness };
}
