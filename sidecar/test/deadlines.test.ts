/** Requests that say how long they are waited for: after that they are answered, and never rendered. */
import { docker } from '../../e2e/harness/engine/docker.ts';
import { Fleet } from '../../e2e/harness/engine/fleet.ts';
import { type Answer, type Call, Pod, until } from '../../e2e/harness/engine/pod.ts';

const OWN = 'x-acme-timeout-ms';
const within = (ms: number | string, call: Call = {}): Call => ({
  ...call,
  headers: { [OWN]: String(ms), ...call.headers },
});
const error = ({ status, headers }: Answer) => [status, headers['x-corelane-error']];
const DEADLINE = [504, 'deadline'];
const isFree = (there: Pod) => until('the worker is up', () => there.isUp(0));

let pod: Pod;
beforeAll(async () => {
  pod = await Pod.start({
    workersPerPod: 1,
    queue: { timeout: '60s' },
    watchdog: { stallTimeout: '3s' },
    webSockets: { enabled: true },
    fallback: { html: '<p>shell' },
    deadlines: { header: 'X-Acme-Timeout-Ms' },
  });
});
afterAll(() => pod?.stop());
const begun = (id: string) => pod.events({ event: 'begin', id });

/** Keeps the only worker until the action is over. */
async function whileBusy(id: string, action: () => Promise<void>): Promise<void> {
  const busy = pod.get(`/?hold=1&id=${id}`);
  await pod.begun(id);
  await action();
  expect(pod.events({ event: 'end', id })).toEqual([]);
  pod.release(id);
  expect((await busy).status).toBe(200);
}

test('who waits beyond it is answered, has left the queue, and is never rendered', async () => {
  await whileBusy('busy', async () => {
    const answer = await pod.get('/?id=late', within(300));
    expect([...error(answer), JSON.parse(answer.body)]).toEqual([...DEADLINE, { error: 'deadline' }]);
    await pod.queued(0);
    expect(error(await pod.get('/?id=post', within(300, { method: 'POST', body: 'x'.repeat(9_999) })))).toEqual(
      DEADLINE,
    );
    const passed = 'haproxy_frontend_http_requests_total{proxy="front"}';
    const before = await pod.metric(passed);
    for (const ms of [1, 9]) expect(error(await pod.get('/?id=none-left', within(ms)))).toEqual(DEADLINE);
    // Nobody has been bothered with it.
    expect(await pod.metric(passed)).toBe(before);
    await pod.queued(0);
  });
  expect((await pod.get('/?id=after', within(60_000))).status).toBe(200);
  for (const id of ['late', 'post', 'none-left']) expect(begun(id)).toEqual([]);
  const line = await until('it is logged', async () => (await pod.accessLog()).find(({ uri }) => uri === '/?id=late'));
  expect(line).toMatchObject({ status: 504, error: 'deadline', tries: '504', queueMs: null });
});

test('who may say it, and how', async () => {
  const said: object[] = [
    { [OWN]: '300' },
    { [OWN]: '000300' },
    { 'x-envoy-expected-rq-timeout-ms': '300' },
    { prefer: 'wait=1' },
    { prefer: 'respond-async, wait=1' },
    { prefer: 'return=minimal; foo="a, b", Wait = "1"' },
    { [OWN]: '300', 'x-envoy-expected-rq-timeout-ms': '60000', prefer: 'wait=60' },
    { [OWN]: '60000', 'x-envoy-expected-rq-timeout-ms': '300', prefer: 'wait=60' },
    { [OWN]: '60000', 'x-envoy-expected-rq-timeout-ms': '0', prefer: 'wait=1' },
    { [OWN]: 'soon', prefer: 'wait=1' },
  ];
  // What says nothing, or more than it takes.
  const nothing: object[] = [
    { [OWN]: '0' },
    { [OWN]: '-300' },
    { [OWN]: '0.3' },
    { [OWN]: '300ms' },
    { [OWN]: '1e2' },
    { [OWN]: '9999999999' },
    { [OWN]: '300, 300' },
    { [OWN]: '300%[int(1)]' },
    { [OWN]: '999999999' },
    { 'x-request-timeout-ms': '300' },
    { prefer: 'wait=60' },
    { prefer: 'wait=0.3' },
    { prefer: 'await=1' },
    { prefer: 'wait=1s' },
    { prefer: 'wait' },
    { 'x-corelane-deadlines': '300,0,0', 'x-corelane-until-ms': '1', 'x-corelane-times': '1.000,0.000' },
  ];
  let patient: Promise<Answer>[] = [];
  await whileBusy('who-says', async () => {
    patient = nothing.map((headers, n) => pod.get(`/?id=patient-${n}`, { headers: { ...headers } }));
    const answers = await Promise.all(said.map((headers, n) => pod.get(`/?id=said-${n}`, { headers: { ...headers } })));
    expect(answers.map((answer, n) => [said[n], ...error(answer)])).toEqual(
      said.map((headers) => [headers, ...DEADLINE]),
    );
    await pod.queued(nothing.length);
  });
  expect((await Promise.all(patient)).map(({ status }, n) => [nothing[n], status])).toEqual(
    nothing.map((headers) => [headers, 200]),
  );
  expect(pod.events({ event: 'begin' }).filter(({ id }) => id?.startsWith('said-'))).toEqual([]);
});

