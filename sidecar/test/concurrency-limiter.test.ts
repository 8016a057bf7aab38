/**
 * The concurrency limiter before the program's HTTP server, and what is not a plain request: WebSockets, pipelined
 * ones, clients that go.
 */
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { inside, talk, upgrade } from './concurrency-limiter.ts';

let pod: Pod;
let two: Pod;
beforeAll(async () => {
  [pod, two] = await Promise.all([
    Pod.start({ workersPerPod: 1, webSockets: { enabled: true } }),
    Pod.start({ workersPerPod: 1, concurrency: 2 }),
  ]);
});
afterAll(() => Promise.all([pod?.stop(), two?.stop()]));
beforeEach(() => until('it is up', () => pod.isUp(0)));

test('a WebSocket passes, has its worker for as long as it lasts, and gives it back', async () => {
  expect((await pod.get('/?id=before')).status).toBe(200);
  const first = talk(pod, upgrade('socket'));
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
  const [overlap = 0, dropped = 0] = [await metric('overlap'), await metric('dropped')];
  // The script goes on when a file is there that pod.release makes.
  const sent = inside(
    pod,
    `const on = (name, action) => {
       const file = process.env.EVENTS + '.' + name;
       const timer = setInterval(() => { if (require('node:fs').existsSync(file)) { clearInterval(timer); action(); } }, 10);
     };
     send('/?hold=1&id=stays', (response) => response.resume());
     on('ask', () => {
       const leaving = send('/?id=leaves');
       // One that comes when the worker has seen the end of the other's connection.
       leaving.once('close', () => send('/?id=comes-later', (response) => response.resume()));
       on('leave', () => leaving.destroy());
     });`,
  );
  await pod.begun('stays');
  pod.release('ask');
  await until('the other one waits', async () => (await metric('overlap')) === overlap + 1);
  pod.release('leave');
  await until('it has left, and a later one waits', async () => (await metric('overlap')) === overlap + 2);
  pod.release('stays');
  await sent;
  expect([await metric('overlap'), await metric('dropped')]).toEqual([overlap + 2, dropped + 1]);
  expect(pod.events({ id: 'leaves' })).toEqual([]);
});

test('with concurrency 2 it lets two through at a time', async () => {
  const overlaps = () => two.runtimeMetric(0, 'corelane_worker_overlap_total');
  const before = await overlaps();
  const sent = inside(
    two,
    `for (let n = 0; n < 5; n += 1) send('/?hold=1&id=two-' + n, (response) => response.resume());`,
  );
  await until('three wait', async () => (await overlaps()) === before + 3);
  two.release(...[0, 1, 2, 3, 4].map((n) => `two-${n}`));
  await sent;
  const begun = two.events({ event: 'begin' }).filter(({ id }) => id?.startsWith('two-'));
  const inFlight = begun.map((event) => event.inFlight);
  expect([inFlight.length, Math.max(...inFlight.map(Number))]).toEqual([5, 2]);
  expect(await overlaps()).toBe(before + 3);
});

test('of two renders that wait the one whose client has gone gives its slot back', async () => {
  const withoutSlot = () => two.runtimeMetric(0, 'corelane_worker_requests_without_slot');
  const stays = two.get('/?hold=1&id=client-stays');
  await two.begun('client-stays');
  const leave = new AbortController();
  const leaves = two.get('/?hold=1&id=client-leaves', { signal: leave.signal }).catch(() => 'gone');
  await two.begun('client-leaves');
  leave.abort();
  expect(await leaves).toBe('gone');
  expect((await two.get('/?id=in-its-place')).status).toBe(200);
  // HAProxy was asked about both.
  expect(await withoutSlot()).toBe(1);
  two.release('client-stays', 'client-leaves');
  expect((await stays).status).toBe(200);
  await until('both have ended', async () => (await withoutSlot()) === 0);
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

test('no worker has ever had two requests at a time (I1)', () => {
  expect(Math.max(...pod.events({ event: 'begin' }).map(({ inFlight }) => inFlight ?? 0))).toBe(1);
});
