/** Requests that say how long they are waited for: after that they are answered, and never rendered. */
import { type Answer, Pod, until } from '../../e2e/harness/engine/pod.ts';
import { DEADLINE, error, OWN, SPEC, waiting, within } from './deadlines.ts';

let pod: Pod;
beforeAll(async () => {
  pod = await Pod.start(SPEC);
});
afterAll(() => pod?.stop());
const { begun, whileBusy, answeredInTurn } = waiting(() => pod);

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
  // It needs the CPU: one that waits gives its slot back when its client has gone.
  const answer = pod.get('/?hold=busy&id=renders', within(8_000));
  await pod.begun('renders');
  const next = pod.get('/?id=next');
  expect(error(await answer)).toEqual(DEADLINE);
  await pod.queued(1);
  expect([pod.events({ event: 'end', id: 'renders' }), begun('next')]).toEqual([[], []]);
  pod.release('renders');
  expect((await next).status).toBe(200);
  expect(pod.events({ event: 'end', id: 'renders' })).toHaveLength(1);
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

test('a second try that comes in time is', async () => {
  expect((await pod.get('/?die=once&id=saved', within(60_000))).status).toBe(200);
  expect(begun('saved')).toHaveLength(2);
});

test.each([200_000, undefined])('a body of %p bytes is answered when its turn comes, and not rendered', answeredInTurn);
