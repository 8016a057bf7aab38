/** A load balancer that passes bytes on says in a PROXY header who its client is; who has none is closed. */
import { once } from 'node:events';
import { docker, logs } from '../../e2e/harness/engine/docker.ts';
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { converse } from './proxy-protocol.ts';

/** What a balancer says that believes only what the tests call a CDN: 203.0.113.0/24. */
const CDN = '203.0.113.0/24';
let pod: Pod;
/** That does not believe the engine's bridge, from which these tests come. */
let wary: Pod;
beforeAll(async () => {
  [pod, wary] = await Promise.all([
    Pod.start({
      // Longer than any test: what is closed is closed at once.
      ...{ workersPerPod: 1, limits: { perClient: { requests: 1 } }, timeouts: { clientHeader: '1m' } },
      forwarded: { proxyProtocol: true, trust: ['172.16.0.0/12', '192.168.0.0/16', '10.0.0.0/8', CDN] },
    }),
    Pod.start({ workersPerPod: 1, forwarded: { proxyProtocol: true, trust: ['192.0.2.0/24'] } }),
  ]);
});
afterAll(() => Promise.all([pod, wary].map((one) => one?.stop())));

const v1 = (from: string, family = 'TCP4') => `PROXY ${family} ${from} 10.0.0.1 4711 80\r\n`;

/** Version 2: PROXY or LOCAL, a family with its addresses, and further TLVs. */
function v2(command: number, family: number, addresses: number[], tlvs = Buffer.alloc(0)): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(addresses.length + tlvs.length);
  const signature = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');
  return Buffer.concat([signature, Buffer.from([0x20 | command, family]), length, Buffer.from(addresses), tlvs]);
}
const IPV4 = [198, 51, 100, 7, 10, 0, 0, 1, 0x12, 0x67, 0, 80];
/** So much nginx reads of a header. */
const MOST = 1024;
const withTlv = (bytes: number) => v2(1, 0x11, IPV4, Buffer.alloc(bytes - 28));
const TLV = Buffer.concat([Buffer.from([0xea, 0, 0xf0]), Buffer.alloc(0xf0, 'vpce')]);

const request = (id: string, ...lines: string[]) =>
  [`GET /?id=${id} HTTP/1.1`, 'Host: a', `X-Request-ID: ${id}`, ...lines, '', ''].join('\r\n');

/** Headers that the worker got of a request behind this header. */
async function seen(there: Pod, header: string | Buffer, id: string, ...lines: string[]) {
  const { socket, text } = await converse(
    there,
    Buffer.concat([Buffer.from(header as string), Buffer.from(request(id, ...lines, 'Connection: close'))]),
  );
  await until('an answer', () => socket.destroyed);
  return JSON.parse(/\{.*\}/s.exec(text())?.[0] ?? '{}').headers ?? {};
}

/** Client and proxy in the access log. */
async function logged(there: Pod, id: string): Promise<unknown[]> {
  const line = await until(`${id} is logged`, async () =>
    (await there.accessLog()).find(({ requestId }) => requestId === id),
  );
  return [line.client, line.proxy];
}

test.each<[string, string | Buffer, string]>([
  ['version 1', v1('198.51.100.7'), '198.51.100.7'],
  ['version 1 of IPv6', 'PROXY TCP6 2001:db8::7 2001:db8::1 4711 80\r\n', '2001:db8::7'],
  ['version 1 of IPv6 in another spelling', 'PROXY TCP6 2001:DB8:0:0:0::7 2001:db8::1 4711 80\r\n', '2001:db8::7'],
  ['version 2', v2(1, 0x11, IPV4), '198.51.100.7'],
  ['version 2 with what a cloud adds', v2(1, 0x11, IPV4, TLV), '198.51.100.7'],
  ['version 2 as long as it may be', withTlv(MOST), '198.51.100.7'],
])('%s: worker and log have the client', async (name, header, client) => {
  const id = name.replaceAll(' ', '-');
  const forged = [
    'X-Forwarded-For: 192.0.2.9',
    'X-Real-IP: 192.0.2.9',
    'X-Forwarded-Proto: https',
    'X-Forwarded-User: x',
  ];
  const headers = await seen(pod, header, id, ...forged);
  expect(headers).toMatchObject({ 'x-forwarded-for': client, 'x-real-ip': client, 'x-forwarded-proto': 'http' });
  expect(headers['x-forwarded-user']).toBeUndefined();
  expect(await logged(pod, id)).toEqual([client, client]);
});

test('behind a balancer a proxy that is trusted is believed by its own address', async () => {
  const headers = await seen(
    pod,
    v1('203.0.113.80'),
    'cdn',
    'X-Forwarded-For: 198.51.100.9',
    'X-Forwarded-Proto: https',
  );
  expect(headers).toMatchObject({
    'x-forwarded-for': '198.51.100.9',
    'x-real-ip': '198.51.100.9',
    'x-forwarded-proto': 'https',
  });
  expect(await logged(pod, 'cdn')).toEqual(['198.51.100.9', '203.0.113.80']);
});

