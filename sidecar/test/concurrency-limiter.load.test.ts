/**
 * The concurrency limiter where time-outs of the proxies end something. Here because each render must outlast, or be
 * shorter than, one of them, of 2 s and more.
 */
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { talk, upgrade } from './concurrency-limiter.ts';

let pod: Pod;
beforeAll(async () => {
  pod = await Pod.start({
    workersPerPod: 1,
    // Longer than silence is allowed.
    webSockets: { enabled: true, maxAge: '15s' },
    timeouts: { render: '2s' },
    queue: { timeout: '60s' },
  });
});
afterAll(() => pod?.stop());
beforeEach(() => until('it is up', () => pod.isUp(0)));

test('a WebSocket that is silent for timeouts.render is closed', async () => {
  const silent = talk(pod, upgrade('silent'));
  await until('it is a WebSocket', () => silent.received.endsWith('\r\n\r\n'));
  const waiting = pod.get('/?id=behind-silent');
  // Long before webSockets.maxAge.
  await until('it is closed', () => silent.ended, 10_000);
  expect((await waiting).status).toBe(200);
});

test('a WebSocket that lasts for webSockets.maxAge is closed, though it is never silent', async () => {
  const busy = talk(pod, upgrade('busy'));
  await until('it is a WebSocket', () => busy.received.endsWith('\r\n\r\n'));
  const beginning = busy.received.length;
  busy.socket.on('data', () => busy.socket.write('x'));
  busy.socket.write('x');
  const waiting = pod.get('/?id=behind-busy');
  await until('it is closed', () => busy.ended);
  expect(busy.received.slice(beginning)).toMatch(/^x{2,}$/);
  expect((await waiting).status).toBe(200);
});

test('after the death of HAProxy the next request waits for the render that goes on', async () => {
  const lost = pod.get('/?id=orphan&ms=2900', { method: 'POST', body: 'x' });
  await pod.begun('orphan');
  await pod.killProxy(pod.haproxy, 'haproxy');
  expect((await lost).status).toBe(502);
  expect(pod.events({ event: 'end', id: 'orphan' })).toEqual([]);
  expect((await pod.get('/?id=heir')).status).toBe(200);
  expect((await pod.begun('heir')).inFlight).toBe(1);
});

test('a render whose client has gone gives its place back although a library has wrapped the end of its response', async () => {
  // 2 s, and one more of HAProxy.
  expect((await pod.get('/?id=wrapped&wrap=1&ms=3500')).status).toBe(504);
  await until('it has ended', () => pod.events({ event: 'end', id: 'wrapped' }).length);
  expect((await pod.get('/?id=after-wrapped', { method: 'POST' })).status).toBe(200);
});

test('no worker has ever had two requests at a time (I1)', () => {
  expect(Math.max(...pod.events({ event: 'begin' }).map(({ inFlight }) => inFlight ?? 0))).toBe(1);
});
