/** What one client may have at a time, and WebSockets all together: others find room. */
import type net from 'node:net';
import { type Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { from, startLimited } from './per-client.ts';
import { rawConnection } from './raw.ts';

let pod: Pod;
beforeAll(async () => {
  pod = await startLimited();
});
afterAll(() => pod?.stop());

/** Three requests of these addresses, of which the third waits. */
async function threeOf(name: string, addresses: string[]) {
  const ids = addresses.map((_unused, n) => `${name}-${n}`);
  const calls = addresses.map((address, n) => from(pod, address, `/?hold=1&id=${ids[n]}`));
  await until('two are rendered', () => ids.filter((id) => pod.events({ event: 'begin', id }).length > 0).length === 2);
  await pod.queued(1);
  const finish = async () => {
    pod.release(...ids);
    return (await Promise.all(calls)).map(({ status }) => status);
  };
  return finish;
}

test('one client has so many requests and no more, whatever it writes of itself; another one has its own', async () => {
  const finish = await threeOf('one', ['203.0.113.7', '198.51.100.1, 203.0.113.7', '203.0.113.7:4711']);
  const { status, headers, body } = await from(pod, '198.51.100.9, 203.0.113.7', '/?id=refused');
  expect([status, headers['x-corelane-error'], headers['retry-after'], body]).toEqual([
    429,
    'client-limit',
    '1',
    '{"error":"client-limit"}',
  ]);
  const other = from(pod, '203.0.113.8', '/?id=other');
  await pod.queued(2);
  expect(await finish()).toEqual([200, 200, 200]);
  expect((await other).status).toBe(200);
  expect((await from(pod, '203.0.113.7', '/')).status).toBe(200);
  expect(pod.events({ id: 'refused' })).toEqual([]);
});

test('the addresses of an IPv6 /64 are one client', async () => {
  const finish = await threeOf('six', ['2001:db8:0:1::1', '2001:db8:0:1:ffff::2', '[2001:db8:0:1::3]:80']);
  expect((await from(pod, '2001:db8:0:1::4', '/')).status).toBe(429);
  const other = from(pod, '2001:db8:0:2::1', '/');
  await pod.queued(2);
  expect(await finish()).toEqual([200, 200, 200]);
  expect((await other).status).toBe(200);
});

test('IPv4 addresses that a proxy writes as IPv6 are as many clients', async () => {
  const finish = await threeOf('mapped', ['::ffff:203.0.113.11', '203.0.113.11', '::ffff:203.0.113.11']);
  expect((await from(pod, '::ffff:203.0.113.11', '/')).status).toBe(429);
  const other = from(pod, '::ffff:203.0.113.12', '/');
  await pod.queued(2);
  expect(await finish()).toEqual([200, 200, 200]);
  expect((await other).status).toBe(200);
});

test('a body that does not arrive counts, too', async () => {
  const head =
    'POST / HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 203.0.113.9\r\nExpect: 100-continue\r\nContent-Length: 9\r\n\r\n';
  const stalled = await Promise.all([1, 2, 3].map(() => rawConnection(pod.port(PORTS.http))));
  for (const socket of stalled) {
    socket.write(head);
    await new Promise((resolve) => socket.once('data', resolve));
  }
  expect((await from(pod, '203.0.113.9', '/')).status).toBe(429);
  expect((await from(pod, '203.0.113.10', '/')).status).toBe(200);
  for (const socket of stalled) socket.destroy();
  await until('it is served again', async () => (await from(pod, '203.0.113.9', '/')).status === 200);
});

test('WebSockets leave half of the places to pages', async () => {
  const open = async (id: string): Promise<{ socket: net.Socket; answer: string }> => {
    const socket = await rawConnection(pod.port(PORTS.http));
    let answer = '';
    socket.on('data', (chunk) => {
      answer += chunk;
    });
    const lines = [
      'Host: x',
      'Connection: Upgrade',
      'Upgrade: WebSocket',
      'Sec-WebSocket-Version: 13',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
    ];
    socket.write(`GET /${id} HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`);
    await until('an answer', () => answer.includes('\r\n\r\n'));
    return { socket, answer };
  };
  const first = await open('first');
  expect(first.answer).toMatch(/^HTTP\/1\.1 101 /);
  const second = await open('second');
  expect(second.answer).toMatch(/^HTTP\/1\.1 503 [\s\S]*Retry-After: 1\r\n/);
  expect(second.answer).toContain('websockets-full');
  expect((await pod.get('/?id=page')).status).toBe(200);
  first.socket.destroy();
  second.socket.destroy();
  await until('another one passes', async () => {
    const { socket, answer } = await open('third');
    socket.destroy();
    return answer.startsWith('HTTP/1.1 101');
  });
});
