/** Requests that are no renders: they take no render slot, and never more than the places of their class (I1). */
import net from 'node:net';
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { EVENTS, FEW_PLACES, openEvents, overlap, reason, startMortal, untilMortalUp } from './classes.ts';
import { STREAMS, type Stream } from './stream.ts';

let pod: Pod;
const stop = () => pod?.stop();
const INTERCEPTED = 'haproxy_frontend_intercepted_requests_total{proxy="front"}';
const FULL = 'haproxy_backend_http_requests_total{proxy="full-api"}';

/** Keeps every worker of the pod with a render until the function that it gives is called. */
async function keepBusy(name: string, render = (id: string) => `/?hold=1&id=${id}`): Promise<() => Promise<void>> {
  const ids = pod.workers.map((_worker, index) => `${name}-${index}`);
  const renders = ids.map((id) => pod.get(render(id)));
  const workers = await Promise.all(ids.map((id) => pod.begun(id)));
  expect(new Set(workers.map(({ worker }) => worker)).size).toBe(pod.workers.length);
  return async () => {
    pod.release(...ids);
    for (const answer of renders) expect((await answer).status).toBe(200);
  };
}

/** Requests that wait for a render slot. */
async function inQueue(): Promise<number> {
  const queues = ['line', 'workers'].map((proxy) => pod.metric(`haproxy_backend_current_queue{proxy="${proxy}"}`));
  return (await Promise.all(queues)).reduce((sum, one) => sum + one);
}

function logged(id: string): Promise<Record<string, unknown>> {
  return until(`${id} is logged`, async () => (await pod.accessLog()).find(({ requestId }) => requestId === id));
}

