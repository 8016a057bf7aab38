/**
 * Workers come up, die and come back: nothing that no worker has begun is lost (I2).
 *
 * Those in the queue are safe methods here: between the reset of a dead worker's connection and the end of its
 * listening socket HAProxy may send it the next request. nginx replays that one too, but never a POST.
 */

import { docker } from '../../e2e/harness/engine/docker.ts';
import { type Answer, Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { revive, up } from './workers.ts';

let pod: Pod;
beforeAll(async () => {
  pod = await Pod.start({ workersPerPod: 2, queue: { timeout: '60s' } }, { workers: false });
});
afterAll(() => pod?.stop());

const ready = async () => {
  const { status, body } = await pod.get('/readyz', { port: PORTS.health });
  return `${status} ${body}`;
};
const statuses = (answers: Answer[]) => answers.map(({ status }) => status);

test('no worker has ever been up: not ready; a request waits for the first one', async () => {
  expect(await ready()).toBe('503 no-worker');
  const early = [1, 2, 3].map((n) => pod.get(`/?id=early-${n}`));
  // As many as there will be slots wait for a worker to come up, the others in the queue.
  const inWaitingRoom = 'haproxy_frontend_current_sessions{proxy="waiting-room"}';
  await until('two wait', async () => (await pod.metric(inWaitingRoom)) === 2);
  await pod.queued(1);
  const refused = (worker: number) =>
    pod.metric(`haproxy_server_check_status{proxy="workers",server="worker-${worker}",state="L4CON"}`);
  await until('HAProxy has looked for both', async () => (await refused(0)) === 1 && (await refused(1)) === 1);
  await pod.startWorkers();
  expect(statuses(await Promise.all(early))).toEqual([200, 200, 200]);
  await until('ready', async () => (await ready()) === '200 ok');
  await until('both are up', async () => (await up(pod, 0)) === 1 && (await up(pod, 1)) === 1);
});

test('a proxy that starts anew says "not ready" until it has seen a worker', async () => {
  await docker('kill', '--signal', 'KILL', ...pod.workers);
  await docker('restart', '--time', '0', pod.haproxy);
  const first = await until('it answers', () => ready().catch(() => ''));
  expect(first).toBe('503 no-worker');
  await revive(pod, 0, 1);
});

test('a worker dies: its safe request is rendered elsewhere, all others are served', async () => {
  const dying = pod.get('/?hold=1&id=dying');
  const { worker } = await pod.begun('dying');
  const others = Array.from({ length: 10 }, (_unused, n) => pod.get(`/?ms=100&id=other-${n}`));
  await docker('kill', '--signal', 'KILL', pod.workers[worker] ?? '');
  pod.release('dying');
  expect(statuses(await Promise.all([dying, ...others]))).toEqual(Array(11).fill(200));
  expect(pod.events({ event: 'begin', id: 'dying' }).map((event) => event.worker)).toEqual([worker, 1 - worker]);
  await revive(pod, worker);
});

test('a worker that is dead before HAProxy knows it loses no request, of whatever method', async () => {
  // An idle worker is checked once a second.
  await docker('kill', '--signal', 'KILL', pod.workers[0] ?? '');
  const answers = await Promise.all(
    Array.from({ length: 6 }, (_unused, n) => pod.get(`/?ms=50&id=unknown-dead-${n}`, { method: 'POST', body: 'x' })),
  );
  expect(statuses(answers)).toEqual(Array(6).fill(200));
  await revive(pod, 0);
});

test('workers that die while nobody asks for them are noticed', async () => {
  await docker('kill', '--signal', 'KILL', ...pod.workers);
  await until('not ready', async () => (await ready()) === '503 no-worker');
  await revive(pod, 0, 1);
  expect(await ready()).toBe('200 ok');
});

test('all workers die: not ready, and what waits is served when they are back', async () => {
  const busy = [0, 1].map((n) => pod.get(`/?hold=1&id=last-${n}`));
  await Promise.all([pod.begun('last-0'), pod.begun('last-1')]);
  const queued = Array.from({ length: 10 }, (_unused, n) => pod.get(`/?ms=20&id=orphan-${n}`));
  await pod.queued(10);
  await docker('kill', '--signal', 'KILL', ...pod.workers);
  await until('not ready', async () => (await ready()) === '503 no-worker');
  const late = Array.from({ length: 5 }, (_unused, n) =>
    pod.get(`/?ms=20&id=late-${n}`, { method: 'POST', body: 'x'.repeat(n * 60_000) }),
  );
  pod.release('last-0', 'last-1');
  await revive(pod, 0, 1);
  expect(statuses(await Promise.all([...queued, ...late, ...busy]))).toEqual(Array(17).fill(200));
  expect(Math.max(...pod.events({ event: 'begin' }).map(({ inFlight }) => inFlight ?? 0))).toBe(1);
  expect(await ready()).toBe('200 ok');
});
