/**
 * What clients can do with streams and frames: whoever asks without end has no more of nginx than others, and what a
 * client leaves behind is no request. Beside them others are served.
 */
import { docker } from '../../e2e/harness/engine/docker.ts';
import { type Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { headers, request, TYPE } from './apps/frames.mjs';
import { hostileClients, STREAMS, start } from './http2-hostile.ts';

let pod: Pod;
const { client, closeAll, expectUnharmed, remember, signal } = hostileClients(() => pod);
beforeAll(async () => {
  pod = await start();
  await remember();
});
afterEach(closeAll);
afterAll(() => pod?.stop());

/** Bytes that clients have sent and nginx has not read, by connection. */
async function unread(): Promise<number[]> {
  const lines = (await docker('exec', pod.nginx, 'cat', '/proc/net/tcp')).matchAll(/ 01 [0-9A-F]{8}:([0-9A-F]{8}) /g);
  return [...lines].map(([, bytes = '']) => Number.parseInt(bytes, 16)).filter((bytes) => bytes > 0);
}

/** nginx stands still until all of it is in its socket. */
test('what a client has left behind when it goes is no request', async () => {
  const came = client();
  await until('it is open', () => came.of(TYPE.settings).length === 2);
  await signal('STOP');
  try {
    // No more than a socket takes that nobody reads.
    came.socket.end(
      Buffer.concat(Array.from({ length: 500 }, (_unused, n) => headers(1 + 2 * n, request('/?id=left-behind')))),
    );
    const CLOSE_WAIT = new RegExp(`^ *\\d+: \\S+:${PORTS.http.toString(16).toUpperCase()} \\S+ 08 `, 'm');
    await until('all of it is there', async () =>
      CLOSE_WAIT.test(await docker('exec', pod.nginx, 'cat', '/proc/net/tcp')),
    );
  } finally {
    await signal('CONT');
  }
  await expectUnharmed();
  expect(pod.events({ id: 'left-behind' })).toEqual([]);
});

test('who asks for much at once has no more of a round than others', async () => {
  const [greedy, fair] = [client(), client()];
  await until('they are open', () => [greedy, fair].every((came) => came.of(TYPE.settings).length === 2));
  await signal('STOP');
  try {
    const ids = Array.from({ length: STREAMS }, (_unused, n) => 1 + 2 * n);
    const heads = ids.map((each) => headers(each, request('/?id=greedy')));
    greedy.send(...heads);
    await until('all of it is there, before the others', async () =>
      (await unread()).some((bytes) => bytes >= Buffer.concat(heads).length),
    );
    fair.send(headers(1, request('/?id=fair')));
    await until('the other one is there, too', async () => (await unread()).length >= 2);
  } finally {
    await signal('CONT');
  }
  await until('all have been answered', () => fair.whole(1) && greedy.of(TYPE.headers).length === STREAMS);
  // Without a part of the round it would come when all places have been taken.
  expect(fair.status(1)).toBe(200);
  const order = pod.events({ event: 'begin' }).filter(({ id: one = '' }) => /^(greedy|fair)$/.test(one));
  // Some 20 heads are a part.
  expect(order.findIndex(({ id: one }) => one === 'fair')).toBeLessThan(STREAMS / 2);
});

test.each([
  ['pings', '/ping'],
  ['hosts that are none', ''],
])('who asks for %s again and again needs a new connection', async (_what, path) => {
  const came = client();
  const asked = path ? request(path) : [...request('/').slice(0, 3), [':authority', 'a!'] as const];
  for (let n = 0; n < 100 && came.goaway() === undefined; n += 1) {
    came.send(headers(1 + 2 * n, asked));
    await until('an answer', () => came.whole(1 + 2 * n) || came.goaway() !== undefined);
  }
  expect(came.goaway()).toBe(0);
  expect(came.frames.filter(({ type }) => type === TYPE.headers).length).toBeGreaterThanOrEqual(2);
  await until('it is closed', () => came.ended);
});

test('who is told to go has all that it has asked for by then', async () => {
  const came = client();
  const asked = Array.from({ length: 9 }, (_unused, n) =>
    headers(1 + 2 * n, request(n < 8 ? '/ping' : '/?id=asked-before')),
  );
  came.send(...asked);
  await until('it is closed', () => came.ended);
  expect(asked.map((_unused, n) => came.status(1 + 2 * n))).toEqual(Array(9).fill(200));
  expect([came.goaway(), came.of(TYPE.reset)]).toEqual([0, []]);
});

test.each<[string, string, number | undefined]>([
  [
    'one header 5,000 times',
    "[...h.request('/?id=bomb'), h.field('a', '', true), ...Array.from({ length: 5000 }, () => h.indexed(62))]",
    431,
  ],
  [
    '4 kB 50 times',
    "[...h.request('/?id=bomb'), h.field('a', 'x'.repeat(4000), true), ...Array.from({ length: 50 }, () => h.indexed(62))]",
    undefined,
  ],
  ['a header of 40 kB', "[...h.request('/?id=bomb'), ['a', 'x'.repeat(40_000)]]", undefined],
])('a head that grows as it is read is refused: %s', async (_what, fields, status) => {
  const h = await import('./apps/frames.mjs');
  const came = client();
  const bytes = new Function('h', `return h.headers(1, ${fields})`)(h) as Buffer;
  came.send(bytes);
  await until('it is refused', () => came.whole(1) || came.ended);
  expect(came.status(1)).toBe(status);
  expect(pod.events({ id: 'bomb' })).toEqual([]);
  await expectUnharmed();
});
