/** More requests that take their worker's event loop with them. In load: a worker counts as stuck after one second. */
import { docker } from '../../e2e/harness/engine/docker.ts';
import { Fleet } from '../../e2e/harness/engine/fleet.ts';
import { KEEPS_LONG, Pod, until } from '../../e2e/harness/engine/pod.ts';
import { begun, bothUp, error, expectLost } from './poison.ts';

const REUSED = 'haproxy_backend_connection_reuses_total{proxy="workers"}';
const idleOf = (worker: number) => `haproxy_server_idle_connections_current{proxy="workers",server="worker-${worker}"}`;
const WATCHDOG = { stallTimeout: '1s' };
let pod: Pod;
beforeAll(async () => {
  pod = await Pod.start({ workersPerPod: 2, watchdog: WATCHDOG, replay: 'Always' }, KEEPS_LONG);
});
afterAll(() => pod?.stop());
beforeEach(() => bothUp(pod));

test.each(['POST'])('a render that its worker got stuck in is not given to a second one: %s', (method) =>
  expectLost(pod, method),
);

test('nor a POST over a connection that was used before', async () => {
  const id = 'kept-loop';
  await until('connections to both workers are kept', async () => {
    await Promise.all([0, 1].map((n) => pod.get(`/?ms=50&id=warm-${n}`)));
    return (await pod.metric(idleOf(0))) > 0 && (await pod.metric(idleOf(1))) > 0;
  });
  const reused = await pod.metric(REUSED);
  const answer = pod.get(`/?loop=1&id=${id}`, { method: 'POST' });
  await pod.begun(id);
  expect(await pod.metric(REUSED)).toBe(reused + 1);
  expect(error(await answer)).toEqual([502, 'worker-stuck']);
  expect(begun(pod, id)).toHaveLength(1);
});

test('nor one over a connection that was used before', async () => {
  await pod.keptConnections();
  const before = begun(pod, 'kept').length;
  expect(error(await pod.get('/?id=kept', { headers: { 'x-loop': '1' } }))).toEqual([502, 'worker-stuck']);
  expect(begun(pod, 'kept')).toHaveLength(before + 1);
});

test('nor in another pod', async () => {
  const fleet = await Fleet.start(2, { workersPerPod: 1, watchdog: WATCHDOG, queue: { timeout: '60s' } });
  try {
    const [home, other] = fleet.pods as [Pod, Pod];
    const busy = home.get('/?hold=1&id=busy');
    await home.begun('busy');
    const answer = home.get('/?loop=1&id=away');
    await other.begun('away');
    fleet.release('busy');
    expect((await busy).status).toBe(200);
    expect(error(await answer)).toEqual([502, 'worker-stuck']);
    expect([...begun(home, 'away'), ...begun(other, 'away')]).toHaveLength(1);
  } finally {
    await fleet.stop();
  }
});

test('who was in the same worker by chance has its second try', async () => {
  const two = await Pod.start({ workersPerPod: 2, concurrency: 2, watchdog: WATCHDOG, balance: 'first' });
  try {
    for (const worker of [0, 1]) await until('up', () => two.isUp(worker));
    const innocent = two.get('/?hold=1&id=innocent');
    const { worker } = await two.begun('innocent');
    const stuck = two.get('/?loop=1&id=stuck', { method: 'POST' });
    expect((await two.begun('stuck')).worker).toBe(worker);
    expect(error(await stuck)).toEqual([502, 'worker-stuck']);
    two.release('innocent');
    expect((await innocent).status).toBe(200);
  } finally {
    await two.stop();
  }
});

test('a supervisor that does not answer holds up a second try for a moment only', async () => {
  const answer = pod.get('/?hold=block&id=frozen');
  const { worker, pid } = await pod.begun('frozen');
  const supervisor = Number(await docker('inspect', '--format', '{{.State.Pid}}', pod.workers[worker] ?? ''));
  process.kill(supervisor, 'SIGSTOP');
  try {
    await pod.kill(worker, pid, 'KILL');
    pod.release('frozen');
    expect((await answer).status).toBe(200);
    expect(begun(pod, 'frozen')).toHaveLength(2);
  } finally {
    process.kill(supervisor, 'SIGCONT');
  }
});
