/**
 * Who the client is: what a proxy in front says counts if its address is trusted, and there is one host for all
 * readers.
 */

import { docker } from '../../e2e/harness/engine/docker.ts';
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { rawConnection } from './raw.ts';

let trusting: Pod;
let wary: Pod;
beforeAll(async () => {
  [trusting, wary] = await Promise.all([
    // Clients of these tests come from the engine's bridge, which is in a private range.
    Pod.start({ workersPerPod: 1 }),
    Pod.start({ workersPerPod: 1, forwarded: { trust: ['192.0.2.0/24', '2001:db8::/32', '127.7.0.0/16'] } }),
  ]);
});
afterAll(() => Promise.all([trusting?.stop(), wary?.stop()]));

/** Headers that the worker got. */
async function seen(pod: Pod, headers: Record<string, string>): Promise<Record<string, string | undefined>> {
  return JSON.parse((await pod.get('/?id=seen', { headers })).body).headers;
}

/** Client and proxy in the access log of a request. */
async function logged(pod: Pod, id: string): Promise<[client: string, proxy: string]> {
  const line = await until(`${id} is logged`, async () =>
    (await pod.accessLog()).find(({ requestId }) => requestId === id),
  );
  return [String(line.client), String(line.proxy)];
}

const ownAddresses = new Map<Pod, string>();
/** The engine's end of its bridge: the log is read once for each pod. */
async function ownAddress(pod: Pod): Promise<string> {
  const known = ownAddresses.get(pod);
  if (known) return known;
  await pod.get('/', { headers: { 'x-request-id': 'own-address' } });
  const [, own] = await logged(pod, 'own-address');
  ownAddresses.set(pod, own);
  return own;
}

/** Raw bytes to the pod's port 9000, and all that comes back. */
async function answerTo(pod: Pod, text: string): Promise<string> {
  const socket = await rawConnection(pod.port(PORTS.http));
  let received = '';
  socket.on('data', (chunk) => {
    received += chunk;
  });
  socket.write(text);
  await until('an answer', () => /\r\n\r\n/.test(received) || socket.destroyed);
  await until('all of it', () => socket.destroyed || /\}(\r\n0\r\n\r\n)?$/.test(received));
  socket.destroy();
  return received;
}

const FORGED = {
  'x-forwarded-for': '203.0.113.7',
  'x-forwarded-proto': 'https',
  'x-forwarded-host': 'evil.example',
  'x-forwarded-port': '443',
  'x-forwarded-prefix': '/evil',
  'x-forwarded-server': 'evil',
  'x-forwarded-ssl': 'on',
  'x-forwarded-scheme': 'https',
  'x-forwarded-user': 'admin',
  'x-forwarded-client-cert': 'Subject=admin',
  'x-forwarded': 'for=203.0.113.7',
  'x-forwarded-for-anything-new': '1',
  'x-original-url': '/admin',
  'x-original-forwarded-for': '203.0.113.7',
  'x-rewrite-url': '/admin',
  'x-real-ip': '203.0.113.7',
  'x-client-ip': '203.0.113.7',
  'x-cluster-client-ip': '203.0.113.7',
  'true-client-ip': '203.0.113.7',
  'cf-connecting-ip': '203.0.113.7',
  'cf-connecting-ipv6': '2001:db8::7',
  'fastly-client-ip': '203.0.113.7',
  'x-host': 'evil.example',
  'x-scheme': 'https',
  'x-url-scheme': 'https',
  'front-end-https': 'on',
  forwarded: 'for=203.0.113.7;host=evil.example;proto=https',
  'x-corelane-request': 'forged',
};

/** By nginx, whatever it is called by others. */
const STARTED = { 'x-request-start': expect.stringMatching(/^t=[0-9]{10}\.[0-9]{3}$/) };
const NAMED = { ...STARTED, 'x-corelane-request': expect.stringMatching(/^[0-9a-f]{32}$/) };

