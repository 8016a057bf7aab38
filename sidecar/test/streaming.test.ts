/** What a worker writes is at its client before it writes more. */
import { once } from 'node:events';
import http from 'node:http';
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { rawConnection } from './raw.ts';
import { inSteps, openStream, STREAMS, type Stream } from './stream.ts';

let auto: Pod;
let always: Pod;
let never: Pod;
beforeAll(async () => {
  [auto, always, never] = await Promise.all([
    Pod.start({ workersPerPod: 2 }, STREAMS),
    Pod.start({ workersPerPod: 1, streaming: 'Always' }, STREAMS),
    Pod.start({ workersPerPod: 2, streaming: 'Never' }, STREAMS),
  ]);
});
afterAll(() => Promise.all([auto, always, never].map((pod) => pod?.stop())));

/** Sees to it that a response arrives so far while its worker waits, and to its end after that. */
async function expectFlushed(pod: Pod, id: string, steps: string[], bytes: number, more = ''): Promise<void> {
  const path = inSteps(id, [...steps, `hold:${id}-end`, 'write:10'], more);
  const stream = await openStream(pod, path);
  await until(`${bytes} bytes are here`, () => stream.bytes() === bytes);
  pod.release(`${id}-end`);
  expect([await stream.ended, stream.bytes()]).toEqual([true, bytes + 10]);
}

test.each([300, 16_500, 20_000])('a shell of %d bytes comes whole before the worker goes on', (bytes) =>
  expectFlushed(auto, `shell-${bytes}`, [`write:${bytes}`], bytes),
);

test('shells in writes of 2 and of 4 kB, as React makes them, come whole', async () => {
  for (const size of [2_000, 4_000])
    for (let count = 1; count <= 20; count += 1)
      await expectFlushed(auto, `react-${size}-${count}`, [`writes:${count}x${size}`], count * size);
});

test('a worker that writes single bytes', () => expectFlushed(auto, 'bytes', ['writes:3000x1'], 3_000));

test('a head comes before there is a body', () => expectFlushed(auto, 'head', ['head'], 0));

test('a page with Content-Length goes out in whole buffers, or with Always as it comes', async () => {
  await expectFlushed(always, 'length', ['write:20000'], 20_000, '&length=20010');
  await expectFlushed(always, 'length-bytes', ['head', 'writes:100x1'], 100, '&length=110');
  const path = inSteps('whole', ['write:20000', 'hold:whole-end', 'write:10'], '&length=20010');
  const whole = await openStream(auto, path);
  await until('the first buffer is here', () => whole.bytes() > 15_000);
  expect((await auto.get(inSteps('beside-whole', ['write:10']))).status).toBe(200);
  expect(whole.bytes()).toBeLessThan(20_000);
  auto.release('whole-end');
  expect([await whole.ended, whole.bytes()]).toEqual([true, 20_010]);
});

test('Never: the last piece of a shell waits for the next one', async () => {
  const shell = await openStream(never, inSteps('off', ['write:20000', 'hold:off-end', 'write:10']));
  await until('the first pieces are here', () => shell.bytes() > 15_000);
  expect((await never.get(inSteps('beside-off', ['write:10']))).status).toBe(200);
  expect(shell.bytes()).toBeLessThan(20_000);
  never.release('off-end');
  expect([await shell.ended, shell.bytes()]).toEqual([true, 20_010]);
});

test('a client of HTTP/1.0 gets the pieces as they come, without chunks', async () => {
  const client = await rawConnection(auto.port(PORTS.http));
  let received = '';
  client.on('data', (data) => {
    received += data;
  });
  client.write(`GET ${inSteps('http10', ['write:20000', 'hold:http10-end', 'write:10'])} HTTP/1.0\r\n\r\n`);
  const body = () => received.split('\r\n\r\n')[1];
  await until('the shell is here', () => body()?.length === 20_000);
  auto.release('http10-end');
  await once(client, 'close');
  expect(body()).toBe('x'.repeat(20_010));
});

test('HEAD has no body, and its connections are used again', async () => {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  for (let n = 0; n < 3; n += 1) {
    const answer = await auto.get(inSteps(`no-body-${n}`, ['write:20000']), { method: 'HEAD', agent });
    expect([answer.status, answer.body]).toEqual([200, '']);
    expect((await auto.get(inSteps(`body-${n}`, ['write:20000']), { agent })).body).toHaveLength(20_000);
  }
  agent.destroy();
});

