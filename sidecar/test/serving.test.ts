/** A pod with free and busy workers: what it answers, and what a worker gets to see. */
import http from 'node:http';
import net from 'node:net';
import { buffer } from 'node:stream/consumers';
import { logs } from '../../e2e/harness/engine/docker.ts';
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';

let pod: Pod;
beforeAll(async () => {
  pod = await Pod.start({
    workersPerPod: 2,
    timeouts: { clientBody: '60s', clientSend: '60s' },
    // Blocked workers are told when to go on, and no watchdog is to be faster.
    watchdog: { stallTimeout: '29s' },
    buffering: { request: { maxSize: '2Mi', memory: '16Ki' } },
    // Of a query what is logged by default.
    accessLog: { clientAddress: 'Masked' },
  });
});
afterAll(() => pod?.stop());

/** A raw connection, for clients that misbehave. */
function connect(): Promise<net.Socket> {
  return new Promise((resolve, reject) => {
    const socket = net.connect(pod.port(PORTS.http), '127.0.0.1', () => resolve(socket));
    socket.on('error', reject);
  });
}

test('health, statistics and ping answer while all workers are busy (I6), and the metrics of those', async () => {
  const busy = [0, 1].map((n) => pod.get(`/?hold=block&id=busy-${n}`));
  await Promise.all([pod.begun('busy-0'), pod.begun('busy-1')]);
  const answers = await Promise.all([
    pod.get('/ping'),
    pod.get('/livez', { port: PORTS.health }),
    pod.get('/readyz', { port: PORTS.health }),
    pod.get('/metrics', { port: PORTS.stats }),
    pod.get('/', { port: PORTS.stats }),
  ]);
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200, 200]);
  for (const worker of [0, 1]) {
    expect(await pod.runtimeMetric(worker, 'corelane_worker_up')).toBe(1);
    expect(await pod.runtimeMetric(worker, 'corelane_worker_requests_in_flight')).toBe(1);
  }
  expect(pod.events({ event: 'end' }).filter(({ id }) => id?.startsWith('busy-'))).toEqual([]);
  pod.release('busy-0', 'busy-1');
  expect((await Promise.all(busy)).map(({ status }) => status)).toEqual([200, 200]);
});

/**
 * The concurrency limiter in the worker hides a second request from the program: it must not have had anything to do.
 */
async function expectNoOverlap(): Promise<void> {
  for (const worker of [0, 1]) expect(await pod.runtimeMetric(worker, 'corelane_worker_overlap_total')).toBe(0);
}

test('no worker ever has two requests, also when clients give up (I1)', async () => {
  const calls = Array.from({ length: 40 }, (_unused, n) => {
    // Every third client leaves soon, some of them while their request is being rendered.
    const signal = n % 3 === 0 ? AbortSignal.timeout(20 + n * 10) : undefined;
    return pod.get(`/?ms=60&id=single-${n}`, { signal }).then(
      ({ status }) => status,
      () => 'aborted',
    );
  });
  const results = await Promise.all(calls);
  expect(results.filter((_unused, n) => n % 3 !== 0)).toEqual(Array(26).fill(200));
  expect(results).toContain('aborted');
  await until('all begun renders end', () => {
    const of = (event: 'begin' | 'end') => pod.events({ event }).filter(({ id }) => id?.startsWith('single-')).length;
    return of('begin') > 0 && of('begin') === of('end');
  });
  expect(Math.max(...pod.events({ event: 'begin' }).map(({ inFlight }) => inFlight ?? 0))).toBe(1);
  await expectNoOverlap();
});

test('a render goes on when its client leaves, and nothing else gets its worker meanwhile (I1)', async () => {
  const leave = new AbortController();
  // It needs the CPU.
  const left = pod.get('/?hold=busy&id=left', { signal: leave.signal }).catch(() => 'aborted');
  const { worker } = await pod.begun('left');
  leave.abort();
  expect(await left).toBe('aborted');
  const others = await Promise.all([1, 2, 3].map((n) => pod.get(`/?ms=50&id=after-left-${n}`)));
  expect(others.map(({ status }) => status)).toEqual([200, 200, 200]);
  pod.release('left');
  await until('the abandoned render ends', () => pod.events({ event: 'end', id: 'left' })[0]);
  const events = pod.events().filter((event) => event.worker === worker);
  const begin = events.findIndex(({ event, id }) => event === 'begin' && id === 'left');
  expect(events[begin + 1]).toMatchObject({ event: 'end', id: 'left' });
  await expectNoOverlap();
});

