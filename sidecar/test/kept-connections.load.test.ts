/**
 * Connections inside the pod that are used for more than one request, and the moments in which one of both ends closes
 * them. Here because of durations, and because of a pod for nearly each.
 */
import { ANY_URL_KEEPS, KEEPS_LONG, Pod, until } from '../../e2e/harness/engine/pod.ts';
import { figure } from '../../operator/test/support/figure.ts';
import { CLOSES_SOON, IDLE, keeping, start } from './kept-connections.ts';

let pod: Pod;
const { warm, expectOneTry } = keeping(() => pod);
beforeAll(async () => {
  pod = await start();
});
afterAll(() => pod?.stop());
beforeEach(warm);

test.each(['PUT', 'PATCH', 'DELETE'])(
  'a %s that kills its worker over a kept connection gets no second one, and its worker is named',
  (method) => expectOneTry(method),
);

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

test('a response that is shorter than its Content-Length is cut at once, and its worker is free', async () => {
  const began = performance.now();
  await expect(pod.get('/?id=too-short&length=20')).rejects.toThrow(/aborted|hang up/);
  expect((await pod.get('/?id=behind-too-short')).status).toBe(200);
  const tookMs = performance.now() - began;
  figure('time of a response that is too short, and of the next request', tookMs, 'ms', '< 20000 ms');
  // Its time would be over after timeouts.render.
  expect(tookMs).toBeLessThan(20_000);
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
