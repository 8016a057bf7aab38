/**
 * What a worker writes is at its client before it writes more, and a client that is slow holds no worker all the same
 * (I4).
 */
import { once } from 'node:events';
import http from 'node:http';
import { Fleet } from '../../e2e/harness/engine/fleet.ts';
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { budget } from '../../operator/src/render/model/budget.ts';
import { NOTHING, readers, TEN_KB_PER_SECOND } from './neighbours.ts';
import { rawConnection } from './raw.ts';
import { inSteps, openStream, STREAMS } from './stream.ts';

const KIB = 1024;
let auto: Pod;
let always: Pod;
let never: Pod;
/** Where a render may take two seconds, and a client as long for a read. */
let brief: Pod;
/** With few places. */
let few: Pod;
beforeAll(async () => {
  [auto, always, never, brief, few] = await Promise.all([
    Pod.start({ workersPerPod: 2 }, STREAMS),
    Pod.start({ workersPerPod: 1, streaming: 'Always' }, STREAMS),
    Pod.start({ workersPerPod: 2, streaming: 'Never' }, STREAMS),
    Pod.start({ workersPerPod: 1, timeouts: { render: '2s', clientSend: '2s' } }, STREAMS),
    Pod.start({ workersPerPod: 2, sidecar: { nginx: { memory: '32Mi', memoryLimit: '64Mi' } } }, STREAMS),
  ]);
});
afterAll(() => Promise.all([auto, always, never, brief, few].map((pod) => pod?.stop())));

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

/**
 * The client reads only when all has been written. Its connection takes some 220 kB until then, so at some of these
 * lengths nginx has less left than it would send by itself: a part of one buffer.
 */
test('shells beyond what sockets hold come whole', async () => {
  for (let bytes = 180_000; bytes < 280_000; bytes += 1_000) {
    const id = `large-${bytes}`;
    const path = inSteps(id, [`write:${bytes}`, `hold:${id}-end`]);
    const stream = await openStream(auto, path, { paused: true, direct: true });
    await until('it is written', () => auto.events({ event: 'hold', id: `${id}-end` })[0]);
    // Each of these goes through the same loops of HAProxy and nginx, which hand on a piece in each turn.
    for (let n = 0; n < 12; n += 1) await auto.get(inSteps(`beside-${id}`, ['write:10']));
    stream.resume();
    await until(`${bytes} bytes are here`, () => stream.bytes() === bytes);
    auto.release(`${id}-end`);
    expect(await stream.ended).toBe(true);
  }
});

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

/** Lines of the access log about the requests with this name; undefined if there are none. */
async function logged(pod: Pod, id: string): Promise<Record<string, unknown>[] | undefined> {
  const lines = (await pod.accessLog()).filter(({ uri }) => String(uri).startsWith(`/?id=${id}&`));
  return lines.length > 0 ? lines : undefined;
}

test.each([
  ['200 of 10 kB/s, writes of 4 kB', 200, ['writes:256x4096'], TEN_KB_PER_SECOND],
  ['200 of 10 kB/s, one chunk', 200, ['write:1048576'], TEN_KB_PER_SECOND],
  // And more than the kernels of both ends keep.
  ['two of nothing, single bytes', 2, ['writes:200000x1', 'write:1048576'], NOTHING],
])('readers hold no worker, however a page is written: %s', async (name, count, steps, pace) => {
  const id = name.replace(/[^a-z0-9]/g, '');
  const stop = await readers(auto, never, count, inSteps(id, steps), pace);
  await until('all are rendered', () => auto.events({ event: 'end', id }).length === count, 60_000);
  const sessions = 'haproxy_backend_current_sessions{proxy="workers"}';
  await until('HAProxy has none', async () => (await auto.metric(sessions)) === 0);
  // nginx still has them.
  expect(await logged(auto, id)).toBeUndefined();
  await stop();
});

test('a stream lasts for as long as it says something, and no longer when its client has gone', async () => {
  const lasting = await openStream(brief, inSteps('lasting', ['paced:12x10@500']));
  expect([await lasting.ended, lasting.bytes()]).toEqual([true, 120]);
  const endless = await openStream(brief, inSteps('endless', ['paced:100000x10@50']));
  await until('it streams', () => endless.bytes() > 100);
  endless.destroy();
  await until('the worker is told', () => brief.events({ event: 'end', id: 'endless' })[0]);
});