describe('an API beside renders', () => {
  beforeAll(async () => {
    pod = await Pod.start({
      workersPerPod: 2,
      webSockets: { enabled: true },
      priority: { classes: [{ name: 'low', match: [{ header: { name: 'X-Low' } }], maxQueue: '0%' }] },
      classes: [
        { name: 'read', match: [{ pathPrefix: '/both', method: 'GET', header: { name: 'X-Kind', value: 'a/b' } }] },
        {
          name: 'api',
          match: [{ pathPrefix: '/api/' }, { path: '/exact.v1' }, { pathSuffix: '/__data.json' }],
          concurrency: 4,
        },
        { name: 'rest', match: [{ pathPrefix: '/both' }] },
      ],
    });
  });
  afterAll(stop);

  test('it is answered while all workers render, told to the worker and logged', async () => {
    const release = await keepBusy('renders', (id) => `/?until=renders-end&id=${id}`);
    const headers = { 'x-request-id': 'api-1' };
    const answers = [await pod.get('/api/x?id=api-1', { headers }), await pod.get('/exact.v1', { method: 'POST' })];
    for (const { status, body } of answers) {
      expect([status, JSON.parse(body).headers['x-corelane-class']]).toEqual([200, 'api']);
    }
    expect(await logged('api-1')).toMatchObject({
      servedAs: 'api',
      status: 200,
      worker: expect.stringMatching(/^worker-/),
    });
    expect(answers[0]?.headers).not.toHaveProperty('x-corelane-worker');
    // The order of renders is not for it.
    const low = { 'x-low': '1' };
    expect(reason(await pod.get('/', { headers: low }))).toEqual([503, 'queue-full']);
    expect((await pod.get('/api/', { headers: low })).status).toBe(200);
    pod.release('renders-end');
    await release();
  });

  test('a worker without a render is chosen', async () => {
    const render = pod.get('/?hold=1&id=one-render');
    const { worker } = await pod.begun('one-render');
    const ids = [1, 2, 3, 4].map((n) => `beside-${n}`);
    const calls = ids.map((id) => pod.get(`/api/?hold=1&id=${id}`));
    const others = await Promise.all(ids.map((id) => pod.begun(id)));
    expect(others.map((other) => other.worker)).toEqual(Array(4).fill(1 - worker));
    // It has no place left.
    const next = pod.get('/api/?hold=1&id=beside-5');
    expect((await pod.begun('beside-5')).worker).toBe(worker);
    pod.release('one-render', 'beside-5', ...ids);
    expect((await Promise.all([render, next, ...calls])).map(({ status }) => status)).toEqual(Array(6).fill(200));
  });

  test.each([
    ['GET', { 'x-kind': 'A/B' }, 'read'],
    ['POST', { 'x-kind': 'a/b' }, 'rest'],
    ['GET', { 'x-kind': 'a/bc' }, 'rest'],
    ['GET', {}, 'rest'],
  ])('of several classes the first: %s %j', async (method, headers, expected) => {
    const { body } = await pod.get('/both/x', { method, headers: { ...headers } as Record<string, string> });
    expect(JSON.parse(body).headers['x-corelane-class']).toBe(expected);
  });

  test('a WebSocket of a class takes no render slot, nor a place of other WebSockets', async () => {
    const release = await keepBusy('behind-sockets');
    const upgrade = `Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==`;
    const sockets = [1, 2, 3].map((n) => {
      const socket = net.connect(pod.port(PORTS.http), '127.0.0.1');
      socket.write(`GET /api/socket-${n} HTTP/1.1\r\nHost: x\r\n${upgrade}\r\n\r\n`);
      return socket;
    });
    const heads = await Promise.all(
      sockets.map((socket) => new Promise<string>((resolve) => socket.once('data', (data) => resolve(String(data))))),
    );
    expect(heads.map((head) => head.slice(0, 12))).toEqual(Array(3).fill('HTTP/1.1 101'));
    for (const socket of sockets) socket.destroy();
    await release();
  });

  const PLAIN = [
    ...['/api', '/api?x=/../y', '/api/x', '/api/.well-known/x', '/api/...', '/api/a%20b', '/exact.v1?a=%2f..'],
    ...['/__data.json', '/shop/__data.json?a=b', '/a%20b/__data.json'],
  ];
  const ODD = [
    ...['/', '/apix', '/exact.v1/', '/exact.v1/x', '/exactxv1', '/x/api/x', '/?/api/x'],
    ...['/shop/__data.json/', '/shop/__data.json/x', '/shop/x__data.json', '/shop/__dataxjson', '/?/__data.json'],
    ...[
      '/shop//__data.json',
      '/shop/../__data.json',
      '/shop/__data%2ejson',
      '/shop/%5f_data.json',
      '/shop%2f__data.json',
    ],
    ...['/API/x', '/%61pi/x', '/api%2fx', '/api/a%2fb', '/api/a%2Fb'],
    ...[
      '//api/x',
      '/api//x',
      '/./api/x',
      '/x/../api/x',
      '/api/./x',
      '/api/.',
      '/api/../x',
      '/api/..',
      '/api/..?/api/x',
    ],
    ...[
      '/x/%2e%2e/api/x',
      '/api/%2e%2e/x',
      '/api/.%2E/x',
      '/api/%2E./x',
      '/api/..%2fx',
      '/x/..%2fapi/x',
      '/x%2f..%2fapi/x',
    ],
    ...[
      '/api/..\\x',
      '/x\\..\\api\\x',
      '/api/..%5cx',
      '/api/..%5Cx',
      '/api/%252e%252e/x',
      '/api/..%252fx',
      '/api/..;/x',
    ],
    ...['/api/#/x', '/#/../api/x', '/api/%2e%2e%2f%2e%2e%2fx/y/z'],
  ];

  test('a path that is spelled plainly is of its class', async () => {
    const release = await keepBusy('plain');
    for (const path of PLAIN) {
      const { status, body } = await pod.get(path);
      expect([path, status, JSON.parse(body).headers['x-corelane-class']]).toEqual([path, 200, 'api']);
    }
    await release();
  });

  test('one that is spelled oddly is a render, and waits for its turn', async () => {
    const release = await keepBusy('odd', (id) => `/?until=odd-end&id=${id}`);
    const before = pod.events({ event: 'begin' }).length;
    const logged = async () => (await pod.accessLog()).filter(({ requestId }) => String(requestId).startsWith('odd-'));
    const answers = ODD.map((path, index) => pod.get(path, { headers: { 'X-Request-ID': `odd-${index}` } }));
    // The proxies refuse some: those that lead out of the root, or have a fragment.
    let refused = 0;
    for (const answer of answers) void answer.then(({ status }) => (refused += status === 400 ? 1 : 0));
    await until('all wait or are refused', async () => refused + (await inQueue()) === ODD.length);
    expect(pod.events({ event: 'begin' })).toHaveLength(before);
    pod.release('odd-end');
    await release();
    const all = await Promise.all(answers);
    expect(all.map(({ status }) => status).filter((status) => status === 200)).toHaveLength(ODD.length - refused);
    const served = all.filter(({ status }) => status === 200).map(({ body }) => JSON.parse(body).headers);
    expect(served.filter((headers) => 'x-corelane-class' in headers)).toEqual([]);
    const lines = await until('all are logged', async () => {
      // Not those of the test before, which the engine may tell later. nginx gives what it refuses an id of its own.
      const all = await logged();
      return all.length >= ODD.length - refused ? all : undefined;
    });
    expect(lines.map(({ servedAs }) => servedAs).filter(Boolean)).toEqual([]);
  });

  test('a client cannot say that it is of a class', async () => {
    const release = await keepBusy('spoofed', (id) => `/?until=spoofed-end&id=${id}`);
    const names = ['X-Corelane-Class', 'X-Corelane-Served-As', 'x_corelane_class', 'X-Corelane-Served_As'];
    const headers = Object.fromEntries(names.map((name) => [name, 'api']));
    const answers = [pod.get('/?id=spoof-1', { headers }), pod.get('/?id=spoof-2', { headers, method: 'POST' })];
    await pod.queued(2);
    expect([...pod.events({ id: 'spoof-1' }), ...pod.events({ id: 'spoof-2' })]).toEqual([]);
    // Nor of another one, or of none.
    const other = await pod.get('/api/', { headers: { 'x-corelane-class': 'rest', 'x-corelane-served-as': 'rest' } });
    expect(JSON.parse(other.body).headers['x-corelane-class']).toBe('api');
    pod.release('spoofed-end');
    await release();
    for (const answer of await Promise.all(answers)) {
      expect(answer.status).toBe(200);
      expect(JSON.parse(answer.body).headers).not.toHaveProperty('x-corelane-class');
    }
  });

  test('a worker that has open downloads and no render is chosen before one that renders', async () => {
    const render = pod.get('/?hold=1&id=renders-alone');
    const chosen = 1 - (await pod.begun('renders-alone')).worker;
    const leave = new AbortController();
    for (const id of ['download-1', 'download-2']) {
      void pod.get(`/?id=${id}&length=100&never=1`, { signal: leave.signal }).catch(() => 'cut');
      expect((await pod.begun(id)).worker).toBe(chosen);
    }
    const places = `haproxy_server_limit_sessions{proxy="workers",server="worker-${chosen}"}`;
    await until('both have given their slot back', async () => (await pod.metric(places)) === 3);
    expect((await pod.get('/api/?id=beside-downloads')).status).toBe(200);
    expect((await pod.begun('beside-downloads')).worker).toBe(chosen);
    leave.abort();
    pod.release('renders-alone');
    expect((await render).status).toBe(200);
  });
});