test('a worker gets no header of it, but its own', async () => {
  const { headers } = JSON.parse((await pod.get('/?id=headers', within(60_000))).body);
  expect(headers[OWN]).toBe('60000');
  for (const name of ['x-corelane-deadlines', 'x-corelane-times'])
    expect([name, headers[name]]).toEqual([name, undefined]);
});

test('a render that has begun keeps its worker until its end', async () => {
  const answer = pod.get('/?hold=1&id=renders', within(1_500));
  await pod.begun('renders');
  const next = pod.get('/?id=next');
  expect(error(await answer)).toEqual(DEADLINE);
  await pod.queued(1);
  expect([pod.events({ event: 'end', id: 'renders' }), begun('next')]).toEqual([[], []]);
  pod.release('renders');
  expect((await next).status).toBe(200);
  expect(pod.events({ event: 'end', id: 'renders' })).toHaveLength(1);
});

test('a response that has begun in time is not cut', async () => {
  const { status, body } = await pod.get('/?id=streams&length=14&more=done&after=4000', within(2_000));
  expect([status, body]).toEqual([200, 'xxxxxxxxxxdone']);
});

test('a client that goes leaves the queue', async () => {
  await whileBusy('gone-busy', async () => {
    const leaving = new AbortController();
    const gone = pod.get('/?id=gone', within(60_000, { signal: leaving.signal })).catch(() => 'gone');
    await pod.queued(1);
    leaving.abort();
    expect(await gone).toBe('gone');
    await pod.queued(0);
  });
  expect(begun('gone')).toEqual([]);
});

test('a browser that says it gets the page', async () => {
  await whileBusy('browser-busy', async () => {
    const headers = { accept: 'text/html', 'user-agent': 'Mozilla/5.0 Chrome/142.0' };
    const answer = await pod.get('/?id=browser', within(300, { headers }));
    expect([answer.status, answer.headers['x-corelane-error'], answer.body]).toEqual([503, 'deadline', '<p>shell']);
  });
  const own = await pod.get(
    '/?id=own&status=503',
    within(60_000, { headers: { accept: 'text/html', 'user-agent': 'Mozilla/5.0' } }),
  );
  expect([own.status, JSON.parse(own.body).id]).toEqual([503, 'own']);
});

test('a second try that comes too late is not rendered', async () => {
  // It is held for longer than that, so that no more workers die with it.
  const answer = await pod.get('/?die=1&id=twice', within(100));
  expect(error(answer)).toEqual(DEADLINE);
  await isFree(pod);
  expect((await pod.get('/?id=after-twice')).status).toBe(200);
  expect(begun('twice').length).toBeLessThanOrEqual(1);
});

test('a second try that comes in time is', async () => {
  expect((await pod.get('/?die=once&id=saved', within(60_000))).status).toBe(200);
  expect(begun('saved')).toHaveLength(2);
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

test.each([10_000, 200_000, 8_000_000, undefined])(
  'a body of %p bytes is answered when its turn comes, and not rendered',
  async (length) => {
    const body = 'x'.repeat(length ?? 10);
    const headers: Record<string, string> = length === undefined ? { 'transfer-encoding': 'chunked' } : {};
    let large: Promise<Answer> | undefined;
    await whileBusy(`large-busy-${length}`, async () => {
      const since = performance.now();
      large = pod.get(`/?id=large-${length}`, within(300, { method: 'POST', body, headers }));
      await pod.queued(1);
      await until('it has waited for too long', () => performance.now() - since > 600);
    });
    expect(error((await large) as Answer)).toEqual(DEADLINE);
    expect(begun(`large-${length}`)).toEqual([]);
  },
);

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
