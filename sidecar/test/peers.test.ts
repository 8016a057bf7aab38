/**
 * Port 9001 as a neighbour in the cluster sees it: what gets in without the key, what it costs, and what an answer may
 * do.
 */
import { Fleet } from '../../e2e/harness/engine/fleet.ts';
import { FLEET_KEY, Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PROTOCOL_VERSION } from '../../operator/src/render/pod-env.ts';
import { connectionHead, headWithAddresses, tokens, tokensOf } from './apps/peer-tokens.mjs';
import { AS_NGINX, ask, exchange, handOver, headerOf, hello, identityOf, ME, message, reserved } from './peer.ts';
import { begunIn, OTHER_KEY, pages, patient, shares } from './peers.ts';

/** What a stranger would have to guess. */
const WRONG = 'e'.repeat(32);

describe('one pod', () => {
  let pod: Pod;
  beforeAll(async () => {
    pod = await Pod.start({ workersPerPod: 2 }, { revision: 'r1' });
    for (const worker of [0, 1]) await until('the worker is up', () => pod.isUp(worker));
  });
  afterAll(() => pod?.stop());

  test('without the key nobody learns a name', async () => {
    expect(await exchange(pod, message({}))).toBe('');
    expect(await exchange(pod, message({ 'X-Corelane-Revision': 'r1' }))).toBe('');
    expect(await exchange(pod, Buffer.concat([connectionHead(), Buffer.from(message({}))]))).toBe('');
  });

  test('without the key nobody reaches a supervisor, which would take its worker out', async () => {
    const headers = { 'X-Corelane-Ask': 'why', 'X-Corelane-Revision': 'r1', 'X-Corelane-From': ME };
    const answers = [];
    for (const head of ['', connectionHead()])
      for (const path of ['/heap', '/profile', '/why/id', '/why/../heap'])
        answers.push(await exchange(pod, `${head.toString('latin1')}${message(headers, `GET ${path} HTTP/1.1`)}`));
    const up = await Promise.all([0, 1].map((worker) => pod.isUp(worker)));
    expect({ answers, up }).toEqual({ answers: Array(8).fill(''), up: [true, true] });
  });

  const withHead = (text: string | Buffer) => Buffer.concat([connectionHead(), Buffer.from(text)]);
  test.each<[string, string | Buffer]>([
    ['nothing but line breaks', '\r\n'.repeat(100)],
    ['garbage', Buffer.from(Array.from({ length: 4096 }, (_unused, index) => (index * 197) % 256))],
    ['clear-text HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0'],
    ['clear-text HTTP/2 behind a head', withHead('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0')],
    ['a text head (PROXY 1)', `PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n${message({})}`],
    ['garbage behind a head', withHead(Buffer.alloc(4096, 0xff))],
    ['headers beyond every buffer', withHead(`GET / HTTP/1.1\r\nA: ${'x'.repeat(100_000)}\r\n\r\n`)],
    ['a thousand headers', withHead(`GET / HTTP/1.1\r\n${'A: b\r\n'.repeat(1000)}\r\n`)],
    ['two lengths', withHead('POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx')],
    ['an unknown coding', withHead('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n')],
    ['TRACE', withHead(message({}, 'TRACE / HTTP/1.1'))],
    ['CONNECT', withHead(message({}, 'CONNECT a:80 HTTP/1.1'))],
    ['nothing', ''],
    ['half a head', connectionHead().subarray(0, 8)],
    ['half a request', withHead('GET / HTTP/1.1\r\nHost: ')],
  ])('%s is answered with the end of the connection', async (_name, bytes) => {
    expect(await exchange(pod, bytes)).toBe('');
  });

  test('only the key and the very address open', async () => {
    const address = await pod.address();
    expect(await hello(pod, FLEET_KEY, address)).toMatch(/^HTTP\/1\.1 200 .*\r\n\r\nwelcome$/s);
    expect(await hello(pod, OTHER_KEY, address)).toBe('');
    expect(await hello(pod, '', address)).toBe('');
    // What was meant for another address: who has got it there has got nothing.
    expect(await hello(pod, FLEET_KEY, '192.0.2.1')).toBe('');
    for (const from of ['', 'x', `${ME}a`, ME.toUpperCase(), `${'a'.repeat(31)}\t`])
      expect(await ask(pod, 'hello', { 'X-Corelane-From': from, 'X-Corelane-Token': WRONG })).toBe('');
  });

  test('a pod that speaks another version of the protocol is none', async () => {
    const address = await pod.address();
    const withVersion = (version: string) =>
      ask(pod, 'hello', { 'X-Corelane-Token': tokensOf(version, FLEET_KEY, 'hello', ME, address)[0] });
    expect(await withVersion(String(PROTOCOL_VERSION + 1))).toBe('');
    expect(await withVersion(String(PROTOCOL_VERSION))).toMatch(/^HTTP\/1.1 200 /);
  });

  test('nobody can have a pod answer for another address', async () => {
    const [token] = tokens(FLEET_KEY, 'hello', ME, '192.0.2.1');
    const text = message({ 'X-Corelane-Ask': 'hello', 'X-Corelane-From': ME, 'X-Corelane-Token': token });
    const head = headWithAddresses('192.0.2.2', '192.0.2.1');
    expect(await exchange(pod, Buffer.concat([head, Buffer.from(text)]))).toBe('');
  });

  test('a token is for one direction, one process and one purpose', async () => {
    const identity = await identityOf(pod);
    const address = await pod.address();
    const slot = (token = '') => ask(pod, 'slot', { 'X-Corelane-Token': token, 'X-Corelane-Revision': 'r1' });
    expect(await slot(tokens(FLEET_KEY, 'question', ME, identity)[0])).toMatch(/\r\n\r\nyes$/);
    const wrong = [
      tokens(OTHER_KEY, 'question', ME, identity)[0],
      tokens(FLEET_KEY, 'question', ME, WRONG)[0], // of a process that was there before
      tokens(FLEET_KEY, 'question', WRONG, identity)[0], // of another asker
      tokens(FLEET_KEY, 'question', identity, ME)[0],
      tokens(FLEET_KEY, 'answer', identity, ME)[0],
      tokens(FLEET_KEY, 'answer', ME, identity)[0],
      tokens(FLEET_KEY, 'hello', ME, address)[0],
      tokens(FLEET_KEY, 'welcome', identity, ME, address)[0],
      tokens(FLEET_KEY, 'question', ME, identity)[1],
    ];
    for (const token of wrong) expect(await slot(token)).toBe('');
    for (const what of ['look', 'heartbeat', 'offer', 'why', 'anything'])
      expect(await ask(pod, what, { 'X-Corelane-Token': WRONG, 'X-Corelane-Id': 'id' })).toBe('');
  });

  test('a request comes in with the ticket that a process was given for it, once', async () => {
    const identity = await identityOf(pod);
    const [ticket, proof] = await reserved(pod, identity);
    for (const none of ['', WRONG, proof, `${ticket}0`, 'x'.repeat(300)]) expect(await handOver(pod, none)).toBe('');
    expect(pod.events({ event: 'begin', id: 'mine' })).toEqual([]);
    const answer = await handOver(pod, ticket);
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    expect(headerOf(answer, 'X-Corelane-Proof')).toBe(proof);
    const { headers } = JSON.parse(/\{.*\}/s.exec(answer)?.[0] ?? '');
    expect(headers['x-forwarded-for']).toBe(AS_NGINX['X-Forwarded-For']);
    expect(await handOver(pod, ticket)).toBe('');
    expect(pod.events({ event: 'begin', id: 'mine' })).toHaveLength(1);
  });

  test.each<[string, string]>([
    ['chunks', message({ ...AS_NGINX, 'Transfer-Encoding': 'chunked' }, 'POST /?id=bad HTTP/1.1')],
    ['a body beyond maxSize', message({ ...AS_NGINX, 'Content-Length': '10485761' }, 'POST /?id=bad HTTP/1.1')],
    ['CONNECT', message(AS_NGINX, 'CONNECT a:80 HTTP/1.1')],
    ['an upgrade', message({ ...AS_NGINX, Connection: 'upgrade', Upgrade: 'websocket' }, 'GET /?id=bad HTTP/1.1')],
    ['no id', message({ ...AS_NGINX, 'X-Request-ID': '' }, 'GET /?id=bad HTTP/1.1')],
    ['an id outside the pattern', message({ ...AS_NGINX, 'X-Request-ID': '../a b' }, 'GET /?id=bad HTTP/1.1')],
    ['two ids', message({ ...AS_NGINX, 'x-request-id': 'two' }, 'GET /?id=bad HTTP/1.1')],
    [
      'no address',
      message({ ...AS_NGINX, 'X-Forwarded-For': '' }, 'GET /?id=bad HTTP/1.1').replace(/X-Forw.*-For: \r\n/, ''),
    ],
    ['two lists of addresses', message({ ...AS_NGINX, 'x-forwarded-for': 'b' }, 'GET /?id=bad HTTP/1.1')],
    ['another protocol', message({ ...AS_NGINX, 'X-Forwarded-Proto': 'gopher' }, 'GET /?id=bad HTTP/1.1')],
  ])('with a ticket, too, port 9000 has its rules: %s', async (_name, text) => {
    const [ticket] = await reserved(pod, await identityOf(pod));
    expect(await handOver(pod, ticket, text)).toBe('');
    expect(pod.events({ event: 'begin', id: 'bad' })).toEqual([]);
  });

  test('no question of a peer reaches a supervisor', async () => {
    const [token] = tokens(FLEET_KEY, 'question', ME, await identityOf(pod));
    const why = (id: string) => ask(pod, 'why', { 'X-Corelane-Token': token as string, 'X-Corelane-Id': id });
    const answers = await Promise.all(['unknown', '../heap', 'a/../../heap', '%2e%2e/heap'].map(why));
    for (const answer of answers) expect(answer).toMatch(/^HTTP\/1\.1 200 .*(room|full)$/s);
    for (const worker of [0, 1]) expect(await pod.isUp(worker)).toBe(true);
  });
});

describe('a fleet', () => {
  test('pods with different keys share nothing, and a key that comes later joins them', async () => {
    const fleet = await Fleet.start(1, patient);
    try {
      const [home] = fleet.pods as [Pod];
      const other = await fleet.add(patient, { key: OTHER_KEY });
      await fleet.untilAllKnown();
      expect((await pages(3, home)).map(({ status }) => status)).toEqual([200, 200, 200]);
      expect(begunIn(other)).toEqual([]);
      // The Secret was deleted and made again: one pod has the new key, the other one has both.
      home.writeKey(OTHER_KEY);
      await shares(fleet, 'joined');
    } finally {
      await fleet.stop();
    }
  });
});