describe('a class with few places', () => {
  beforeAll(async () => {
    pod = await Pod.start({ workersPerPod: 1, classes: [FEW_PLACES] });
  });
  afterAll(stop);

  test('its queue is its own, and what is beyond is refused and counted for itself', async () => {
    const [intercepted, full] = await Promise.all([pod.metric(INTERCEPTED), pod.metric(FULL)]);
    const ids = ['few-1', 'few-2', 'few-3'];
    const answers = ids.map((id) => pod.get(`/api?hold=1&id=${id}`));
    await until('one waits', async () => (await pod.metric('haproxy_backend_current_queue{proxy="class-api"}')) === 1);
    const refused = await pod.get('/api?id=few-4');
    expect([...reason(refused), refused.headers['retry-after']]).toEqual([503, 'class-full', '1']);
    expect((await pod.get('/?id=render')).status).toBe(200);
    pod.release(...ids);
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200, 200]);
    expect(await pod.metric(FULL)).toBe(full + 1);
    // What adds pods.
    expect(await pod.metric(INTERCEPTED)).toBe(intercepted);
    expect(pod.events({ id: 'few-4' })).toEqual([]);
    expect(overlap(pod, 'few-')).toBe(2);
  });

  test('a client that goes leaves the queue', async () => {
    const held = ['stay-1', 'stay-2'].map((id) => pod.get(`/api?hold=1&id=${id}`));
    await Promise.all([pod.begun('stay-1'), pod.begun('stay-2')]);
    const queue = async () => pod.metric('haproxy_backend_current_queue{proxy="class-api"}');
    const leaves = new AbortController();
    const left = pod.get('/api?id=left', { signal: leaves.signal }).catch(() => 'gone');
    await until('it waits', async () => (await queue()) === 1);
    leaves.abort();
    expect(await left).toBe('gone');
    await until('it has left', async () => (await queue()) === 0);
    pod.release('stay-1', 'stay-2');
    expect((await Promise.all(held)).map(({ status }) => status)).toEqual([200, 200]);
    expect(pod.events({ id: 'left' })).toEqual([]);
  });

  test('nothing is lost while no worker is up, and the time of its queue counts', async () => {
    const pid = pod.server(0);
    await pod.kill(0, pid, 'STOP');
    await pod.kill(0, pid, 'KILL');
    const answers = [pod.get('/api?id=up-1', { method: 'POST' }), pod.get('/api?id=up-2')];
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual([200, 200]);
    for (const id of ['up-1', 'up-2']) expect(pod.events({ event: 'begin', id })).toHaveLength(1);
  });
});

