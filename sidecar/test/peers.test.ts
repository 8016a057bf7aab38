/**
 * Port 9001 as a neighbour in the cluster sees it: what gets in without the key, what it costs, and what an answer may
 * do.
 */
import net from 'node:net';
import { docker, logs, NODE_IMAGE, start } from '../../e2e/harness/engine/docker.ts';
import { Fleet, knownPeers } from '../../e2e/harness/engine/fleet.ts';
import { FLEET_KEY, PEERS_HOST, Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import type { RenderServiceSpecInput } from '../../operator/src/api/spec.ts';
import { PROTOCOL_VERSION } from '../../operator/src/render/pod-env.ts';
import { connectionHead, headWithAddresses, tokens, tokensOf } from './apps/peer-tokens.mjs';
import { AS_NGINX, ask, exchange, handOver, headerOf, hello, identityOf, ME, message, reserved } from './peer.ts';

const OTHER_KEY = Buffer.alloc(32, 'other').toString('base64');
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

  test('connections without the key are few, however many come, and requests do not notice', async () => {
    const sockets = Array.from({ length: 1000 }, () => net.connect(pod.port(PORTS.peers), '127.0.0.1'));
    for (const socket of sockets) socket.on('error', () => {}).on('connect', () => socket.write(connectionHead()));
    const open = () => pod.metric('haproxy_frontend_current_sessions{proxy="peers"}');
    const most: number[] = [];
    await until('they are given up', async () => {
      most.push(await open());
      expect((await pod.get('/?ms=1')).status).toBe(200);
      return sockets.every(
        ({ destroyed, readyState }) => destroyed || readyState === 'closed' || readyState !== 'open',
      );
    });
    for (const socket of sockets) socket.destroy();
    expect(Math.max(...most)).toBeLessThanOrEqual(120);
  });
});

