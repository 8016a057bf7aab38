/**
 * Connections inside the pod that are used for more than one request: for which, and what must never come of it (I5).
 */
import type { Pod } from '../../e2e/harness/engine/pod.ts';
import { keeping, start } from './kept-connections.ts';

let pod: Pod;
const { warm, hadConnection, expectOneTry } = keeping(() => pod);
beforeAll(async () => {
  pod = await start();
});
afterAll(() => pod?.stop());
beforeEach(warm);

const counts = async () => ({
  front: await pod.metric('haproxy_frontend_connections_total{proxy="front"}'),
  slots: await pod.metric('haproxy_frontend_connections_total{proxy="slots"}'),
  reused: await pod.metric('haproxy_backend_connection_reuses_total{proxy="workers"}'),
});

test.each(['GET', 'HEAD', 'OPTIONS', 'POST', 'PUT', 'DELETE'])(
  'a %s goes over the connections of one before, whatever that was',
  async (method) => {
    const before = await counts();
    const ids = [0, 1, 2].map((n) => `${method}-${n}`);
    for (const id of ids) expect((await pod.get(`/?id=${id}`, { method })).status).toBe(200);
    expect(await counts()).toEqual({ ...before, reused: before.reused + 3 });
    expect(hadConnection(...ids)).toEqual([true, true, true]);
  },
);

test('a connection that ends just as it is used again loses no request; the second try has one of its own', async () => {
  const ids = [0, 1, 2].map((n) => `dropped-${n}`);
  for (const id of ids) expect((await pod.get(`/?id=${id}&drop=once`)).status).toBe(200);
  expect(ids.map((id) => hadConnection(id)[1])).toEqual([false, false, false]);
  expect(hadConnection('dropped-0')[0]).toBe(true);
});

test('a request that kills its worker over a kept connection gets a second one, and no third', async () => {
  const { status, headers } = await pod.get('/?id=killer&die=1');
  expect([status, headers['x-corelane-error']]).toEqual([502, 'worker-died']);
  expect(pod.events({ event: 'begin', id: 'killer' })).toHaveLength(2);
});

test.each([
  ['POST', '/'],
  ['GET', '/oauth2/redirect/google'],
])('a %s that kills its worker over a kept connection gets no second one, and its worker is named: %s', expectOneTry);

test('a POST whose connection a program ends instead of an answer is not begun again', async () => {
  const { status, headers } = await pod.get('/?id=dropped-post&drop=once', { method: 'POST' });
  expect([status, headers['x-corelane-error']]).toEqual([502, 'worker-died']);
  expect(hadConnection('dropped-post')).toEqual([true]);
});

test('an answer that comes before the body has been read leaves nothing behind for the next request', async () => {
  const body = Buffer.alloc(2_000_000, 'GET /forged HTTP/1.1\r\nHost: x\r\n\r\n');
  for (const n of [0, 1, 2]) {
    expect((await pod.get(`/?id=unread-${n}&unread=1`, { method: 'POST', body })).status).toBe(200);
    const { body: answer } = await pod.get(`/?id=behind-unread-${n}`, { method: 'POST' });
    expect(JSON.parse(answer)).toMatchObject({ id: `behind-unread-${n}`, bytes: 0 });
  }
  expect(pod.events({ event: 'begin', id: '/forged' })).toEqual([]);
});

test('what a program sends beyond its Content-Length is never the answer to the next request', async () => {
  const forged = encodeURIComponent('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged');
  const { reused } = await counts();
  const long = pod.get(`/?id=too-long&hold=1&length=10&more=${forged}`);
  await pod.begun('too-long');
  const behind = pod.get('/?id=behind-too-long');
  // It comes over the same connection when HAProxy has got ten bytes, and waits there when the others are sent.
  await pod.queued(1);
  pod.release('too-long');
  const [first, second] = await Promise.all([long, behind]);
  expect([first.status, first.body]).toEqual([200, 'x'.repeat(10)]);
  expect([second.status, JSON.parse(second.body).id]).toEqual([200, 'behind-too-long']);
  expect((await counts()).reused).toBe(reused + 2);
});

test('a response whose bytes are all there, and which is never ended, takes no other with it', async () => {
  const answers = await Promise.all([
    pod.get('/?id=endless&length=10&never=1'),
    pod.begun('endless').then(() => pod.get('/?id=behind-endless')),
  ]);
  expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  expect(JSON.parse(answers[1].body).id).toBe('behind-endless');
});

test('a worker that wants to authenticate the connection has nobody tied to it', async () => {
  const before = await counts();
  for (const n of [0, 1]) expect((await pod.get(`/?id=ntlm-${n}&status=401`)).status).toBe(401);
  expect((await pod.get('/?id=behind-ntlm')).status).toBe(200);
  expect((await counts()).front).toBe(before.front + 1);
});
