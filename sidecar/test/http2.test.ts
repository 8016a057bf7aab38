/** HTTP/2 in clear text: all that is promised for a connection of HTTP/1 holds for a stream. */
import http2 from 'node:http2';
import { docker } from '../../e2e/harness/engine/docker.ts';
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import {
  type Came,
  data,
  END_HEADERS,
  END_STREAM,
  type Field,
  headers,
  open,
  request,
  reset,
  TYPE,
} from './apps/frames.mjs';
import { answer, ask, closeAll, connections, session } from './http2.ts';

let pod: Pod;
/** Behind a balancer, with a cache and classes. */
let front: Pod;
beforeAll(async () => {
  [pod, front] = await Promise.all([
    Pod.start({
      ...{ workersPerPod: 2, http2: { enabled: true }, timeouts: { clientBody: '5m' } },
      buffering: { request: { maxSize: '2Mi' } },
      limits: { perClient: { requests: 30 } },
    }),
    Pod.start({
      ...{
        workersPerPod: 1,
        http2: { enabled: true },
        cache: { enabled: true, ttl: [{ pathPrefix: '/', value: '1m' }] },
      },
      classes: [{ name: 'api', match: [{ pathPrefix: '/api/' }], concurrency: 4 }],
      forwarded: { proxyProtocol: true },
    }),
  ]);
});
afterEach(closeAll);
afterAll(() => Promise.all([pod, front].map((one) => one?.stop())));

/** Frames of one stream, and what comes of them. */
async function frames(...parts: Buffer[]): Promise<Came> {
  const came = open({ port: pod.port(PORTS.http) });
  connections.push(came);
  came.send(...parts);
  await until('an answer', () => came.whole(1) || came.ended || came.reset(1) !== undefined);
  return came;
}

const begun = (prefix: string) => pod.events({ event: 'begin' }).filter(({ id }) => id?.startsWith(prefix));

test('both are spoken on one port, and a worker sees no difference', async () => {
  const from = { 'x-forwarded-for': '203.0.113.7', 'x-forwarded-proto': 'https', 'x-forwarded-user': 'x', host: 'a' };
  const { host, ...more } = from;
  // A worker that has just started is told that its connection ends.
  for (const worker of [0, 1])
    await until(
      'it is guarded',
      async () =>
        (await pod.metric(`haproxy_server_status{proxy="workers-guarded",server="worker-${worker}",state="UP"}`)) === 1,
    );
  await pod.keptConnections();
  // One after the other: who waits for a worker brings the time at which he came.
  const one = await pod.get('/caf\xe9?id=both', { headers: from });
  const two = await ask(session(pod), '/caf\xe9?id=both', { headers: { ...more, cookie: 'x=y' } });
  expect([one.status, two.status]).toEqual([200, 200]);
  const seen = [one, two].map(({ body }) => {
    const {
      'x-request-id': _id,
      'x-request-start': _at,
      'x-corelane-request': _own,
      cookie,
      ...rest
    } = JSON.parse(body).headers;
    return rest;
  });
  expect(seen[1]).toEqual(seen[0]);
  expect(seen[0]).toMatchObject({ host, 'x-forwarded-proto': 'https', 'x-real-ip': '203.0.113.7' });
  const line = await until(
    'it is logged',
    async () => (await pod.accessLog()).filter(({ client }) => client === '203.0.113.7').length === 2,
  );
  expect(line).toBe(true);
});

test('pings and errors are as in HTTP/1', async () => {
  const from = session(pod);
  expect(await ask(from, '/ping')).toMatchObject({ status: 200, body: 'ok\n' });
  const {
    status,
    headers: head,
    body,
  } = await ask(from, '/?id=large', { method: 'POST', body: Buffer.alloc(3_000_000) });
  expect([status, head['x-corelane-error'], body]).toEqual([413, 'body-too-large', '{"error":"body-too-large"}']);
  expect(begun('large')).toEqual([]);
});

test('a worker has one request at a time, however many streams there are (I1)', async () => {
  const from = session(pod);
  const answers = await Promise.all(Array.from({ length: 25 }, (_unused, n) => ask(from, `/?ms=20&id=single-${n}`)));
  expect(answers.map(({ status }) => status)).toEqual(Array(25).fill(200));
  expect(Math.max(...begun('single-').map(({ inFlight }) => inFlight as number))).toBe(1);
});