test('of a stranger nothing is believed: what he says of himself is replaced', async () => {
  const own = await ownAddress(wary);
  const headers = await seen(wary, { ...FORGED, 'x-request-id': 'stranger', host: 'shop.example', 'x-other': 'kept' });
  const kept = { host: 'shop.example', 'x-other': 'kept', 'x-request-id': 'stranger' };
  const set = { 'x-forwarded-for': own, 'x-real-ip': own, 'x-forwarded-proto': 'http' };
  expect(headers).toEqual({ ...kept, ...set, ...NAMED, 'x-forwarded-host': 'shop.example' });
  expect(await logged(wary, 'stranger')).toEqual([own, own]);
});

test('of a trusted proxy it is believed, and the log has both', async () => {
  const own = await ownAddress(trusting);
  const headers = await seen(trusting, { ...FORGED, 'x-request-id': 'proxied', host: 'shop.example' });
  const { forwarded: _never, ...believed } = { ...FORGED, ...NAMED };
  expect(headers).toEqual({
    ...believed,
    host: 'shop.example',
    'x-request-id': 'proxied',
    'x-real-ip': '203.0.113.7',
  });
  expect(await logged(trusting, 'proxied')).toEqual(['203.0.113.7', own]);
});

/** `OWN` is the address of the connection. The worker gets the list as it was sent, unless there is a fourth column. */
const lists: [what: string, sent: string, client: string, passed?: string][] = [
  ['nothing', '', 'OWN', 'OWN'],
  ['a client', '203.0.113.7', '203.0.113.7'],
  ['what the client wrote before', '198.51.100.1, 203.0.113.7', '203.0.113.7'],
  ['a CDN that nobody has listed', '203.0.113.9, 172.64.0.1', '172.64.0.1'],
  ['proxies after the client', '9.9.9.9, 203.0.113.7, 10.1.2.3', '203.0.113.7'],
  ['no blanks', '203.0.113.7,10.1.2.3', '203.0.113.7'],
  ['trusted ones only', '10.9.9.9, 10.1.2.3', '10.9.9.9'],
  ['IPv6', '2001:db8::1, fd00::5', '2001:db8::1'],
  ['IPv6 written at length', '2001:0DB8:0::1', '2001:db8::1'],
  ['an IPv4 address in IPv6', '203.0.113.7, ::ffff:10.1.2.3', '203.0.113.7'],
  ['a port', '203.0.113.7:4711', '203.0.113.7'],
  ['brackets and a port', '[2001:db8::1]:4711', '2001:db8::1'],
  ['a zone', 'fe80::1%eth0', 'OWN'],
  ['a zone before a proxy', 'fe80::1%eth0, 10.1.2.3', '10.1.2.3'],
  ['garbage', "unknown, <script>, '; DROP", 'OWN'],
  ['garbage before a proxy', '"},{"a":"\\, 10.1.2.3', '10.1.2.3'],
  ['commas', ',,, ,', 'OWN', 'OWN'],
  ['the mark of a shared render', '0.0.0.0', '0.0.0.0', 'OWN'],
  ['the mark between tabs, which HAProxy strips', '\t0.0.0.0\t', 'OWN', 'OWN'],
  ['the mark before the client', '0.0.0.0, 203.0.113.7', '203.0.113.7'],
  ['the mark twice', '0.0.0.0, 0.0.0.0', '0.0.0.0'],
  ['100 entries', `${'198.51.100.1, '.repeat(99)}203.0.113.7`, '203.0.113.7'],
  ['100 proxies', `203.0.113.7${', 10.0.0.1'.repeat(99)}`, '203.0.113.7'],
  ['7 kB of garbage', `${'203.0.113.7 '.repeat(580)}x, 203.0.113.7`, '203.0.113.7'],
];
test.each(lists)('X-Forwarded-For of a trusted proxy, %s', async (what, sent, client, passed = sent) => {
  const own = await ownAddress(trusting);
  const id = `list-${what.replaceAll(/[ ,]+/g, '-')}`;
  const headers = await seen(trusting, { 'x-request-id': id, ...(sent && { 'x-forwarded-for': sent }) });
  const expected = [client, passed].map((text) => text.replace('OWN', own));
  expect([headers['x-real-ip'], headers['x-forwarded-for']]).toEqual(expected);
  expect(await logged(trusting, id)).toEqual([expected[0], own]);
});

