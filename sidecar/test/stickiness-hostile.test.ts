/**
 * Who stays at which revision, and those who mean no good: clients choose ids and paths, neighbours talk to the peers'
 * port.
 */
import type { Pod } from '../../e2e/harness/engine/pod.ts';
import { FLEET_KEY } from '../../e2e/harness/engine/pod.ts';
import { NOW, OLD, type Revisions } from '../../e2e/harness/engine/revisions.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { tokens } from './apps/peer-tokens.mjs';
import { AS_NGINX, ask, handOver, headerOf, identityOf, ME, message } from './peer.ts';
import { rawConnection } from './raw.ts';
import { REVISION_COOKIE } from './stickiness.ts';
import { startTwo } from './stickiness-hostile.ts';

let all: Revisions;
let pod: Pod;
let old: Pod;
beforeAll(async () => {
  all = await startTwo();
  [pod, old] = [all.of(NOW), all.of(OLD)];
});
afterAll(() => all?.stop());

const YES = /\r\n\r\nyes$/;
const NO = /\r\n\r\nno$/;
const fileSessions = (one: Pod) => one.metric('haproxy_server_sessions_total{proxy="has-file",server="nginx"}');

async function raw(head: string[]): Promise<string> {
  const socket = await rawConnection(pod.port(PORTS.http));
  socket.write(`${[...head, 'Host: a', 'Connection: close'].join('\r\n')}\r\n\r\n`, 'latin1');
  let received = '';
  for await (const chunk of socket) received += chunk.toString('latin1');
  return received;
}

test.each([
  '/_next/static/..%2f..%2f..%2fetc%2fpasswd.js',
  '/_next/static/x/../../only/nobody.js',
  '/_next/static/%00.js',
  '/_next/static/a%0d%0aX-Corelane-Ask:%20slot.js',
  '/_next/static/"quotes".js',
  '/_next/static/<a>|b^c`.js',
  '/_next/static/a\\b.js',
  '/_next/static/\xff\xfe.js',
  `/_next/static/${'x'.repeat(6_000)}.js`,
  `/_next/static/${'%41'.repeat(300)}.js`,
  `/_next/static/${'/'.repeat(900)}.js`,
  '/_next/static/.env',
])('a path is answered, and costs no other pod its place: %.40s', async (path) => {
  expect(await raw([`GET ${path} HTTP/1.1`])).toMatch(/^HTTP\/1\.1 (200|400|404|414) /);
  // The other pod has not been taken for one that does not answer.
  expect((await pod.get(`/only/${OLD}.js`)).body).toBe(OLD);
});

describe('the entrance of peers', () => {
  const file = async (path: string, headers: Record<string, string> = {}) => {
    const [token] = tokens(FLEET_KEY, 'question', ME, await identityOf(old));
    const all = { 'X-Corelane-Token': token, 'X-Corelane-Own-Revision': NOW, ...headers };
    return ask(old, 'file', all, `GET ${path} HTTP/1.1`);
  };

  test('without the key nobody learns whether there is a file, or who it is', async () => {
    const before = await fileSessions(old);
    for (const token of [{}, { 'X-Corelane-Token': 'e'.repeat(32) }]) {
      expect(await ask(old, 'file', token as never, `GET /_next/static/${OLD}.js HTTP/1.1`)).toBe('');
      expect(await ask(old, 'revision', token as never)).toBe('');
    }
    expect(await fileSessions(old)).toBe(before);
  });

  test('with the key: what is there, what is not, and nothing else', async () => {
    expect(await file(`/_next/static/${OLD}.js`)).toMatch(YES);
    expect(headerOf(await file(`/_next/static/${OLD}.js`), 'X-Corelane-Reservation')).toMatch(/^[0-9a-f]{32}$/);
    for (const path of [
      '/_next/static/nobody.js',
      '/',
      '/?id=page',
      `/public/${OLD}.js`,
      '/_next/static/',
      '/%2e%2e/x',
      '/ping',
      '/_next/static/.env',
    ]) {
      const answer = await file(path);
      expect(answer).toMatch(NO);
      expect(headerOf(answer, 'X-Corelane-Reservation')).toBe('');
    }
    expect(await file(`/_next/static/${OLD}.js`, { 'X-Corelane-Own-Revision': OLD })).toMatch(/\r\n\r\nsame$/);
    expect(old.events({ event: 'begin', id: 'page' })).toEqual([]);
  });

  test.each<[string, Record<string, string>, string]>([
    ['a body', { 'Content-Length': '1' }, 'GET'],
    ['a body in chunks', { 'Transfer-Encoding': 'chunked' }, 'GET'],
    ['another method', {}, 'POST'],
    ['another protocol', { Upgrade: 'websocket' }, 'GET'],
  ])('a question with %s is none', async (_what, headers, method) => {
    const [token] = tokens(FLEET_KEY, 'question', ME, await identityOf(old));
    const asked = { 'X-Corelane-Token': token, 'X-Corelane-Own-Revision': NOW, ...headers };
    expect(await ask(old, 'file', asked, `${method} /_next/static/${OLD}.js HTTP/1.1`)).not.toMatch(YES);
  });

  test('what comes from a peer goes no further: neither a file nor a request that names a revision', async () => {
    const identity = await identityOf(old);
    const [token] = tokens(FLEET_KEY, 'question', ME, identity);
    const place = async (answer: string) =>
      tokens(FLEET_KEY, 'hand-over', headerOf(answer, 'X-Corelane-Reservation'), ME, identity)[0] as string;
    const before = await fileSessions(pod);

    const ofFile = await place(await file(`/_next/static/${OLD}.js`));
    const missing = await handOver(old, ofFile, message(AS_NGINX, `GET /_next/static/${NOW}.js HTTP/1.1`));
    expect(missing).toMatch(/^HTTP\/1\.1 404 /);
    expect(await fileSessions(pod)).toBe(before);

    const ofSide = await place(await ask(old, 'side', { 'X-Corelane-Token': token, 'X-Corelane-Revision': OLD }));
    const named = { ...AS_NGINX, 'X-Deployment-Id': NOW, Cookie: `${REVISION_COOKIE}=${NOW}` };
    const page = await handOver(old, ofSide, message(named, `GET /?id=handed&dpl=${NOW} HTTP/1.1`));
    expect(page).toMatch(/^HTTP\/1\.1 200 /);
    expect(old.events({ event: 'begin', id: 'handed' })).toHaveLength(1);
    expect(pod.events({ event: 'begin', id: 'handed' })).toEqual([]);
  });

  test('headers of a client decide nothing', async () => {
    for (const [name, value] of [
      ['X-Corelane-Revision', OLD],
      ['X-Corelane-Deployment', OLD],
      ['X-Corelane-Ask', 'file'],
      ['X-Corelane-Own-Revision', OLD],
    ] as const) {
      const answer = await pod.get('/', { headers: { [name]: value } });
      expect(all.renderedBy(answer)).toBe(NOW);
      expect((await pod.get('/only/nobody-else.js', { headers: { [name]: value } })).status).toBe(404);
    }
  });
});