/** Both workers are busy until the function is called that this gives. */
async function busy(name: string) {
  const calls = [0, 1].map((n) =>
    pod.get(`/?hold=1&id=${name}-${n}`, { headers: { 'x-forwarded-for': '198.51.100.1' } }),
  );
  await Promise.all([pod.begun(`${name}-0`), pod.begun(`${name}-1`)]);
  return async () => {
    pod.release(`${name}-0`, `${name}-1`);
    await Promise.all(calls);
  };
}

test('a stream that is given up while it waits, or whose connection ends, is not rendered (I2)', async () => {
  const finish = await busy('given-up');
  const [from, other] = [session(pod), session(pod)];
  const leaving = Array.from({ length: 5 }, (_unused, n) => ask(from, `/?id=leaves-${n}`));
  const posts = Array.from({ length: 5 }, (_unused, n) =>
    ask(from, `/?id=leaves-post-${n}`, { method: 'POST', body: 'x' }),
  );
  const lost = Array.from({ length: 5 }, (_unused, n) => ask(other, `/?id=lost-${n}`));
  const staying = [1, 2, 3].map((n) => ask(from, `/?id=stays-${n}`));
  await pod.queued(18);
  for (const { stream } of [...leaving, ...posts]) stream.close(http2.constants.NGHTTP2_CANCEL);
  other.destroy();
  await pod.queued(3);
  await finish();
  expect((await Promise.all(staying)).map(({ status }) => status)).toEqual([200, 200, 200]);
  await Promise.all(lost);
  expect([...begun('leaves-'), ...begun('lost-')]).toEqual([]);
});

test('a body arrives whole, and one that trickles holds no worker (I4)', async () => {
  const from = session(pod);
  const body = Buffer.alloc(1_000_000, 'x');
  expect(JSON.parse((await ask(from, '/?id=whole', { method: 'POST', body })).body)).toMatchObject({
    bytes: body.length,
  });
  const slow = from.request({ ':path': '/?id=trickles', ':method': 'POST', ':authority': 'a' });
  const trickled = answer(slow);
  slow.write('x');
  for (const n of [1, 2, 3]) expect((await ask(from, `/?id=beside-${n}`)).status).toBe(200);
  expect(begun('trickles')).toEqual([]);
  slow.end('y');
  expect(JSON.parse((await trickled).body)).toMatchObject({ bytes: 2 });
});

test('one client has so many streams and no more, over however many connections', async () => {
  const finish = await busy('limit');
  const [from, other] = [session(pod), session(pod)];
  const own = { headers: { 'x-forwarded-for': '203.0.113.30' } };
  const calls = Array.from({ length: 30 }, (_unused, n) => ask(n % 2 ? from : other, `/?id=limit-call-${n}`, own));
  await pod.queued(30);
  const { status, headers: head } = await ask(from, '/?id=limit-beyond', own);
  expect([status, head['x-corelane-error'], head['retry-after']]).toEqual([429, 'client-limit', '1']);
  await finish();
  expect((await Promise.all(calls)).map((one) => one.status)).toEqual(Array(30).fill(200));
  expect((await ask(from, '/?id=limit-after', own)).status).toBe(200);
});

const LENGTH = (bytes: number): Field => ['content-length', `${bytes}`];

const posted = (id: string, ...fields: Field[]) =>
  headers(1, request(`/?id=refused-${id}`, 'POST', fields), END_HEADERS);

const got = (id: string, ...fields: Field[]) => headers(1, request(`/?id=refused-${id}`, 'GET', fields));

const only = (fields: Field[]) => headers(1, fields);

