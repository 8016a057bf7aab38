/**
 * The concurrency limiter before the program's HTTP server, and what is not a plain request: WebSockets, pipelined
 * ones, clients that go.
 */
import net from 'node:net';
import { docker } from '../../e2e/harness/engine/docker.ts';
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';

let pod: Pod;
let two: Pod;
beforeAll(async () => {
  [pod, two] = await Promise.all([
    Pod.start({
      workersPerPod: 1,
      // Longer than silence is allowed.
      webSockets: { enabled: true, maxAge: '15s' },
      timeouts: { render: '2s' },
      queue: { timeout: '60s' },
    }),
    Pod.start({ workersPerPod: 1, concurrency: 2 }),
  ]);
});
afterAll(() => Promise.all([pod?.stop(), two?.stop()]));
beforeEach(() => until('it is up', () => pod.isUp(0)));

/** Sends to the worker past the proxies, from inside its container. `send(path)` gives a request of node:http. */
async function inside(there: Pod, script: string): Promise<string> {
  const send = `const send = (path, done = () => {}) => require('node:http').get({ host: '127.0.0.1', port: process.env.PORT, path, agent: false }, done).on('error', () => {});`;
  const limit = 'corelane_worker_concurrency_limit';
  await until(
    'the limiter knows its limit',
    async () => (await there.runtimeMetric(0, limit)) === there.spec.concurrency,
  );
  return docker('exec', '--env', 'NODE_OPTIONS=', there.workers[0] ?? '', 'node', '-e', `${send}\n${script}`);
}

/** Raw bytes to the pod: what has come back so far, and until some text has come. */
function talk(text: string) {
  const socket = net.connect(pod.port(PORTS.http), '127.0.0.1', () => socket.write(text));
  const conversation = { socket, received: '', ended: false };
  socket.on('data', (chunk) => {
    conversation.received += chunk;
  });
  socket.on('error', () => {});
  socket.on('close', () => {
    conversation.ended = true;
  });
  return conversation;
}

const upgrade = (id: string) =>
  `GET /${id} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`;

test('a WebSocket passes, has its worker for as long as it lasts, and gives it back', async () => {
  expect((await pod.get('/?id=before')).status).toBe(200);
  const first = talk(upgrade('socket'));
  await until('it is a WebSocket', () => first.received.endsWith('\r\n\r\n'));
  expect(first.received).toMatch(/^HTTP\/1\.1 101 [\s\S]*s3pPLMBiTxaQ9kYGzzhZRbK\+xOo=/);
  first.socket.write('hello');
  await until('the echo', () => first.received.endsWith('hello'));
  const waiting = pod.get('/?id=behind-socket');
  await pod.queued(1);
  expect(pod.events({ id: 'behind-socket' })).toEqual([]);
  first.socket.destroy();
  expect((await waiting).status).toBe(200);
  expect(await pod.runtimeMetric(0, 'corelane_worker_overlap_total')).toBe(0);
});

test('a WebSocket that is silent for timeouts.render is closed', async () => {
  const silent = talk(upgrade('silent'));
  await until('it is a WebSocket', () => silent.received.endsWith('\r\n\r\n'));
  const waiting = pod.get('/?id=behind-silent');
  // Long before webSockets.maxAge.
  await until('it is closed', () => silent.ended, 10_000);
  expect((await waiting).status).toBe(200);
});

test('a WebSocket that lasts for webSockets.maxAge is closed, though it is never silent', async () => {
  const busy = talk(upgrade('busy'));
  await until('it is a WebSocket', () => busy.received.endsWith('\r\n\r\n'));
  const beginning = busy.received.length;
  busy.socket.on('data', () => busy.socket.write('x'));
  busy.socket.write('x');
  const waiting = pod.get('/?id=behind-busy');
  await until('it is closed', () => busy.ended);
  expect(busy.received.slice(beginning)).toMatch(/^x{2,}$/);
  expect((await waiting).status).toBe(200);
});