describe('a fleet', () => {
  const patient: Partial<RenderServiceSpecInput> = { workersPerPod: 1, queue: { timeout: '60s' } };
  const begunIn = (pod: Pod) => pod.events({ event: 'begin' }).map(({ id }) => id ?? '');
  const strangers: string[] = [];
  let fleet: Fleet;
  afterEach(async () => {
    if (strangers.length > 0) await docker('rm', '--force', ...strangers.splice(0));
    await fleet?.stop();
  });

  /** Requests that need both workers of two pods at the same time. */
  async function shares(round: string): Promise<void> {
    const [home, other] = fleet.pods as [Pod, Pod];
    const ids = [`${round}-0`, `${round}-1`];
    const answers = ids.map((id) => home.get(`/?hold=1&id=${id}`));
    const ofRound = (pod: Pod) => begunIn(pod).filter((id) => ids.includes(id)).length;
    // Long before the first one is given up, which would make room at home.
    await until(`each pod renders one (${round})`, () => ofRound(home) === 1 && ofRound(other) === 1, 15_000);
    fleet.release(...ids);
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200]);
  }

  /** Starts somebody who is in DNS as the pods are. */
  async function stranger(mode: string, key = ''): Promise<string> {
    const network = ['--network', fleet.network, '--network-alias', PEERS_HOST];
    const apps = new URL('apps', import.meta.url).pathname;
    const env = ['--env', `MODE=${mode}`, '--env', `KEY=${key}`];
    const mount = ['--volume', `${apps}:/app:ro`];
    const container = await start(...network, ...env, ...mount, NODE_IMAGE, 'node', '/app/stranger.mjs');
    strangers.push(container);
    return container;
  }

  async function heard(container: string): Promise<string[]> {
    return (await logs(container))
      .split('\n')
      .filter((line) => line.startsWith('"'))
      .map((line) => JSON.parse(line));
  }

  const pages = (count: number, pod: Pod) =>
    Promise.all(
      Array.from({ length: count }, (_unused, index) =>
        pod.get(`/?ms=150&id=p${index}`, { headers: { Cookie: 'secret=of-a-client' } }),
      ),
    );

  test('pods with different keys share nothing, and a key that comes later joins them', async () => {
    fleet = await Fleet.start(1, patient);
    const [home] = fleet.pods as [Pod];
    const other = await fleet.add(patient, { key: OTHER_KEY });
    await fleet.untilAllKnown();
    expect((await pages(3, home)).map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(begunIn(other)).toEqual([]);
    // The Secret was deleted and made again: one pod has the new key, the other one has both.
    home.writeKey(OTHER_KEY);
    await shares('joined');
  });

  test('a new key reaches one pod after the other, and they share all the time', async () => {
    fleet = await Fleet.start(2, patient);
    const [home, other] = fleet.pods as [Pod, Pod];
    await shares('old');
    other.writeKey(OTHER_KEY);
    await until('the new key counts', async () => (await hello(other, OTHER_KEY, await other.address())) !== '');
    await shares('mixed');
    home.writeKey(OTHER_KEY);
    await until('the new key counts', async () => (await hello(home, OTHER_KEY, await home.address())) !== '');
    await shares('new');
    // The file vanishes with its Secret, which takes nothing from pods that have had it.
    for (const pod of fleet.pods) pod.writeKey(null);
    await until('it is said', async () =>
      (await logs(other.haproxy)).includes('is missing; the key that was in it stays'),
    );
    await shares('vanished');
  });

  test('an old key counts for a while only', async () => {
    const edit = (_file: string, text: string) => text.replace(/overlap-ms=[0-9]+/, 'overlap-ms=1');
    fleet = await Fleet.start(1, patient, { edit });
    const [home] = fleet.pods as [Pod];
    const opens = async (key: string) => (await hello(home, key, await home.address())) !== '';
    expect(await opens(FLEET_KEY)).toBe(true);
    home.writeKey(OTHER_KEY);
    await until('the old one is none', async () => !(await opens(FLEET_KEY)));
    expect(await opens(OTHER_KEY)).toBe(true);
  });

  test('a pod without a key works alone, says so once, and shares when it gets one', async () => {
    fleet = await Fleet.start(1, patient);
    const [home] = fleet.pods as [Pod];
    const lone = await fleet.add(patient, { key: 'too short' });
    await fleet.untilAllKnown();
    expect((await pages(3, home)).map(({ status }) => status)).toEqual([200, 200, 200]);
    expect((await pages(3, lone)).map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(await hello(lone, 'too short', await lone.address())).toBe('');
    expect([begunIn(home).length, begunIn(lone).length]).toEqual([3, 3]);
    const said = (await logs(lone.haproxy)).split('\n').filter((line) => line.includes('works alone'));
    expect(said).toEqual([expect.stringContaining('the key file is shorter than 32 bytes')]);
    lone.writeKey(FLEET_KEY);
    await shares('late');
    expect((await logs(lone.haproxy)).includes(FLEET_KEY)).toBe(false);
  });

  test('strangers at addresses of peers get nothing, and cost nothing', async () => {
    fleet = await Fleet.start(1, patient);
    const [home] = fleet.pods as [Pod];
    const modes = ['closes', 'silent', 'says-yes', 'endless-line', 'endless-headers', 'endless-body', 'slow'];
    const containers = await Promise.all(modes.map((mode) => stranger(mode)));
    await until('they are taken for peers', async () => (await knownPeers(home)) === 1 + modes.length);
    const heardAll = () => Promise.all(containers.map(heard));
    await until('all were asked', async () => {
      expect((await pages(6, home)).map(({ status }) => status)).toEqual(Array(6).fill(200));
      return (await heardAll()).every((texts) => texts.length > 0);
    });
    for (const texts of await heardAll()) {
      expect(texts.join('')).toContain('X-Corelane-Ask: hello');
      for (const never of ['id=p', 'secret=', 'X-Corelane-Revision', FLEET_KEY])
        expect(texts.join('')).not.toContain(never);
    }
    expect(await memoryKib(home)).toBeLessThan(100 * 1024);
  });

  test.each(['no-proof', 'wrong-proof'])(
    'a page from somebody else than who has reserved is none: %s',
    async (mode) => {
      fleet = await Fleet.start(1, patient);
      const [home] = fleet.pods as [Pod];
      const container = await stranger(mode, FLEET_KEY);
      await until('it has got a request', async () => {
        const answers = await pages(3, home);
        expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
        for (const { body, headers } of answers) expect(`${body}${JSON.stringify(headers)}`).not.toContain('forged');
        return (await heard(container)).some((text) => text.includes('id=p'));
      });
      for (const line of await home.accessLog()) expect(JSON.stringify(line)).not.toContain('forged');
    },
  );

  test('the page of who has reserved counts', async () => {
    fleet = await Fleet.start(1, patient);
    const [home] = fleet.pods as [Pod];
    await stranger('proven', FLEET_KEY);
    await until('a page is of it', async () => (await pages(3, home)).some(({ body }) => body === 'of a peer'));
  });
});

/** Resident memory of a pod's HAProxy. */
async function memoryKib(pod: Pod): Promise<number> {
  const find =
    'for status in /proc/[0-9]*/status; do grep -q "Name:.haproxy$" $status && grep VmRSS $status; done; true';
  const sizes = (await docker('exec', pod.haproxy, 'sh', '-c', find)).match(/[0-9]+/g) ?? [];
  return Math.max(...sizes.map(Number));
}
