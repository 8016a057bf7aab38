/** nginx compresses what nobody has, and a stream is at its client as soon as without. */
import { createHash } from 'node:crypto';
import { gunzipSync } from 'node:zlib';
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { rawConnection } from './raw.ts';
import { inSteps, openStream, STREAMS } from './stream.ts';

let pod: Pod;
let plain: Pod;
/** Whose responses all go through a file, as those that a cache keeps. */
let cached: Pod;
beforeAll(async () => {
  [pod, plain, cached] = await Promise.all([
    Pod.start({ workersPerPod: 2, compression: { enabled: true } }, STREAMS),
    Pod.start({ workersPerPod: 1 }, STREAMS),
    Pod.start(
      { workersPerPod: 1, compression: { enabled: true } },
      {
        ...STREAMS,
        edit: (_file, text) =>
          text
            .replace('  gzip on;\n', '  gzip on;\n  proxy_cache_path /tmp/cache keys_zone=all:1m;\n')
            .replace('  proxy_buffering on;\n', '  proxy_buffering on;\n  proxy_cache all;\n  proxy_cache_valid 1m;\n'),
      },
    ),
  ]);
});
afterAll(() => Promise.all([pod, plain, cached].map((one) => one?.stop())));

const HTML = '&header=Content-Type:text/html';
const GZIP = { headers: { 'accept-encoding': 'br;q=0, gzip' } };

/** Head and body of an answer, byte by byte. */
async function answer(there: Pod, path: string, ...lines: string[]): Promise<{ head: string; body: Buffer }> {
  const socket = await rawConnection(there.port(PORTS.http));
  const chunks: Buffer[] = [];
  socket.on('data', (chunk) => chunks.push(chunk));
  socket.write([`GET ${path} HTTP/1.1`, 'Host: a', 'Connection: close', ...lines, '', ''].join('\r\n'));
  await until('all of it', () => socket.destroyed);
  const all = Buffer.concat(chunks);
  const end = all.indexOf('\r\n\r\n');
  return { head: all.subarray(0, end).toString('latin1').toLowerCase(), body: all.subarray(end + 4) };
}

/** Takes the chunks apart. */
function whole(body: Buffer): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < body.length; ) {
    const line = body.indexOf('\r\n', at);
    const size = Number.parseInt(body.subarray(at, line).toString('latin1'), 16);
    parts.push(body.subarray(line + 2, line + 2 + size));
    at = line + 2 + size + 2;
  }
  return Buffer.concat(parts);
}

/** Sees to it that `bytes` can be read while the worker waits, and the rest after that. */
async function expectFlushed(id: string, steps: string[], bytes: number, there = pod): Promise<void> {
  const path = inSteps(id, [...steps, `hold:${id}-end`, 'write:10'], HTML);
  const stream = await openStream(there, path, { gunzip: true });
  expect(stream.headers['content-encoding']).toBe('gzip');
  await until(`${bytes} bytes can be read`, () => stream.bytes() === bytes);
  there.release(`${id}-end`);
  expect(await stream.ended).toBe(true);
  await until('all can be read', () => stream.bytes() === bytes + 10);
}

test.each([1, 300, 16_500, 20_000, 300_000])('a shell of %d bytes can be read before the worker goes on', (bytes) =>
  expectFlushed(`shell-${bytes}`, [`write:${bytes}`], bytes),
);

test('so can one of bytes that cannot be compressed, and one in many writes', async () => {
  await expectFlushed('noise', ['noise:60000'], 60_000);
  await expectFlushed('writes', ['writes:20x4000'], 80_000);
  await expectFlushed('bytes', ['writes:3000x1'], 3_000);
});

test('so can what goes through a file', async () => {
  for (const bytes of [1, 300, 20_000, 100_000])
    await expectFlushed(`file-${bytes}`, [`write:${bytes}`], bytes, cached);
});

test('a head comes before there is a body', () => expectFlushed('head', ['head'], 0));

