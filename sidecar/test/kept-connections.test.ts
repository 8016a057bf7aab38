/**
 * Connections inside the pod that are used for more than one request: for which, and what must never come of it (I5).
 */
import { ANY_URL_KEEPS, KEEPS_LONG, Pod, until } from '../../e2e/harness/engine/pod.ts';

/** A program that would close what is idle before HAProxy does. */
const CLOSES_SOON = { KEEPS_ALIVE_MS: '1' };

const IDLE = 'haproxy_server_idle_connections_current{proxy="workers",server="worker-0"}';

let pod: Pod;
beforeAll(async () => {
  pod = await Pod.start({ workersPerPod: 1, ...ANY_URL_KEEPS }, { env: CLOSES_SOON, ...KEEPS_LONG });
});
afterAll(() => pod?.stop());
/** Two connections of each kind, both of which have been used: the next requests may use them again. */
beforeEach(async () => {
  const ids = [...Array(4).keys()].map((n) => `warm-${n}`);
  // A worker that has just been started again is not guarded at once, and until then none is kept.
  await until('they are kept', async () => {
    for (const pair of [ids.slice(0, 2), ids.slice(2)])
      await Promise.all(pair.map((id) => pod.get(`/?ms=50&id=${id}`)));
    return (await pod.metric(IDLE)) > 0;
  });
});

const counts = async () => ({
  front: await pod.metric('haproxy_frontend_connections_total{proxy="front"}'),
  slots: await pod.metric('haproxy_frontend_connections_total{proxy="slots"}'),
  reused: await pod.metric('haproxy_backend_connection_reuses_total{proxy="workers"}'),
});

/** Each time that a worker began with one of these requests: whether it had seen the connection before. */
function hadConnection(...ids: string[]): boolean[] {
  const seen = new Set<number | undefined>();
  const had: boolean[] = [];
  for (const { id = '', port } of pod.events({ event: 'begin' })) {
    if (ids.includes(id)) had.push(seen.has(port));
    seen.add(port);
  }
  return had;
}