test('a client that stops reading a stream that goes on is cut off, and holds no worker', async () => {
  const stop = await readers(brief, never, 1, inSteps('unread', ['paced:100000x8192@20']), NOTHING);
  await until('the worker is free', () => brief.events({ event: 'end', id: 'unread' })[0]);
  const [cut] = await until('it is logged', () => logged(brief, 'unread'));
  expect(cut).toMatchObject({ status: 200, error: 'response-too-slow' });
  await stop();
});

test('a stream that was quiet keeps its place before those whose clients are slower than its own', async () => {
  const { requests } = budget(few.spec);
  // 10 s: with these its client would be the slowest, at 100 kB/s.
  const steps = ['paced:20x10@500', 'hold:burst', `write:${4096 * KIB}`, 'hold:quiet-end'];
  const stop = await readers(few, never, 1, inSteps('quiet', steps), { bytes: 10 * KIB, pauseMs: 100 });
  await until('it has been quiet', () => few.events({ event: 'hold', id: 'burst' })[0]);
  const page = inSteps('slower', [`write:${4096 * KIB}`]);
  const stopOthers = await readers(few, never, requests - 1, page, { bytes: 6 * KIB, pauseMs: 100 });
  await until('all places are taken', () => few.events({ event: 'end', id: 'slower' }).length === requests - 1);
  few.release('burst');
  await until('it writes', () => few.events({ event: 'hold', id: 'quiet-end' })[0]);
  // All at once, so that each needs a place.
  const more = Array.from({ length: 12 }, (_, n) => few.get(inSteps(`more-${n}`, ['hold:more', 'write:10'])));
  await until('others were turned out', async () => ((await logged(few, 'slower'))?.length ?? 0) >= more.length);
  expect(await logged(few, 'quiet')).toBeUndefined();
  few.release('more');
  expect((await Promise.all(more)).map(({ status }) => status)).toEqual(Array(12).fill(200));
  few.release('quiet-end');
  await Promise.all([stop(), stopOthers()]);
});

test('the access log has the time of the first byte, and none where nothing came from HAProxy', async () => {
  const stream = await openStream(auto, inSteps('first', ['write:10', 'paced:3x1@200']));
  expect(await stream.ended).toBe(true);
  const [line = {}] = await until('it is logged', () => logged(auto, 'first'));
  expect(line.firstByteMs).toBeGreaterThanOrEqual(0);
  expect(line.firstByteMs).toBeLessThanOrEqual(1_000 * Number(line.totalSeconds) - 400);
  expect((await auto.get('/?id=too-large&', { method: 'POST', body: Buffer.alloc(11_000_000) })).status).toBe(413);
  const [refused] = await until('it is logged', () => logged(auto, 'too-large'));
  expect(refused).toMatchObject({ status: 413, firstByteMs: null });
});

test('what a worker of another pod writes is not held back on its way', async () => {
  const fleet = await Fleet.start(2, { workersPerPod: 1 }, STREAMS);
  try {
    const [home, peer] = fleet.pods as [Pod, Pod];
    const busy = openStream(home, inSteps('busy', ['head', 'hold:busy']));
    await home.begun('busy');
    const rounds = Array.from({ length: 40 }, (_unused, n) => `round-${n}`);
    const steps = rounds.flatMap((round) => ['write:100', `hold:${round}`]);
    const stream = await openStream(home, inSteps('handed-over', steps));
    const began = performance.now();
    for (const [n, round] of rounds.entries()) {
      await until('the piece is here', () => stream.bytes() === 100 * (n + 1));
      peer.release(round);
    }
    expect(await stream.ended).toBe(true);
    // Linux would wait for more of each, for 200 ms.
    expect(performance.now() - began).toBeLessThan(100 * rounds.length);
    expect(peer.events({ event: 'begin', id: 'handed-over' })).toHaveLength(1);
    home.release('busy');
    expect(await (await busy).ended).toBe(true);
  } finally {
    await fleet.stop();
  }
});
