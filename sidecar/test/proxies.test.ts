/**
 * A proxy dies in its container: what that costs, and what it does not. The proxies are of a user that a namespace
 * assigns, as OpenShift does: nothing of it is in the image.
 */

import { docker } from '../../e2e/harness/engine/docker.ts';
import { type Answer, type Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { post, startPatient } from './proxies.ts';

const USER = ['1000920000', '0'];

let pod: Pod;
beforeAll(async () => {
  pod = await startPatient({ user: USER.join(':') });
});
afterAll(() => pod?.stop());

const statuses = (answers: Answer[]) => answers.map(({ status }) => status);

test('the proxies work as any user in group 0', async () => {
  for (const container of [pod.haproxy, pod.nginx]) {
    const ids = await Promise.all(['-u', '-g'].map((option) => docker('exec', container, 'id', option)));
    expect(ids).toEqual(USER);
  }
  expect((await post(pod, 'any-user')).status).toBe(200);
});

test('HAProxy dies: who comes while it is away waits, probes too, safe requests that it had are served by the next one', async () => {
  const startedAt = await pod.startedAt(pod.haproxy);
  const safe = [0, 1].map((n) => pod.get(`/?hold=1&id=had-${n}`));
  await Promise.all([pod.begun('had-0'), pod.begun('had-1')]);
  const queuedSafe = [0, 1, 2].map((n) => pod.get(`/?ms=20&id=had-queued-${n}`));
  const queuedUnsafe = post(pod, 'had-unsafe');
  await pod.queued(4);

  // Process 1 is stopped for a moment, so that HAProxy is away for as long as this test wants.
  await docker('kill', '--signal', 'STOP', pod.haproxy);
  await pod.killProxy(pod.haproxy, 'haproxy');
  const late = [0, 1, 2, 3].map((n) => post(pod, `late-${n}`));
  const probes = ['/readyz', '/livez'].map((path) => pod.get(path, { port: PORTS.health }));
  await until('ping answers', async () => (await pod.get(pod.spec.ping.path)).status === 200);
  pod.release('had-0', 'had-1');
  await docker('kill', '--signal', 'CONT', pod.haproxy);

  // Nobody can know whether a worker has begun it.
  expect(await queuedUnsafe).toMatchObject({ status: 502, headers: { 'x-corelane-error': 'worker-died' } });
  expect(statuses(await Promise.all([...safe, ...queuedSafe, ...late]))).toEqual(Array(9).fill(200));
  expect(statuses(await Promise.all(probes))).toEqual([200, 200]);
  expect(await pod.startedAt(pod.haproxy)).toBe(startedAt);
  expect((await pod.get('/readyz', { port: PORTS.health })).status).toBe(200);
});

test('nginx dies: who comes while it is away waits', async () => {
  const startedAt = await pod.startedAt(pod.nginx);
  // As above: process 1 is stopped for a moment.
  await docker('kill', '--signal', 'STOP', pod.nginx);
  await pod.killProxy(pod.nginx, 'nginx', { withChildren: true });
  const late = Promise.all([0, 1, 2, 3].map((n) => post(pod, `late-${n}`)));
  await docker('kill', '--signal', 'CONT', pod.nginx);
  expect(statuses(await late)).toEqual(Array(4).fill(200));
  expect(await pod.startedAt(pod.nginx)).toBe(startedAt);
});

test('the sockets that outlive a proxy let nobody wait who accepts from them', async () => {
  const flags = `for fd in /proc/1/fd/*; do
      case $(readlink $fd) in socket:*) sed -n 's/^flags:[[:space:]]*//p' /proc/1/fdinfo/\${fd##*/} ;; esac
    done`;
  for (const container of [pod.haproxy, pod.nginx]) {
    const all = (await docker('exec', container, 'sh', '-c', flags)).split('\n').filter(Boolean);
    expect(all.length).toBeGreaterThan(0);
    // O_NONBLOCK
    expect(all.map((octal) => Number.parseInt(octal, 8) & 0o4000)).toEqual(all.map(() => 0o4000));
  }
});