/** The client reads only when all has been written: most has been on disk. */
test('what a slow client takes late can be read to its last byte before the worker goes on', async () => {
  for (let n = 0; n < 10; n += 1) {
    const [id, bytes] = [`late-${n}`, 3_000_000 + 1_111 * n];
    const path = inSteps(id, [`noise:${bytes}`, `hold:${id}-end`], HTML);
    const stream = await openStream(pod, path, { paused: true, gunzip: true });
    await until('it is written', () => pod.events({ event: 'hold', id: `${id}-end` })[0]);
    stream.resume();
    await until(`${bytes} bytes can be read`, () => stream.bytes() === bytes);
    pod.release(`${id}-end`);
    expect(await stream.ended).toBe(true);
  }
});

test('a slow client holds no worker', async () => {
  const slow = await openStream(pod, inSteps('slow', ['noise:3000000'], HTML), { paused: true, gunzip: true });
  await until('the render ends', () => pod.events({ event: 'end', id: 'slow' })[0]);
  slow.destroy();
});

test('a page of 100 kB arrives as it was, in fewer bytes, and says so', async () => {
  const steps = inSteps('page', ['write:100000'], `${HTML}&length=100000&header=ETag:"a"&header=Set-Cookie:b`);
  const { head, body } = await answer(pod, steps, 'Accept-Encoding: gzip');
  expect(head).toMatch(/^http\/1.1 200 /);
  expect(head).toMatch(/^content-encoding: gzip$/m);
  expect(head).toMatch(/^vary: accept-encoding$/m);
  expect(head).toMatch(/^etag: w\/"a"$/m);
  expect(head).not.toMatch(/^content-length:/m);
  const page = gunzipSync(whole(body));
  const digest = (bytes: Buffer | string) => createHash('sha256').update(bytes).digest('hex');
  expect(digest(page)).toBe(digest('x'.repeat(100_000)));
  expect(body.length).toBeLessThan(2_000);
});

test.each([
  ['a client that takes none', HTML, 'Accept-Encoding: identity'],
  ['a client that wants none', HTML, 'Accept-Encoding: gzip;q=0'],
  ['a client that says nothing', HTML, 'X: y'],
  ['what is compressed', `${HTML}&header=Content-Encoding:br`, 'Accept-Encoding: gzip'],
  ['what nobody may transform', `${HTML}&header=Cache-Control:private, No-Transform`, 'Accept-Encoding: gzip'],
  [
    'the same in a second line',
    `${HTML}&header=Cache-Control:private&header=Cache-Control:no-transform`,
    'Accept-Encoding: gzip',
  ],
  ['a picture', '&header=Content-Type:image/png', 'Accept-Encoding: gzip'],
  ['an event stream', '&header=Content-Type:text/event-stream', 'Accept-Encoding: gzip'],
  ['no type', '', 'Accept-Encoding: gzip'],
])('not for %s', async (what, more, line) => {
  const path = inSteps(`not-${what.replaceAll(' ', '-')}`, ['write:5000'], more.replaceAll(' ', '%20'));
  const { head, body } = await answer(pod, path, line);
  expect(head).not.toMatch(/^content-encoding: gzip$/m);
  expect(whole(body).toString('latin1')).toBe('x'.repeat(5_000));
});

test('not for what is small, and has a length', async () => {
  const { status, body, headers } = await pod.get(inSteps('small', ['write:1000'], `${HTML}&length=1000`), GZIP);
  expect([status, body.length, headers['content-encoding']]).toEqual([200, 1000, undefined]);
});

test('for nobody unless it is asked for', async () => {
  const { head } = await answer(plain, inSteps('plain', ['write:5000'], HTML), 'Accept-Encoding: gzip');
  expect(head).not.toMatch(/^(content-encoding|vary):/m);
});

test('a stream that its worker ends in the middle is no whole one', async () => {
  // Nothing of a response with a length comes while its worker waits (streaming: Auto), so this worker does not wait.
  const path = inSteps('broken', ['write:20000', 'destroy'], `${HTML}&length=30000`);
  const stream = await openStream(pod, path, { gunzip: true });
  expect(await stream.ended).toBe(false);
});
