/** A program that asks its own port while it renders: a part of that render, and nobody else can pass as one. */
import { docker } from '../../e2e/harness/engine/docker.ts';
import { type Pod, until } from '../../e2e/harness/engine/pod.ts';
import { page, startAsking } from './own-requests.ts';

let pod: Pod;
beforeAll(async () => {
  pod = await startAsking('60s');
});
afterAll(() => pod?.stop());
beforeEach(() => until('it is up', async () => (await metric('up')) === 1 && (await pod.isUp(0))));

const metric = (name: string) => pod.runtimeMetric(0, `corelane_worker_${name}`);
const order = (...ids: string[]) =>
  pod
    .events()
    .filter(({ id = '' }) => ids.includes(id))
    .map(({ id, event }) => `${id} ${event}`);

/** Runs in another process of the pod's network, and says when all of it is on its way. */
async function neighbour(script: string): Promise<string> {
  return docker('exec', '--env', 'NODE_OPTIONS=', pod.workers[0] ?? '', 'node', '-e', script);
}

test('a server that is told a path beside its port is watched like any other', async () => {
  expect((await pod.supervisorLog(0)).find(({ event }) => event === 'up')).toMatchObject({ watched: true });
  expect(await metric('requests_total')).toBeGreaterThanOrEqual(0);
});

test.each(['fetch', 'http'])(
  'a render that asks itself by %s gets its answer, over new and kept connections',
  async (by) => {
    const before = [await metric('own_requests_total'), await metric('overlap_total'), await metric('requests_total')];
    for (const round of [1, 2, 3]) {
      const answer = await pod.get(page(`${by}-${round}`, { by, ask: page(`${by}-asked-${round}`) }));
      expect([answer.status, answer.body]).toEqual([200, `${by}-${round}\n200 ${by}-asked-${round}`]);
    }
    const ports = [1, 2, 3].map((round) => pod.events({ event: 'begin', id: `${by}-asked-${round}` })[0]?.port);
    expect(new Set(ports).size).toBeLessThan(3);
    const after = [await metric('own_requests_total'), await metric('overlap_total'), await metric('requests_total')];
    expect(after.map((count, index) => count - (before[index] ?? 0))).toEqual([3, 0, 3]);
    expect(await metric('requests_in_flight')).toBe(0);
  },
);

test('a body that is sent bit by bit, ten levels, and forty at once', async () => {
  const asked = page('asked-with-body');
  const withBody = await pod.get(page('body', { by: 'http', ask: asked, body: 5 }));
  expect(withBody.body).toBe('body\n200 asked-with-body');
  expect((await pod.get(page('deep', { deep: 10 }))).body.split('200 deep')).toHaveLength(11);
  const many = await pod.get(page('many', { by: 'http', ask: page('one-of-many'), times: 40 }));
  expect(many.body.split('200 one-of-many')).toHaveLength(41);
});

test('nobody else passes as the program: another port, another address with the same port, the same port', async () => {
  // Lets the program open a connection to itself, and keep it.
  await pod.get(page('opens', { by: 'http', ask: page('opened') }));
  const held = pod.get(page('held', { by: 'http', ask: page('held-asked'), hold: 1 }));
  const own = await until('the render has asked', () => pod.events({ event: 'end', id: 'held-asked' })[0]);
  const { port } = pod.events({ event: 'begin', id: own.id })[0] ?? {};
  const before = await metric('overlap_total');
  const said = neighbour(`
    const net = require('node:net');
    const send = (id, options) => new Promise((resolve) => {
      const socket = net.connect({ host: '127.0.0.1', port: process.env.PORT, ...options });
      socket.on('error', (error) => resolve(id + ' ' + error.code));
      const head = 'GET /?id=' + id + ' HTTP/1.1\\r\\nHost: localhost:' + process.env.PORT + '\\r\\nX-Forwarded-For: 127.0.0.1\\r\\n\\r\\n';
      socket.on('connect', () => socket.write(head, () => resolve(id + ' sent')));
    });
    Promise.all([
      send('other-port', {}),
      send('other-address', { localAddress: '127.0.0.2', localPort: ${port} }),
      send('same-port', { localAddress: '127.0.0.1', localPort: ${port} }),
    ]).then((all) => console.log(all.join('\\n')));
    setInterval(() => require('node:fs').existsSync(process.env.EVENTS + '.leave') && process.exit(), 20);
  `);
  await until('they wait', async () => (await metric('overlap_total')) === before + 2);
  for (const id of ['other-port', 'other-address', 'same-port']) expect(pod.events({ id })).toEqual([]);
  pod.release('leave');
  expect((await said).split('\n').filter(Boolean)).toEqual([
    'other-port sent',
    'other-address sent',
    expect.stringMatching(/^same-port (EADDRINUSE|EADDRNOTAVAIL)$/),
  ]);
  pod.release('held');
  expect((await held).status).toBe(200);
});

test('a request of its own that outlives its render keeps the place', async () => {
  const before = await metric('overlap_total');
  const own = page('outlives', { hold: 1 });
  expect((await pod.get(page('leaves', { by: 'http', later: own }))).status).toBe(200);
  await pod.begun('outlives');
  const next = pod.get(page('next'));
  // In HAProxy, in one stage or the other, if that has heard of it, else in the limiter.
  const inHaproxy = () => pod.metric('haproxy_backend_current_sessions{proxy="line"}');
  await until('it waits', async () => (await metric('overlap_total')) > before || (await inHaproxy()) > 0);
  expect(order('next')).toEqual([]);
  pod.release('outlives');
  expect((await next).status).toBe(200);
  expect(order('outlives', 'next')).toEqual(['outlives begin', 'outlives end', 'next begin', 'next end']);
});

test('a request of its own that no render has sent waits for its place', async () => {
  await pod.get(page('sets', { timer: page('by-timer') }));
  const held = pod.get(page('renders', { hold: 1 }));
  await pod.begun('renders');
  const before = await metric('overlap_total');
  pod.release('timer');
  await until('it waits', async () => (await metric('overlap_total')) > before);
  pod.release('renders');
  expect((await held).status).toBe(200);
  await until('it is rendered', () => pod.events({ event: 'end', id: 'by-timer' })[0]);
  expect(order('renders', 'by-timer')).toEqual(['renders begin', 'renders end', 'by-timer begin', 'by-timer end']);
});

test('a page that a request of a class asks for is a render, whatever headers go with it', async () => {
  const held = pod.get(page('rendered', { hold: 1 }));
  await pod.begun('rendered');
  const before = await metric('overlap_total');
  const asks = pod.get(`/api${page('of-a-class', { copy: 1, ask: page('asked-by-class') })}`);
  await until('it waits', async () => (await metric('overlap_total')) > before);
  pod.release('rendered');
  expect((await held).status).toBe(200);
  expect((await asks).body).toBe('of-a-class\n200 asked-by-class');
  expect(order('rendered', 'asked-by-class')).toEqual([
    ...['rendered begin', 'rendered end', 'asked-by-class begin', 'asked-by-class end'],
  ]);
});