test.each(['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'DELETE'])(
  'a %s goes over the connections of one before, whatever that was',
  async (method) => {
    const before = await counts();
    const ids = [0, 1, 2].map((n) => `${method}-${n}`);
    for (const id of ids) expect((await pod.get(`/?id=${id}`, { method })).status).toBe(200);
    expect(await counts()).toEqual({ ...before, reused: before.reused + 3 });
    expect(hadConnection(...ids)).toEqual([true, true, true]);
  },
);

test('a connection that ends just as it is used again loses no request; the second try has one of its own', async () => {
  const ids = [0, 1, 2].map((n) => `dropped-${n}`);
  for (const id of ids) expect((await pod.get(`/?id=${id}&drop=once`)).status).toBe(200);
  expect(ids.map((id) => hadConnection(id)[1])).toEqual([false, false, false]);
  expect(hadConnection('dropped-0')[0]).toBe(true);
});

test('a request that kills its worker over a kept connection gets a second one, and no third', async () => {
  const { status, headers } = await pod.get('/?id=killer&die=1');
  expect([status, headers['x-corelane-error']]).toEqual([502, 'worker-died']);
  expect(pod.events({ event: 'begin', id: 'killer' })).toHaveLength(2);
});

test.each(['POST', 'PUT', 'PATCH', 'DELETE'])(
  'a %s that kills its worker over a kept connection gets no second one, and its worker is named',
  async (method) => {
    const id = `killer-${method}`;
    const { status, headers } = await pod.get(`/?id=${id}&die=1`, { method });
    expect([status, headers['x-corelane-error']]).toEqual([502, 'worker-died']);
    expect(hadConnection(id)).toEqual([true]);
    const line = await until('its line is written', async () =>
      (await pod.accessLog()).find(({ uri }) => String(uri).includes(id)),
    );
    expect(line).toMatchObject({ worker: 'worker-0', tries: '502, 502' });
  },
);

test('a POST whose connection a program ends instead of an answer is not begun again', async () => {
  const { status, headers } = await pod.get('/?id=dropped-post&drop=once', { method: 'POST' });
  expect([status, headers['x-corelane-error']]).toEqual([502, 'worker-died']);
  expect(hadConnection('dropped-post')).toEqual([true]);
});

/**
 * With its connection open, unread, while the event loop is blocked by another request, which then ends all that
 * Node.js takes for idle.
 */
test.each([0, 300_000])('a POST of %i bytes whose connection a program ends unread is not lost', async (bytes) => {
  const two = await Pod.start({ workersPerPod: 1, concurrency: 2, ...ANY_URL_KEEPS }, KEEPS_LONG);
  try {
    await until('two connections are kept', async () => {
      await Promise.all([0, 1].map((n) => two.get(`/?ms=50&id=both-${n}`)));
      return (await two.metric(IDLE)) === 2;
    });
    const long = two.get('/?id=closer&block=1000&closes-idle=1');
    await two.begun('closer');
    const body = Buffer.alloc(bytes, 'x');
    const answer = await two.get('/?id=beside-closer', { method: 'POST', body });
    expect([answer.status, JSON.parse(answer.body).bytes]).toEqual([200, bytes]);
    expect((await long).status).toBe(200);
    expect(two.events({ event: 'begin', id: 'beside-closer' })).toHaveLength(1);
    const line = await until('its line is written', async () =>
      (await two.accessLog()).find(({ uri }) => uri === '/?id=beside-closer'),
    );
    expect(line.tries).toBe('502, 200');
  } finally {
    await two.stop();
  }
});

test('an answer that comes before the body has been read leaves nothing behind for the next request', async () => {
  const body = Buffer.alloc(2_000_000, 'GET /forged HTTP/1.1\r\nHost: x\r\n\r\n');
  for (const n of [0, 1, 2]) {
    expect((await pod.get(`/?id=unread-${n}&unread=1`, { method: 'POST', body })).status).toBe(200);
    const { body: answer } = await pod.get(`/?id=behind-unread-${n}`, { method: 'POST' });
    expect(JSON.parse(answer)).toMatchObject({ id: `behind-unread-${n}`, bytes: 0 });
  }
  expect(pod.events({ event: 'begin', id: '/forged' })).toEqual([]);
});

test('nobody is left in the waiting room when its requests have been answered', async () => {
  const everInWaitingRoom = () => pod.metric('haproxy_frontend_sessions_total{proxy="waiting-room"}');
  const inWaitingRoom = 'haproxy_frontend_current_sessions{proxy="waiting-room"}';
  const before = await everInWaitingRoom();
  await until('a request has waited there', async () => {
    await pod.kill(0, pod.server(0), 'KILL');
    expect((await pod.get('/?id=waits')).status).toBe(200);
    return (await everInWaitingRoom()) > before;
  });
  await until('it is empty', async () => (await pod.metric(inWaitingRoom)) === 0, 2_000);
});

test('what a program sends beyond its Content-Length is never the answer to the next request', async () => {
  const forged = encodeURIComponent('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged');
  const { reused } = await counts();
  const long = pod.get(`/?id=too-long&hold=1&length=10&more=${forged}`);
  await pod.begun('too-long');
  const behind = pod.get('/?id=behind-too-long');
  // It comes over the same connection when HAProxy has got ten bytes, and waits there when the others are sent.
  await pod.queued(1);
  pod.release('too-long');
  const [first, second] = await Promise.all([long, behind]);
  expect([first.status, first.body]).toEqual([200, 'x'.repeat(10)]);
  expect([second.status, JSON.parse(second.body).id]).toEqual([200, 'behind-too-long']);
  expect((await counts()).reused).toBe(reused + 2);
});

test('a response that is shorter than its Content-Length is cut at once, and its worker is free', async () => {
  const began = performance.now();
  await expect(pod.get('/?id=too-short&length=20')).rejects.toThrow(/aborted|hang up/);
  expect((await pod.get('/?id=behind-too-short')).status).toBe(200);
  // Its time would be over after 30 s.
  expect(performance.now() - began).toBeLessThan(20_000);
});

test('a response whose bytes are all there, and which is never ended, takes no other with it', async () => {
  const answers = await Promise.all([
    pod.get('/?id=endless&length=10&never=1'),
    pod.begun('endless').then(() => pod.get('/?id=behind-endless')),
  ]);
  expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  expect(JSON.parse(answers[1].body).id).toBe('behind-endless');
});

test('a worker that wants to authenticate the connection has nobody tied to it', async () => {
  const before = await counts();
  for (const n of [0, 1]) expect((await pod.get(`/?id=ntlm-${n}&status=401`)).status).toBe(401);
  expect((await pod.get('/?id=behind-ntlm')).status).toBe(200);
  expect((await counts()).front).toBe(before.front + 1);
});

test('idle connections to a worker are given up by HAProxy, and soon', async () => {
  const usual = await Pod.start({ workersPerPod: 1, concurrency: 2, ...ANY_URL_KEEPS });
  try {
    await until('two are kept', async () => {
      await Promise.all([0, 1].map((n) => usual.get(`/?ms=50&id=kept-${n}`)));
      return (await usual.metric(IDLE)) === 2;
    });
    await until('none is left', async () => (await usual.metric(IDLE)) === 0);
  } finally {
    await usual.stop();
  }
});

test('a program with a short keep-alive time-out closes nothing that is used, after a long render', async () => {
  const two = await Pod.start({ workersPerPod: 1, concurrency: 2, ...ANY_URL_KEEPS }, { env: CLOSES_SOON });
  try {
    await until('two are kept', async () => {
      await Promise.all([0, 1].map((n) => two.get(`/?ms=50&id=both-${n}`)));
      return (await two.metric(IDLE)) === 2;
    });
    const long = two.get('/?id=long&block=1500');
    await two.begun('long');
    // It comes over the other connection, and is read when that has been idle for too long.
    expect((await two.get('/?id=beside-long')).status).toBe(200);
    await long;
    const line = await until('its line is written', async () =>
      (await two.accessLog()).find(({ uri }) => uri === '/?id=beside-long'),
    );
    expect(line.tries).toBe('200');
  } finally {
    await two.stop();
  }
});

test('without the runtime in the worker no connection to it is used twice', async () => {
  const bare = await Pod.start({ workersPerPod: 1, runtime: { instrument: false } });
  try {
    const ids = [0, 1, 2].map((n) => `bare-${n}`);
    for (const id of ids) expect((await bare.get(`/?id=${id}`)).status).toBe(200);
    const ports = ids.map((id) => bare.events({ event: 'begin', id })[0]?.port);
    expect(new Set(ports).size).toBe(3);
  } finally {
    await bare.stop();
  }
});