test.each<[string, string | Buffer]>([
  ['UNKNOWN', 'PROXY UNKNOWN\r\n'],
  ['LOCAL', v2(0, 0, [])],
  ['no address of ours', v2(1, 0x31, Array(216).fill(0x61))],
])('a balancer that asks for itself is the client: %s', async (name, header) => {
  const headers = await seen(pod, header, `own-${name.length}`);
  expect(headers['x-real-ip']).toMatch(/^(172|192|10)\./);
});

test('whom nobody believes is the client himself, whatever his header says', async () => {
  const headers = await seen(wary, v1('192.0.2.9'), 'forged', 'X-Forwarded-For: 192.0.2.10');
  expect(headers['x-real-ip']).toMatch(/^(172|192\.168|10)\./);
  expect(headers['x-forwarded-for']).toBe(headers['x-real-ip']);
});

test('all requests of a connection are of its client, and limits count by him', async () => {
  const first = await converse(pod, v1('198.51.100.20') + request('held&hold=1'));
  await pod.begun('held');
  const same = await converse(pod, v1('198.51.100.20') + request('same'));
  await until('an answer', () => same.text().includes('client-limit'));
  expect(same.text()).toMatch(/^HTTP\/1.1 429 /);
  pod.release('held');
  await until('the first answer', () => first.text().includes('"held"'));
  first.socket.write(request('next', 'Connection: close'));
  await until('the second answer', () => first.socket.destroyed);
  expect(first.text()).toMatch(/"id":"next".*"x-real-ip":"198\.51\.100\.20"/s);
  const other = await seen(pod, v1('198.51.100.21'), 'other');
  expect(other['x-real-ip']).toBe('198.51.100.21');
  same.socket.destroy();
});

test('a header in pieces is one', async () => {
  const header = v1('198.51.100.30');
  const pieces = [header.slice(0, 3), header.slice(3, 20), header.slice(20), request('pieces', 'Connection: close')];
  const { socket, text } = await converse(pod, ...pieces);
  await until('an answer', () => socket.destroyed);
  expect(text()).toMatch(/"x-real-ip":"198\.51\.100\.30"/);
});

test.each<[string, string | Buffer]>([
  ['none', request('refused-1')],
  ['none, and TLS', '\x16\x03\x01\x02\x00\x01'],
  ['a port beyond', `PROXY TCP4 1.2.3.4 5.6.7.8 70000 80\r\n${request('refused-2')}`],
  ['letters', `PROXY TCP4 localhost 5.6.7.8 1 80\r\n${request('refused-3')}`],
  ['another family', `PROXY UDP4 1.2.3.4 5.6.7.8 1 80\r\n${request('refused-4')}`],
  ['a bare LF', `PROXY TCP4 1.2.3.4 5.6.7.8 1 80\n${request('refused-5')}`],
  ['too long', `PROXY TCP4 ${'1'.repeat(200)} 5.6.7.8 1 80\r\n${request('refused-6')}`],
  ['a version 3', Buffer.concat([v2(1, 0x11, IPV4).fill(0x31, 12, 13), Buffer.from(request('refused-8'))])],
  ['beyond what nginx reads', withTlv(MOST + 1)],
  ['to be longer than anybody says', Buffer.concat([withTlv(MOST).fill(0xff, 14, 16), Buffer.alloc(60_000)])],
  ['addresses that are too short', Buffer.concat([v2(1, 0x11, [1, 2, 3]), Buffer.from(request('refused-9'))])],
])('a connection whose header is %s is closed without an answer', async (_what, bytes) => {
  const { socket, text } = await converse(pod, bytes);
  let isClosed = false;
  socket.once('close', () => {
    isClosed = true;
  });
  await until('it is closed', () => isClosed, 10_000);
  expect(text()).toBe('');
});

test('nothing of these has come to a worker', () => {
  expect(pod.events().filter(({ id }) => id?.startsWith('refused'))).toEqual([]);
});

test.each([
  ['in a header', `PROXY TCP4 \x1b[2J\x1b]0;x\x07 5.6.7.8 1 80\r\n`],
  ['in place of one', '\x1b[2J\x1b]0;x\x07\r\n\r\n'],
])('what is no header does not come into the log: %s', async (_what, bytes) => {
  const { socket, text } = await converse(pod, bytes);
  await once(socket, 'close');
  expect(text()).toBe('');
  // What nginx has said of it is in the log when a request after it is.
  const id = `after-codes-${bytes.length}`;
  const { socket: next } = await converse(pod, v1('198.51.100.60') + request(id));
  await until('the next one is logged', async () => (await logs(pod.nginx)).includes(`/?id=${id}"`));
  next.destroy();
  expect(await logs(pod.nginx)).not.toMatch(/broken header|\[2J/);
});

test('a second header is no request', async () => {
  const { socket, text } = await converse(pod, v1('198.51.100.40') + v1('203.0.113.1') + request('second'));
  await once(socket, 'close');
  expect(text()).toMatch(/^HTTP\/1.1 400 /);
  expect(pod.events({ id: 'second' })).toEqual([]);
});

test('what kubelet asks of nginx it can answer', async () => {
  expect(await docker('exec', pod.nginx, 'test', '-e', '/tmp/nginx.pid')).toBe('');
});