/** Bytes of a whole response, for `raw`. */
const raw = (text: string) => `raw:${Buffer.from(text).toString('base64')}`;
const CHUNKED = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n';

test('trailers and extensions of chunks: the pieces come, and so does the end', async () => {
  const steps = [raw(`${CHUNKED}5;name="value";x\r\nhello\r\n3 ;y\r\n`), raw('ab'), 'hold:odd'];
  const end = ['c\r\n0;last\r\nX-Trailer: 1\r\nX-More: 2\r\n\r\n'];
  const stream = await openStream(auto, inSteps('extensions', [...steps, ...end.map(raw), 'destroy']));
  await until('it is here but for the last byte', () => stream.bytes() === 7);
  auto.release('odd');
  expect([await stream.ended, stream.bytes()]).toEqual([true, 8]);
  await expectFlushed(auto, 'trailer', ['write:5', 'trailer:value'], 5);
});

test('a body that ends with its connection', () =>
  expectFlushed(auto, 'unframed', ['write:20000'], 20_000, '&unframed=1'));

test.each([
  ['chunks', ''],
  ['Content-Length', '&length=30000'],
])('a stream whose worker ends it in the middle is no whole response: %s', async (name, more) => {
  const path = inSteps(`broken-${name}`, ['write:20000', `hold:broken-${name}`, 'destroy'], more);
  const stream = await openStream(always, path);
  await until('a part is here', () => stream.bytes() === 20_000);
  always.release(`broken-${name}`);
  expect(await stream.ended).toBe(false);
});

test('a piece with a broken chunk after it is cut off there', async () => {
  const stream = await openStream(
    auto,
    inSteps('nonsense', [raw(`${CHUNKED}5\r\nhello\r\n`), 'hold:nonsense', raw('zz\r\nworld\r\n0\r\n\r\n')]),
  );
  await until('the piece is here', () => stream.bytes() === 5);
  auto.release('nonsense');
  expect([await stream.ended, stream.bytes()]).toEqual([false, 5]);
});

describe('a response that waits holds no render slot', () => {
  const EVENTS = '&header=Content-Type:text/event-stream';
  const withoutSlot = (worker: number) => auto.runtimeMetric(worker, 'corelane_worker_requests_without_slot');
  /** Requests that HAProxy gives a worker. */
  const places = (worker: number) =>
    auto.metric(`haproxy_server_limit_sessions{proxy="workers",server="worker-${worker}"}`);
  const isAsBefore = async (worker: number) => (await withoutSlot(worker)) === 0 && (await places(worker)) === 1;

  test.each([
    ['event streams', EVENTS],
    ['answers that come in pieces', '&header=Content-Type:text/plain'],
  ])('%s: two workers have four, and answer others', async (name, more) => {
    const ids = [1, 2, 3, 4].map((n) => `${name.replaceAll(' ', '-')}-${n}`);
    const streams: Stream[] = [];
    // From the third on each has the slot of one before it.
    for (const id of ids)
      streams.push(await openStream(auto, inSteps(id, ['write:10', `hold:${id}`, 'write:10'], more)));
    expect((await auto.get(inSteps(`beside-${ids[0]}`, ['write:10']))).status).toBe(200);
    await until('all have given theirs back', async () => (await withoutSlot(0)) + (await withoutSlot(1)) === 4);
    await until('HAProxy knows', async () => (await places(0)) + (await places(1)) === 6);
    auto.release(...ids);
    expect(await Promise.all(streams.map(({ ended }) => ended))).toEqual([true, true, true, true]);
    expect(streams.map((stream) => stream.bytes())).toEqual([20, 20, 20, 20]);
    await until('each worker has one slot again', async () => (await isAsBefore(0)) && (await isAsBefore(1)));
  });

  test('streams that end with their worker are not counted any more', async () => {
    const stream = await openStream(auto, inSteps('dies', ['write:10', 'hold:never'], EVENTS));
    const { worker, pid } = await auto.begun('dies');
    await until('HAProxy knows', async () => (await places(worker)) === 2);
    await auto.kill(worker, pid, 'KILL');
    expect(await stream.ended).toBe(false);
    await until('the next process has one slot', async () => (await auto.isUp(worker)) && (await isAsBefore(worker)));
  });
});
