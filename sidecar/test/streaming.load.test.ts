/**
 * A client that is slow holds no worker, whatever it reads (I4); how long a stream may last, and what it waits for on
 * its way. In load: paces, floods, places that run out, and asserted durations.
 */
import { Fleet } from '../../e2e/harness/engine/fleet.ts';
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { budget } from '../../operator/src/render/model/budget.ts';
import { figure } from '../../operator/test/support/figure.ts';
import { NOTHING, readers, TEN_KB_PER_SECOND } from './neighbours.ts';
import { inSteps, openStream, STREAMS } from './stream.ts';

const KIB = 1024;
let auto: Pod;
let never: Pod;
/** Where a render may take two seconds, and a client as long for a read. */
let brief: Pod;
/** With few places. */
let few: Pod;
beforeAll(async () => {
  [auto, never, brief, few] = await Promise.all([
    Pod.start({ workersPerPod: 2 }, STREAMS),
    Pod.start({ workersPerPod: 2, streaming: 'Never' }, STREAMS),
    Pod.start({ workersPerPod: 1, timeouts: { render: '2s', clientSend: '2s' } }, STREAMS),
    Pod.start({ workersPerPod: 2, sidecar: { nginx: { memory: '32Mi', memoryLimit: '64Mi' } } }, STREAMS),
  ]);
});
afterAll(() => Promise.all([auto, never, brief, few].map((pod) => pod?.stop())));

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

test('an event stream may be silent for longer than a render may take', async () => {
  const open = (id: string, type: string) =>
    openStream(brief, inSteps(id, ['write:10', `hold:${id}`, 'write:10'], `&header=Content-Type:${type}`));
  const [events, text] = await Promise.all([
    open('silent-events', 'text/event-stream'),
    open('silent-text', 'text/plain'),
  ]);
  expect([await text.ended, text.bytes()]).toEqual([false, 10]);
  const began = performance.now();
  await until('twice the time of a render has passed', () => performance.now() - began > 4_000);
  brief.release('silent-events', 'silent-text');
  expect([await events.ended, events.bytes()]).toEqual([true, 20]);
});

test('a client that reads nothing of a download or a stream for more than a minute gets all of it', async () => {
  const size = 8_192 * KIB;
  const open = (id: string, steps: string[]) => openStream(auto, inSteps(id, steps), { paused: true, direct: true });
  const download = await open('pauses', [`write:${size}`]);
  const stream = await open('pauses-stream', ['paced:800x8192@100']);
  const began = performance.now();
  await until('the pause is over', () => performance.now() - began > 75_000, 90_000);
  download.resume();
  stream.resume();
  expect([await download.ended, download.bytes()]).toEqual([true, size]);
  expect([await stream.ended, stream.bytes()]).toEqual([true, 800 * 8_192]);
});

test('where too many clients have read nothing of their streams for a minute, those of the longest silence go', async () => {
  const { heldSlots } = budget(auto.spec);
  const path = inSteps('away', ['paced:100000x8192@100'], '&header=Content-Type:text/event-stream');
  const stop = await readers(auto, never, heldSlots + 2, path, NOTHING);
  const cut = await until(
    'two are cut',
    async () => {
      const lines = await logged(auto, 'away');
      return (lines?.length ?? 0) >= 2 ? lines : undefined;
    },
    120_000,
  );
  expect(cut.map(({ error }) => error)).toEqual(Array(2).fill('response-too-slow'));
  expect((await auto.get(inSteps('beside-away', ['write:10']))).status).toBe(200);
  expect(await logged(auto, 'away')).toHaveLength(2);
  await stop();
});

test('a client that stops reading a stream that goes on is cut off, and holds no worker', async () => {
  const stop = await readers(brief, never, 1, inSteps('unread', ['paced:100000x8192@20']), NOTHING);
  await until('the worker is free', () => brief.events({ event: 'end', id: 'unread' })[0]);
  const [cut] = await until('it is logged', () => logged(brief, 'unread'));
  expect(cut).toMatchObject({ status: 200, error: 'response-too-slow' });
  await stop();
});

test('a client that stops reading a download is cut off, and the log says why', async () => {
  const stop = await readers(brief, never, 1, inSteps('download', ['write:8388608']), NOTHING);
  await until('the worker is free', () => brief.events({ event: 'end', id: 'download' })[0]);
  const [cut] = await until('it is logged', () => logged(brief, 'download'));
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
  // The quarantine holds at most 25 requests of one client for a URL that it has not seen answered.
  expect((await few.get(page)).status).toBe(200);
  const stopOthers = await readers(few, never, requests - 1, page, { bytes: 6 * KIB, pauseMs: 100 });
  await until('all places are taken', () => few.events({ event: 'end', id: 'slower' }).length === requests);
  few.release('burst');
  await until('it writes', () => few.events({ event: 'hold', id: 'quiet-end' })[0]);
  // All at once, so that each needs a place.
  const more = Array.from({ length: 12 }, (_, n) => few.get(inSteps(`more-${n}`, ['hold:more', 'write:10'])));
  await until('others were turned out', async () => ((await logged(few, 'slower'))?.length ?? 0) > more.length);
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
  const beforeEndMs = 1_000 * Number(line.totalSeconds) - Number(line.firstByteMs);
  figure('time from the first byte of a stream of 0.6 s to its end', beforeEndMs, 'ms', '>= 400 ms');
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
    // Without a head it keeps its slot.
    const busy = openStream(home, inSteps('busy', ['hold:busy']));
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
    const tookMs = performance.now() - began;
    figure('time of a stream of 40 pieces from another pod', tookMs, 'ms', `< ${100 * rounds.length} ms`);
    // Linux would wait for more of each, for 200 ms.
    expect(tookMs).toBeLessThan(100 * rounds.length);
    expect(peer.events({ event: 'begin', id: 'handed-over' })).toHaveLength(1);
    home.release('busy');
    expect(await (await busy).ended).toBe(true);
  } finally {
    await fleet.stop();
  }
});
