/** More deaths of proxies, with a pod for each; the second one kills until kubelet would take over, and is too slow. */
import { docker } from '../../e2e/harness/engine/docker.ts';
import { type Pod, until } from '../../e2e/harness/engine/pod.ts';
import { post, startPatient } from './proxies.ts';

let pod: Pod;
beforeEach(async () => {
  pod = await startPatient();
});
afterEach(() => pod?.stop());

test("nginx' master process dies: what its worker process has is finished, and a new one takes over", async () => {
  const startedAt = await pod.startedAt(pod.nginx);
  const busy = post(pod, 'busy', 'hold=1');
  await pod.begun('busy');
  await pod.killProxy(pod.nginx, 'nginx');
  // Served by the one that was left behind, or by the new one.
  expect((await post(pod, 'after')).status).toBe(200);
  pod.release('busy');
  expect((await busy).status).toBe(200);
  expect(await pod.startedAt(pod.nginx)).toBe(startedAt);
  const masters = () =>
    docker('exec', pod.nginx, 'sh', '-c', 'cat /proc/[0-9]*/cmdline 2>/dev/null | tr "\\0" " "').then(
      (text) => text.match(/nginx: [a-z ]*process/g) ?? [],
    );
  await until('one master, one worker process', async () => (await masters()).length === 2);
});

test('a proxy that dies again and again is left to kubelet', async () => {
  await until('its container ends', async () => {
    await pod.killProxy(pod.nginx, 'nginx').catch(() => 0);
    return !(await pod.state(pod.nginx)).Running;
  });
  expect((await pod.state(pod.nginx)).ExitCode).toBe(137);
});