test('several X-Forwarded-For are one, and none that is written with underscores counts', async () => {
  const lines = [
    'X-Forwarded-For: 203.0.113.7',
    'X-Forwarded-For: 10.1.2.3',
    'X_Forwarded_For: 8.8.8.8',
    'X_Real_IP: 8.8.8.8',
  ];
  const text = await answerTo(
    trusting,
    `GET / HTTP/1.1\r\nHost: a\r\n${lines.join('\r\n')}\r\nConnection: close, X-Real-IP, X-Forwarded-For\r\n\r\n`,
  );
  const { headers } = JSON.parse(/\{.*\}/s.exec(text)?.[0] ?? '');
  expect(headers['x-forwarded-for']).toBe('203.0.113.7, 10.1.2.3');
  expect(headers['x-real-ip']).toBe('203.0.113.7');
  expect(text).not.toContain('8.8.8.8');
});

test.each<[proto: string, values: string[]]>([
  ['https', ['https,http']],
  ['https', ['https, https']],
  ['https', ['HTTPS']],
  ['https', ['wss']],
  ['https', ['\thttps\t, http']],
  ['https', ['https', 'http']],
  ['http', ['ws']],
  ['http', ['http,https']],
  ['http', ['http', 'https']],
  ['http', [',https']],
  ['http', ['ftp']],
  ['http', ['https;x']],
  ['http', ['httpsx']],
])('X-Forwarded-Proto of a worker is %s where a trusted proxy says %j', async (proto, values) => {
  const lines = values.map((value) => `X-Forwarded-Proto: ${value}\r\n`);
  const text = await answerTo(trusting, `GET / HTTP/1.1\r\nHost: a\r\n${lines.join('')}Connection: close\r\n\r\n`);
  expect(JSON.parse(/\{.*\}/s.exec(text)?.[0] ?? '').headers['x-forwarded-proto']).toBe(proto);
});

test.each(['evil.example/path', 'a b', 'a"b', '<a>', 'user@evil.example', 'a, , b', ''])(
  'X-Forwarded-Host %j, which is none, is replaced',
  async (host) => {
    const headers = await seen(trusting, { host: 'shop.example', 'x-forwarded-host': host });
    expect(headers['x-forwarded-host']).toBe('shop.example');
  },
);

test.each(['shop.example:8443', '[2001:db8::1]:443', 'shop.example, inner.example'])(
  'X-Forwarded-Host %j of a trusted proxy passes',
  async (host) => {
    const headers = await seen(trusting, { host: 'inner', 'x-forwarded-host': host });
    expect(headers['x-forwarded-host']).toBe(host);
  },
);

test('whether a proxy is trusted is decided by the address of the connection, range by range', async () => {
  const from = async (localAddress: string) => {
    const options = {
      host: '127.0.0.1',
      port: PORTS.http,
      localAddress,
      headers: { 'x-forwarded-for': '203.0.113.7' },
    };
    const script = `require('node:http').get(${JSON.stringify(options)}, (response) => response.pipe(process.stdout))`;
    const text = await docker('exec', '--env', 'NODE_OPTIONS=', wary.workers[0] ?? '', 'node', '-e', script);
    return JSON.parse(text).headers['x-forwarded-for'];
  };
  expect(await from('127.7.255.255')).toBe('203.0.113.7');
  expect(await from('127.8.0.0')).toBe('127.8.0.0');
});

