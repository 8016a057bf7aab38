/**
 * A canary and those who mean no good: cookies and queries that cost time, and a neighbour that holds connections. A
 * load test: it asserts times, and opens thousands of connections.
 */
import net from 'node:net';
import { type Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { figure } from '../../operator/test/support/figure.ts';
import { connectionHead } from './apps/peer-tokens.mjs';
import { CanaryFleet, COOKIE, canaryAt } from './canary.ts';
import { rawConnection } from './raw.ts';

let all: CanaryFleet;
let stable: Pod;
beforeAll(async () => {
  all = await CanaryFleet.start(1, 1, { workersPerPod: 1, queue: { maxLength: 2 } });
  stable = all.stable[0] as Pod;
  await all.untilSidesKnown();
  await all.set(
    canaryAt(5_000, {
      match: [
        { query: 'canary', value: '1' },
        { cookie: 'preview', value: '1' },
      ],
    }),
  );
});
afterAll(() => all?.stop());

async function raw(head: string[]): Promise<string> {
  const socket = await rawConnection(stable.port(PORTS.http));
  socket.write(`${[...head, 'Host: a', 'Connection: close'].join('\r\n')}\r\n\r\n`, 'latin1');
  let received = '';
  for await (const chunk of socket) received += chunk.toString('latin1');
  return received;
}
const cookie = (text: string) => raw(['GET /?id=hostile HTTP/1.1', `Cookie: ${text}`]);
/** Nothing of it takes longer than a page does: patterns that look back for ever would. */
const ENOUGH_MS = 2_000;

test.each<[string, string]>([
  ['the same cookie 600 times', `${COOKIE}=1; `.repeat(600)],
  ['13 kB of ends', ';'.repeat(13_000)],
  ['13 kB of ends before the cookie', `${';'.repeat(13_000)}${COOKIE}=1`],
  ['13 kB of ends and blanks before the cookie', `${'; '.repeat(6_500)}${COOKIE}=1`],
  ['13 kB of blanks before the cookie', `a=b;${' '.repeat(13_000)}${COOKIE}=1`],
  ['13 kB of blanks behind its name', `${COOKIE}${' '.repeat(13_000)}=1`],
  ['13 kB of digits', `${COOKIE}=${'1'.repeat(13_000)}`],
  ['2,000 cookies', Array.from({ length: 1_500 }, (_unused, n) => `a${n}=b`).join('; ')],
  ['bytes beyond ASCII', `${COOKIE}=\xff\xfe; preview=\xff`],
  ['a header in it', `${COOKIE}=1%0d%0aX-Evil: 1`],
  ['quotes', `${COOKIE}="1; preview=1"; preview="1"`],
  ['nothing but the name', COOKIE],
])('a cookie is answered at once, and costs nobody else: %s', async (what, text) => {
  const began = performance.now();
  expect(await cookie(text)).toMatch(/^HTTP\/1\.1 (200|400) /);
  const tookMs = performance.now() - began;
  figure(`response time with a hostile cookie: ${what}`, tookMs, 'ms', `< ${ENOUGH_MS} ms`);
  expect(tookMs).toBeLessThan(ENOUGH_MS);
  expect((await stable.get('/?id=after')).status).toBe(200);
});

test('250 lines of cookies, and a query of 6 kB', async () => {
  const began = performance.now();
  expect(await raw(['GET /?id=lines HTTP/1.1', ...Array(250).fill(`Cookie: ${COOKIE}=1`)])).toMatch(/^HTTP\/1\.1 200 /);
  expect(await raw([`GET /?id=query&${'canary=2&'.repeat(700)} HTTP/1.1`])).toMatch(/^HTTP\/1\.1 200 /);
  const tookMs = performance.now() - began;
  figure('response time of 250 lines of cookies and of a query of 6 kB', tookMs, 'ms', `< ${2 * ENOUGH_MS} ms`);
  expect(tookMs).toBeLessThan(2 * ENOUGH_MS);
});

test('a neighbour at one address does not get all connections of the entrance, however long the queue may be', async () => {
  const fleet = await CanaryFleet.start(1, 0, { workersPerPod: 1, queue: { maxLength: 10_000, timeout: '30s' } });
  const [pod] = fleet.pods as [Pod];
  const sockets: net.Socket[] = [];
  try {
    await fleet.set(canaryAt(1));
    const most = await pod.metric('haproxy_frontend_limit_sessions{proxy="peers"}');
    for (let n = 0; n < most + 100; n += 1) {
      const socket = net.connect(pod.port(PORTS.peers), '127.0.0.1');
      sockets.push(socket.on('error', () => {}).on('connect', () => socket.write(connectionHead())));
    }
    const open: number[] = [];
    await until('those that say nothing are given up', async () => {
      open.push(await pod.metric('haproxy_frontend_current_sessions{proxy="peers"}'));
      return sockets.every(({ readyState }) => readyState === 'closed');
    });
    figure('connections that one neighbour has at the peers port', Math.max(...open), `of ${most}`, '> 100, < 60 %');
    expect(Math.max(...open)).toBeGreaterThan(100);
    expect(Math.max(...open)).toBeLessThan(0.6 * most);
  } finally {
    for (const socket of sockets) socket.destroy();
    await fleet.stop();
  }
});