test('a client that trickles its body occupies no worker (I4)', async () => {
  const slow = await Promise.all([1, 2, 3].map(connect));
  for (const [n, socket] of slow.entries()) {
    // "100 Continue" tells that nginx has read the head, and that the body is what it waits for.
    const head = `POST /?id=slow-body-${n} HTTP/1.1\r\nHost: a\r\nContent-Length: 40000\r\nExpect: 100-continue`;
    socket.write(`${head}\r\nConnection: close\r\n\r\n`);
    await new Promise((resolve) => socket.once('data', resolve));
    socket.write('x'.repeat(20_000));
  }
  expect((await pod.get('/?id=beside-slow-body')).status).toBe(200);
  expect(pod.events({ event: 'begin' }).filter(({ id }) => id?.startsWith('slow-body'))).toEqual([]);
  for (const socket of slow) socket.write('x'.repeat(20_000));
  await until('their requests are rendered', () => {
    const ends = pod.events({ event: 'end', bytes: 40_000 }).filter(({ id }) => id?.startsWith('slow-body'));
    return ends.length === 3;
  });
  for (const socket of slow) socket.destroy();
});

test('a client that does not read its response occupies no worker (I4)', async () => {
  // More than sockets and memory buffers hold: the rest must go to a file.
  const slow = await Promise.all([1, 2, 3].map(connect));
  for (const [n, socket] of slow.entries()) {
    socket.pause();
    socket.write(`GET /?id=slow-reader-${n}&size=20000000 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
  }
  await Promise.all([0, 1, 2].map((n) => pod.begun(`slow-reader-${n}`)));
  const sessions = 'haproxy_backend_current_sessions{proxy="workers"}';
  await until('HAProxy has no request', async () => (await pod.metric(sessions)) === 0);
  expect((await pod.get('/?id=beside-slow-reader')).status).toBe(200);
  // What had been given up would free a worker, too.
  const rest = await Promise.all(slow.map((socket) => buffer(socket)));
  for (const bytes of rest) expect(bytes.length).toBeGreaterThan(20_000_000);
});

test('a body of 1 MB arrives whole, also after it has queued', async () => {
  const busy = [0, 1].map((n) => pod.get(`/?hold=1&id=large-${n}`));
  await Promise.all([pod.begun('large-0'), pod.begun('large-1')]);
  const body = Buffer.alloc(1024 * 1024, 'x');
  const large = pod.get('/?id=large-body', { method: 'POST', body });
  await pod.queued(1);
  pod.release('large-0', 'large-1');
  const answer = await large;
  expect(answer.status).toBe(200);
  expect(JSON.parse(answer.body).bytes).toBe(body.length);
  await Promise.all(busy);
});

test('a body beyond the limit is refused without a worker', async () => {
  const body = Buffer.alloc(2 * 1024 * 1024 + 1);
  const answer = await pod.get('/?id=too-large', { method: 'POST', body, headers: { expect: '100-continue' } });
  expect(answer.status).toBe(413);
  expect(answer.headers['x-corelane-error']).toBe('body-too-large');
  expect(pod.events({ id: 'too-large' })).toEqual([]);
});

test('a worker sees who asked, and one request id', async () => {
  const headers = {
    host: 'shop.example:8080',
    'x-request-id': 'abc-123',
    'x-forwarded-proto': 'https',
    'x-forwarded-for': '203.0.113.7',
    traceparent: '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01',
  };
  const seen = JSON.parse(
    (await pod.get('/?id=headers', { headers: { ...headers, 'x-corelane-waits': '9' } })).body,
  ).headers;
  expect(seen).toMatchObject({ ...headers, 'x-real-ip': '203.0.113.7' });
  expect(seen['x-forwarded-host']).toBe('shop.example:8080');
  expect(seen['x-corelane-waits']).toBeUndefined();
});

test.each(['', 'a b', 'x'.repeat(129), '"},{"a":"', '../a'])('request id %j is replaced', async (id) => {
  const seen = JSON.parse((await pod.get('/', { headers: { 'x-request-id': id } })).body).headers;
  expect(seen['x-request-id']).toMatch(/^[0-9a-f]{32}$/);
});

test('the answer has the queue time, and nothing that is for the log only', async () => {
  const { headers } = await pod.get('/?id=timing');
  expect(headers['server-timing']).toMatch(/^queue;dur=[0-9]+$/);
  expect(Object.keys(headers).filter((name) => name.startsWith('x-corelane'))).toEqual([]);
});

test('the access log has one harmless line per request', async () => {
  const hostile = '"},{"status":200,"x":"\\';
  const path = `/"},{"a":"\\${'y'.repeat(2000)}?id=logged&q=${hostile}`;
  await pod
    .get(path, { headers: { 'x-request-id': hostile, traceparent: hostile, 'user-agent': hostile, host: hostile } })
    .catch(() => 0);
  await pod.get(path, { headers: { 'x-request-id': 'log-1', 'x-corelane-worker': hostile, traceparent: hostile } });
  const line = await until('the line is written', async () =>
    (await pod.accessLog()).find(({ requestId }) => requestId === 'log-1'),
  );
  expect(line).toMatchObject({ status: 200, method: 'GET', error: '', tries: '200', traceparent: '' });
  expect(line.worker).toMatch(/^worker-[01]$/);
  expect(typeof line.queueMs).toBe('number');
  expect(typeof line.renderMs).toBe('number');
  expect(line.uri).toBe(path.slice(0, 512));
  expect(await logs(pod.nginx)).not.toContain(hostile);
});

/** The line of a request with this id. */
const lineOf = (id: string) =>
  until(`${id} is logged`, async () => (await pod.accessLog()).find(({ requestId }) => requestId === id));

describe('neither log has a value of a query', () => {
  test.each([
    ['ordinary ones', '/?code=4/0AX4XfWh&state=xyz', '/?code=-&state=-'],
    ['a token alone', '/a?secret&page=2', '/a?-&page=-'],
    ['a token that ends in =', '/a?dG9rZW4tc2VjcmV0==', '/a?-'],
    ['empty ones', '/?a=1&&b=2;c=3&=4&=&', '/?a=-&&b=-&=-&-&'],
    ['brackets', '/?filter%5Bsize%5D=9&filter[color]=red', '/?filter%5Bsize%5D=-&filter[color]=-'],
    ['encoded names', '/?%74oken=1&token%3Dsecret=1', '/?-=-&-=-'],
    ['long names', `/?${'n'.repeat(64)}=1&${'n'.repeat(65)}=1`, `/?${'n'.repeat(64)}=-&-=-`],
    ['hostile names', '/?q="},{"admin":true&"x"=1&\\=2', '/?q=-&-=-&-=-'],
    ['a URL as a value', '/login?next=https://a/?token=secret', '/login?next=-'],
    ['parameters of a path', '/a;jsessionid=1A2B;v=1/b;secret?y=1', '/a;jsessionid=-;v=-/b;-?y=-'],
    ['a fragment', '/a#access_token=secret', '/a#access_token=-'],
    ['a long value', `/?token=${'x'.repeat(7_000)}&last=1`, '/?token=-&last=-'],
    ['many', `/?${'a=1&'.repeat(1_000)}`, `/?${'a=-&'.repeat(1_000)}`.slice(0, 512)],
  ])('%s', async (what, path, uri) => {
    const id = what.replaceAll(/[^a-z]/gi, '-');
    await pod.get(path, { headers: { 'x-request-id': id } });
    expect((await lineOf(id)).uri).toBe(uri);
  });

  test('32 kB of a query are refused, and nothing of them is logged', async () => {
    // nginx may close the connection before all of it is sent.
    await pod.get(`/?token=${'secret'.repeat(5_500)}`).catch(() => 0);
    const line = await until('it is logged', async () => (await pod.accessLog()).find((one) => one.status === 431));
    expect(line.uri).toBe('/?token=-');
  });

  test('the error log has the same of a request, and no Referer', async () => {
    const headers = { 'x-request-id': 'error-log', referer: 'http://a/?token=secret' };
    const body = Buffer.alloc(1024 * 1024);
    // Of a connection that was kept, too.
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    expect((await pod.get('/?id=first', { agent })).status).toBe(200);
    expect((await pod.get('/error-log?token=secret', { method: 'POST', body, headers, agent })).status).toBe(200);
    agent.destroy();
    await lineOf('error-log');
    const text = await logs(pod.nginx);
    const told = text.split('\n').find((line) => line.includes('"POST /error-log?token=-"'));
    expect(told).toMatch(/\[warn\] .* buffered to a temporary file .*, client: [0-9]+\.[0-9]+\.[0-9]+\.0, request: /);
    expect(text).not.toContain('secret');
  });
});

test.each([
  ['203.0.113.77', '203.0.113.0'],
  ['2001:db8:7:8::9', '2001:db8:7::'],
  ['2001:db8::9', '2001:db8::'],
  ['::ffff:203.0.113.77', '::ffff:203.0.113.0'],
])('of the client %s the log has the network: %s', async (client, network) => {
  const id = `of-${client.replaceAll(':', '-')}`;
  await pod.get('/?id=masked', { headers: { 'x-request-id': id, 'x-forwarded-for': client } });
  expect(await lineOf(id)).toMatchObject({
    client: network,
    proxy: expect.stringMatching(/^[0-9]+\.[0-9]+\.[0-9]+\.0$/),
  });
});

test('idle connections of clients are kept', async () => {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  const first = await pod.get('/?id=keep-1', { agent });
  const second = await pod.get('/?id=keep-2', { agent });
  expect([first.headers.connection, second.headers.connection]).toEqual(['keep-alive', 'keep-alive']);
  agent.destroy();
});