describe('workers that die with requests of a class', () => {
  beforeAll(async () => {
    // Longer than the one that is blocked stays so.
    pod = await startMortal('60s');
  });
  afterAll(stop);
  beforeEach(() => untilMortalUp(pod));

  test('what was begun is replayed if it may be, and what was not is not lost', async () => {
    const blocked = pod.get('/?hold=block&id=blocks');
    const { worker, pid } = await pod.begun('blocks');
    // Of these, some go to the worker that is blocked: all places of the other one are taken.
    const ids = [1, 2, 3, 4].map((n) => `kept-${n}`);
    const kept = ids.map((id) => pod.get(`/api?hold=1&id=${id}`, { method: 'POST' }));
    await Promise.all(ids.map((id) => pod.begun(id)));
    const unbegun = ['unbegun-1', 'unbegun-2'].map((id) => pod.get(`/api?id=${id}`, { method: 'POST' }));
    const taken = `haproxy_server_current_sessions{proxy="class-api",server="worker-${worker}"}`;
    await until('they are in its socket', async () => (await pod.metric(taken)) === 2);
    pod.release(...ids);
    expect((await Promise.all(kept)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    await pod.kill(worker, pid, 'KILL');
    pod.release('blocks');
    expect((await Promise.all([blocked, ...unbegun])).map(({ status }) => status)).toEqual([200, 200, 200]);
    for (const id of ['unbegun-1', 'unbegun-2']) expect(pod.events({ event: 'begin', id })).toHaveLength(1);
  });

  test('a GET that was begun goes to another worker, a POST does not', async () => {
    const get = pod.get('/api?hold=1&id=get');
    const { worker, pid } = await pod.begun('get');
    const others = [1, 2, 3, 4].map((n) => `post-${n}`);
    const posts = others.map((id) => pod.get(`/api?hold=1&id=${id}`, { method: 'POST' }));
    const begun = await Promise.all(others.map((id) => pod.begun(id)));
    await pod.kill(worker, pid, 'KILL');
    await until('it is begun again', () => pod.events({ event: 'begin', id: 'get' }).length === 2);
    pod.release('get', ...others);
    expect((await get).status).toBe(200);
    for (const [index, answer] of posts.entries()) {
      expect(reason(await answer)).toEqual(begun[index]?.worker === worker ? [502, 'worker-died'] : [200, undefined]);
    }
  });

  test('a GET that was begun goes to no other worker if its class is not replayed', async () => {
    const answer = pod.get('/once?hold=1&id=once');
    const { worker, pid } = await pod.begun('once');
    await pod.kill(worker, pid, 'KILL');
    expect(reason(await answer)).toEqual([502, 'worker-died']);
    expect(pod.events({ event: 'begin', id: 'once' })).toHaveLength(1);
  });
});

describe('Server-Sent Events', () => {
  beforeAll(async () => {
    pod = await Pod.start(EVENTS, STREAMS);
  });
  afterAll(stop);

  test('a hundred of them take no render slot, are spread, and end when their clients go', async () => {
    const streams: Stream[] = [];
    for (let n = 0; n < 100; n += 1) streams.push(await openEvents(pod, `many-${n}`));
    expect(streams.filter(({ status }) => status !== 200)).toEqual([]);
    await until('the first event of each has come', () => streams.every((stream) => stream.bytes() === 7));
    const workers = pod.events({ event: 'begin' }).filter(({ id }) => id?.startsWith('many-'));
    expect(workers.filter(({ worker }) => worker === 0)).toHaveLength(50);
    expect(reason(await pod.get('/events?id=beyond'))).toEqual([503, 'class-full']);
    const release = await keepBusy('beside-many', (id) => `/?id=${id}&step=hold:${id}`);
    await release();
    for (const stream of streams) stream.destroy();
    // Silent ones, too.
    await until(
      'the worker is told',
      () => pod.events({ event: 'end' }).filter(({ id }) => id?.startsWith('many-')).length === 100,
    );
    const inFlight = (worker: number) =>
      pod
        .get(`/workers/${worker}/metrics`, { port: PORTS.stats })
        .then(({ body }) => /class_requests_in_flight{[^}]*} (\d+)/.exec(body)?.[1]);
    await until('their places are free', async () => (await inFlight(0)) === '0' && (await inFlight(1)) === '0');
  });
});