const REFUSED: [what: string, parts: Buffer[]][] = [
  ['a body longer than it says', [posted('long', LENGTH(5)), data(1, 'hello world', END_STREAM)]],
  ['a body shorter than it says', [posted('short', LENGTH(50)), data(1, 'hello', END_STREAM)]],
  ['a length, and no body', [got('none', LENGTH(5))]],
  ['two lengths', [posted('two', LENGTH(5), LENGTH(6)), data(1, 'hello', END_STREAM)]],
  ['no length, and a body', [posted('zero', LENGTH(0)), data(1, 'hello', END_STREAM)]],
  ['Connection', [got('connection', ['connection', 'keep-alive'])]],
  ['Keep-Alive', [got('keep-alive', ['keep-alive', 'timeout=5'])]],
  ['Proxy-Connection', [got('proxy-connection', ['proxy-connection', 'keep-alive'])]],
  ['Transfer-Encoding', [got('transfer-encoding', ['transfer-encoding', 'chunked'])]],
  [
    'Transfer-Encoding and a length',
    [posted('te', LENGTH(5), ['transfer-encoding', 'chunked']), data(1, '0\r\n\r\n', END_STREAM)],
  ],
  ['Upgrade', [got('upgrade', ['upgrade', 'websocket'])]],
  ['TE', [got('te', ['te', 'gzip'])]],
  ['upper case', [got('upper', ['X-Upper', 'x'])]],
  ['a name that is no token', [got('token', ['x(y)', 'x'])]],
  ['a name of 256 bytes', [got('long-name', ['x'.repeat(256), 'x'])]],
  ['a fragment', [only(request('/?id=refused-fragment#b'))]],
  ['a path that is none', [only(request('/a%zz?id=refused-none'))]],
  ['TRACE', [only(request('/?id=refused-trace', 'TRACE'))]],
  ['a line end in a name', [got('name', ['x\r\ny', 'x'])]],
  ['a line end in a value', [got('value', ['x', 'a\r\nTransfer-Encoding: chunked'])]],
  ['a new line in a value', [got('lf', ['x', 'a\nb: c'])]],
  ['NUL in a value', [got('nul', ['x', 'a\0b'])]],
  ['a control character in a value', [got('control', ['x', 'a\x01b'])]],
  ['a line end in a path', [only(request('/?id=refused-path HTTP/1.1\r\nX: y'))]],
  ['a path twice', [got('twice', [':path', '/other'])]],
  ['a method twice', [got('methods', [':method', 'POST'])]],
  ['an authority twice', [got('authority', [':authority', 'b'])]],
  ['another host than the authority', [got('host', ['host', 'b'])]],
  ['an authority that is none', [only([...request('/?id=refused-bad').slice(0, 3), [':authority', 'a b']])]],
  ['no authority', [only(request('/?id=refused-no').slice(0, 3))]],
  ['no path', [only([...request('').slice(0, 2), [':authority', 'a']])]],
  ['a pseudo-header that nobody knows', [got('pseudo', [':status', '200'])]],
  ['a path with a host', [only(request('http://b/?id=refused-absolute'))]],
  ['a method with a space', [only(request('/?id=refused-method', 'GET /x HTTP/1.1'))]],
  [
    'CONNECT',
    [
      only([
        [':method', 'CONNECT'],
        [':authority', 'a'],
      ]),
    ],
  ],
];

test.each(REFUSED)('400 to %s, and its connection stays', async (_what, parts) => {
  const came = await frames(...parts);
  expect([came.status(1), came.body(1)]).toEqual([400, '{"error":"bad-request"}']);
  expect(begun('refused-')).toEqual([]);
  came.send(headers(3, request('/?id=next')));
  await until('the next is answered', () => came.whole(3));
  expect(came.status(3)).toBe(200);
});

test('names of headers are as in HTTP/1', async () => {
  const names = ['api_key', 'x.trace'];
  const removed = ['x_forwarded_for', 'content_length', 'x.corelane.ask'];
  const fields = [...names, ...removed].map((name): Field => [name, 'sent']);
  const came = await frames(headers(1, request('/?id=odd-names', 'GET', fields)));
  const seen = JSON.parse(came.body(1)).headers;
  expect(Object.keys(seen).filter((name) => seen[name] === 'sent')).toEqual(names);
  const line = await until('it is logged', async () =>
    (await pod.accessLog()).find(({ uri }) => uri === '/?id=odd-names'),
  );
  expect(line.removedHeaders).toBe(removed.join(', '));
});

test('what is about a connection is in no response', async () => {
  const lines = ['Upgrade:h2c', 'Keep-Alive:timeout=5', 'Proxy-Connection:keep-alive', 'X-Other:y'];
  const { status, headers: head } = await ask(
    session(pod),
    `/?id=about&${lines.map((line) => `header=${line}`).join('&')}`,
  );
  expect([status, head['x-other']]).toEqual([200, 'y']);
  for (const name of ['upgrade', 'keep-alive', 'proxy-connection', 'connection', 'transfer-encoding'])
    expect([name, head[name]]).toEqual([name, undefined]);
});