test('another protocol than WebSocket is not offered to the worker, nor a WebSocket unless it is wanted', async () => {
  const headers = { Connection: 'Upgrade', 'Sec-WebSocket-Version': '13' };
  const answers = [
    await pod.get('/?id=h2c', { headers: { ...headers, Upgrade: 'h2c' } }),
    await two.get('/?id=unwanted', { headers: { ...headers, Upgrade: 'websocket' } }),
  ];
  for (const { status, body } of answers) {
    expect(status).toBe(200);
    expect(JSON.parse(body).headers).not.toHaveProperty('upgrade');
  }
});

test('two requests at once on one connection are rendered one after the other', async () => {
  const text = await inside(
    pod,
    `const ask = (id, more) => 'GET /?ms=200&id=' + id + ' HTTP/1.1\\r\\nHost: x\\r\\n' + more + '\\r\\n';
     const socket = require('node:net').connect(process.env.PORT, '127.0.0.1');
     socket.write(ask('pipe-1', '') + ask('pipe-2', 'Connection: close\\r\\n'));
     socket.pipe(process.stdout);`,
  );
  expect(text).toMatch(/"id":"pipe-1"[\s\S]*"id":"pipe-2"/);
  const notes = pod.events().filter(({ id }) => id?.startsWith('pipe-'));
  expect(notes.map(({ id, event }) => `${id} ${event}`)).toEqual(
    ['pipe-1', 'pipe-2'].flatMap((id) => [`${id} begin`, `${id} end`]),
  );
});

test('who waits in the limiter and leaves is not rendered', async () => {
  const metric = (name: string) => pod.runtimeMetric(0, `corelane_worker_${name}_total`);
  const before = [await metric('overlap'), await metric('dropped')];
  await inside(
    pod,
    `send('/?ms=1500&id=stays');
     setTimeout(() => { const leaving = send('/?id=leaves'); setTimeout(() => leaving.destroy(), 500); }, 300);`,
  );
  await until('it has left', async () => (await metric('dropped')) > Number(before[1]));
  expect([await metric('overlap'), await metric('dropped')]).toEqual(before.map((count) => Number(count) + 1));
  expect(pod.events({ id: 'leaves' })).toEqual([]);
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

test('with concurrency 2 it lets two through at a time', async () => {
  await inside(two, `for (let n = 0; n < 5; n += 1) send('/?ms=200&id=two-' + n, (response) => response.resume());`);
  const inFlight = two.events({ event: 'begin' }).map((event) => event.inFlight);
  expect([inFlight.length, Math.max(...inFlight.map(Number))]).toEqual([6, 2]); // one of the test above
  expect(await two.runtimeMetric(0, 'corelane_worker_overlap_total')).toBe(3);
});

test('a try that the worker has promised not to begin ends, whenever it comes; the next one is another', async () => {
  const said = await inside(
    two,
    `const headers = { 'X-Corelane-Runtime': 'true' };
     const ask = (name) => fetch('http://127.0.0.1:9102/begun/' + name + '?ms=1&try=' + name, { headers }).then((answer) => answer.text());
     const request = (name) => new Promise((resolve) => {
       const headers = { 'x-request-id': 'promised', 'x-corelane-request': name };
       const options = { host: '127.0.0.1', port: process.env.PORT, path: '/?id=promised', headers, agent: false };
       require('node:http').get(options, ({ statusCode }) => resolve(statusCode)).on('error', ({ code }) => resolve(code));
     });
     (async () => console.log(JSON.stringify([await ask('one'), await request('one'), await request('one-again'), await ask('one-again')])))();`,
  );
  expect(JSON.parse(said)).toEqual(['no\n', 'ECONNRESET', 200, 'yes\n']);
  expect(two.events({ event: 'begin', id: 'promised' })).toHaveLength(1);
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
