/**
 * Requests that say how long they are waited for, beside workers that die and are stuck, and proxies that start again.
 * Here because their times must outlast a moment of the machine; and what takes long.
 */
import { docker } from '../../e2e/harness/engine/docker.ts';
import { Fleet } from '../../e2e/harness/engine/fleet.ts';
import { type Call, Pod, until } from '../../e2e/harness/engine/pod.ts';
import { DEADLINE, error, SPEC, waiting, within } from './deadlines.ts';

const isFree = (there: Pod) => until('the worker is up', () => there.isUp(0));

let pod: Pod;
beforeAll(async () => {
  pod = await Pod.start({ ...SPEC, watchdog: { stallTimeout: '3s' } });
});
afterAll(() => pod?.stop());
const { begun, answeredInTurn } = waiting(() => pod);

test('a response that has begun in time is not cut', async () => {
  const { status, body } = await pod.get('/?id=streams&length=14&more=done&after=4000', within(2_000));
  expect([status, body]).toEqual([200, 'xxxxxxxxxxdone']);
});

test('a second try that comes too late is not rendered', async () => {
  // It is held for longer than that, so that no more workers die with it.
  const answer = await pod.get('/?die=1&id=twice', within(100));
  expect(error(answer)).toEqual(DEADLINE);
  await isFree(pod);
  expect((await pod.get('/?id=after-twice')).status).toBe(200);
  expect(begun('twice').length).toBeLessThanOrEqual(1);
});

test('a POST that its worker dies with has its own answer', async () => {
  await isFree(pod);
  expect(error(await pod.get('/?die=1&id=post-dies', within(60_000, { method: 'POST' })))).toEqual([
    502,
    'worker-died',
  ]);
  await isFree(pod);
});

test('what gets workers stuck is found out all the same', async () => {
  // Half of the watchdog's time, and enough to begin on a machine that is busy.
  const stuck = within(1_500, { headers: { 'x-loop': '1', 'x-forwarded-for': '192.0.2.1' } });
  for (const times of [1, 2]) {
    // What HAProxy says of a worker may be of a moment ago: one that serves is there.
    expect((await pod.get(`/?id=before-stuck-${times}`)).status).toBe(200);
    const server = pod.server(0);
    expect(error(await pod.get('/?id=stuck', stuck))).toEqual(DEADLINE);
    expect(begun('stuck')).toHaveLength(times);
    await until('another server is up', () => pod.server(0) !== server);
    await isFree(pod);
  }
  await until('it is refused', async () => error(await pod.get('/?id=stuck', stuck))[1] === 'poison');
});

test.each([10_000, 8_000_000])('a body of %p bytes is answered when its turn comes, and not rendered', answeredInTurn);

test.each(['GET', 'POST'])('HAProxy is started again meanwhile: %s', async (method) => {
  // Process 1 is stopped for a moment, so that HAProxy is away.
  await docker('kill', '--signal', 'STOP', pod.haproxy);
  await pod.killProxy(pod.haproxy, 'haproxy');
  // nginx has seen the end of the connections that it kept: what is lost over one of them is another story.
  expect((await pod.get(pod.spec.ping.path)).status).toBe(200);
  const waits = pod.get(`/?id=restarted-${method}`, within(60_000, { method }));
  await until('ping answers', async () => (await pod.get(pod.spec.ping.path)).status === 200);
  await docker('kill', '--signal', 'CONT', pod.haproxy);
  expect((await waits).status).toBe(200);
  expect(begun(`restarted-${method}`)).toHaveLength(1);
});

test('no worker is up: who waits for one is not rendered when it comes', async () => {
  await isFree(pod);
  const [worker = ''] = pod.workers;
  await docker('stop', '--time', '1', worker);
  await until('it is down', async () => !(await pod.isUp(0)));
  expect(error(await pod.get('/?id=down', within(300)))).toEqual(DEADLINE);
  await docker('start', worker);
  expect((await pod.get('/?id=up')).status).toBe(200);
  expect(begun('down')).toEqual([]);
});

test('a peer renders it', async () => {
  const fleet = await Fleet.start(2, { workersPerPod: 1, queue: { timeout: '60s' }, deadlines: {} });
  const say = (ms: number): Call => ({ headers: { 'x-request-timeout-ms': String(ms) } });
  try {
    const [home, other] = fleet.pods as [Pod, Pod];
    const busy = home.get('/?hold=1&id=busy');
    await home.begun('busy');
    expect((await home.get('/?id=away', say(60_000))).status).toBe(200);
    expect(other.events({ event: 'begin', id: 'away' })).toHaveLength(1);
    const late = home.get('/?hold=1&id=too-late', say(2_000));
    await other.begun('too-late');
    expect(error(await late)).toEqual(DEADLINE);
    fleet.release('busy', 'too-late');
    expect((await busy).status).toBe(200);
  } finally {
    await fleet.stop();
  }
});