test('a body need not say how long it is', async () => {
  const came = await frames(
    headers(1, request('/?id=no-length', 'POST'), END_HEADERS),
    data(1, 'he'),
    data(1, 'llo', END_STREAM),
  );
  expect([came.status(1), JSON.parse(came.body(1)).bytes]).toEqual([200, 5]);
});

/** nginx 1.26 knows none: docs/edge.md says so. */
test('a request with trailers ends its connection, and reaches no worker', async () => {
  const came = await frames(
    headers(1, request('/?id=trailers', 'POST'), END_HEADERS),
    data(1, 'x'),
    headers(1, [['x-sum', '1']]),
  );
  expect([came.status(1), came.goaway()]).toEqual([undefined, 1]);
  expect(begun('trailers')).toEqual([]);
});

test('the other ports do not speak it', async () => {
  for (const port of [PORTS.health, PORTS.stats, PORTS.peers]) {
    const came = open({ port: pod.port(port) });
    connections.push(came);
    came.send(headers(1, request('/metrics')));
    await until('it is closed', () => came.ended);
    // An answer of HTTP/1 looks like a frame of some other type.
    expect([port, came.of(TYPE.settings), came.of(TYPE.headers)]).toEqual([port, [], []]);
  }
});

test('neither does nginx inside of the pod, nor HAProxy', async () => {
  for (const socket of ['front', 'replay', 'slots', 'waiting-room'])
    expect(await pod.throughSocket(`${socket}.sock`, 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0')).toMatch(
      /^HTTP\/1\.1 4/,
    );
});

describe('behind a balancer, with a cache and classes', () => {
  const behind = async (from: string, path: string, count = 1): Promise<Came> => {
    const came = open({ port: front.port(PORTS.http), before: `PROXY TCP4 ${from} 10.0.0.1 4711 80\r\n` });
    connections.push(came);
    for (let n = 0; n < count; n += 1) came.send(headers(1 + 2 * n, request(path)));
    await until('answers', () => Array.from({ length: count }).every((_unused, n) => came.whole(1 + 2 * n)));
    return came;
  };

  test('the client is whom the balancer names', async () => {
    const came = await behind('198.51.100.7', '/api/?id=named');
    expect(JSON.parse(came.body(1)).headers).toMatchObject({ 'x-forwarded-for': '198.51.100.7' });
  });

  test('a page is rendered once for all streams', async () => {
    const came = await behind('198.51.100.8', '/page?id=once&ms=200', 10);
    expect(Array.from({ length: 10 }, (_unused, n) => came.status(1 + 2 * n))).toEqual(Array(10).fill(200));
    expect(front.events({ event: 'begin', id: 'once' })).toHaveLength(1);
  });

  test('a class has its own places', async () => {
    const held = open({ port: front.port(PORTS.http), before: 'PROXY TCP4 198.51.100.9 10.0.0.1 4711 80\r\n' });
    connections.push(held);
    held.send(headers(1, request('/?hold=1&id=held')));
    await front.begun('held');
    expect((await behind('198.51.100.9', '/api/?id=of-class')).status(1)).toBe(200);
    front.release('held');
    await until('it is answered', () => held.whole(1));
  });
});

test('a stream that is given up reaches nobody if it is known at once', async () => {
  const signal = (name: string) =>
    docker('exec', pod.nginx, 'sh', '-c', `kill -s ${name} $(cat /proc/$(cat /tmp/nginx.pid)/task/*/children)`);
  const came = open({ port: pod.port(PORTS.http) });
  connections.push(came);
  await until('it is open', () => came.of(TYPE.settings).length === 2);
  await signal('STOP');
  try {
    came.send(
      ...[1, 3, 5, 7].flatMap((id) => [headers(id, request('/?id=taken-back')), reset(id)]),
      headers(9, request('/?id=kept')),
    );
  } finally {
    await signal('CONT');
  }
  await until('the last is answered', () => came.whole(9));
  const lines = await until('they are logged', async () => {
    const found = (await pod.accessLog()).filter(({ uri }) => uri === '/?id=taken-back');
    return found.length === 4 ? found : undefined;
  });
  expect(lines.map(({ status, tries }) => [status, tries])).toEqual(Array(4).fill([499, '']));
  expect(begun('taken-back')).toEqual([]);
});