/** Head lines after the request line. */
const refused: [what: string, text: string][] = [
  ['another host in the URL', 'GET http://a/ HTTP/1.1\r\nHost: b'],
  ['another port in the URL', 'GET http://a:1/ HTTP/1.1\r\nHost: a:2'],
  ['a port in the URL only', 'GET http://a:81/ HTTP/1.1\r\nHost: a'],
  ['another host in the URL after two blanks', 'GET  http://a/ HTTP/1.1\r\nHost: b'],
  ['another host in the URL of another scheme', 'GET https://a/ HTTP/1.1\r\nHost: b'],
  ['another host in a URL without path', 'GET http://a?x HTTP/1.1\r\nHost: b'],
  ['a user in the URL', 'GET http://b@a/ HTTP/1.1\r\nHost: a'],
  ['two hosts', 'GET / HTTP/1.1\r\nHost: a\r\nHost: b'],
  ['the same host twice', 'GET / HTTP/1.1\r\nHost: a\r\nHost: a'],
  ['no host', 'GET / HTTP/1.1\r\nX-A: b'],
  ['an empty one', 'GET / HTTP/1.1\r\nHost:'],
  ['a blank before the colon', 'GET / HTTP/1.1\r\nHost : a'],
  ['a user', 'GET / HTTP/1.1\r\nHost: user@a'],
  ['a list', 'GET / HTTP/1.1\r\nHost: a, b'],
  ['a list without blanks', 'GET / HTTP/1.1\r\nHost: a,b'],
  ['a path', 'GET / HTTP/1.1\r\nHost: a/b'],
  ['a query', 'GET / HTTP/1.1\r\nHost: a?b'],
  ['a fragment', 'GET / HTTP/1.1\r\nHost: a#b'],
  ['a backslash', 'GET / HTTP/1.1\r\nHost: a\\b'],
  ['two ports', 'GET / HTTP/1.1\r\nHost: a:1:2'],
  ['a port that is none', 'GET / HTTP/1.1\r\nHost: a:x'],
  ['markup', 'GET / HTTP/1.1\r\nHost: a"><script>alert(1)</script>'],
  ['a bar, which is our own separator', 'GET / HTTP/1.1\r\nHost: a|a'],
  ['a bare IPv6 address', 'GET / HTTP/1.1\r\nHost: 2001:db8::1'],
  ['bytes beyond ASCII', 'GET / HTTP/1.1\r\nHost: sh\u00f6p.example'],
  ['300 characters', `GET / HTTP/1.1\r\nHost: ${'a'.repeat(300)}`],
  ['an escape', 'GET / HTTP/1.1\r\nHost: a%00b'],
];
test.each(refused)('refused: %s', async (_what, head) => {
  const before = trusting.events({ event: 'begin' }).length;
  const text = await answerTo(trusting, `${head}\r\nConnection: close\r\n\r\n`);
  expect(text).toMatch(/^HTTP\/1\.1 400 /);
  expect(trusting.events({ event: 'begin' })).toHaveLength(before);
});

test('a refusal says who made it', async () => {
  const { status, headers, body } = await trusting.get('/', { headers: { host: 'a,b' } });
  expect([status, headers['x-corelane-error'], JSON.parse(body)]).toEqual([
    400,
    'bad-request',
    { error: 'bad-request' },
  ]);
});

const accepted: [what: string, text: string, host: string][] = [
  ['a name', 'GET / HTTP/1.1\r\nHost: Shop.Example', 'Shop.Example'],
  [
    'a name with underscore, dot at the end and port',
    'GET / HTTP/1.1\r\nHost: my_shop.example.:8080',
    'my_shop.example.:8080',
  ],
  ['a port without a number', 'GET / HTTP/1.1\r\nHost: localhost:', 'localhost:'],
  ['a probe of kubelet', 'GET / HTTP/1.1\r\nHost: 10.244.1.7:9000', '10.244.1.7:9000'],
  ['a probe of kubelet by IPv6', 'GET / HTTP/1.1\r\nHost: [fd00:10:244::7]:9000', '[fd00:10:244::7]:9000'],
  ['an HTTP/1.0 client without one', 'GET / HTTP/1.0', 'localhost'],
  ['an HTTP/1.0 client with a URL', 'GET http://a:81/ HTTP/1.0', 'a:81'],
  ['an HTTP/1.0 client with one', 'GET / HTTP/1.0\r\nHost: a', 'a'],
  ['a URL with the same host', 'GET http://a/ HTTP/1.1\r\nHost: a', 'a'],
  [
    'a URL with the same host in other letters',
    'GET HTTP://SHOP.example:8080/?q HTTP/1.1\r\nHost: shop.EXAMPLE:8080',
    'shop.EXAMPLE:8080',
  ],
];
test.each(accepted)('passes, as one value: %s', async (_what, head, host) => {
  const text = await answerTo(trusting, `${head}\r\nConnection: close\r\n\r\n`);
  expect(text).toMatch(/^HTTP\/1\.[01] 200 /);
  const { headers } = JSON.parse(/\{.*\}/s.exec(text)?.[0] ?? '');
  expect([headers.host, headers['x-forwarded-host']]).toEqual([host, host]);
});
