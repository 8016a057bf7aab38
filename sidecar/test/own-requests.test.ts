/**
 * A program that asks its own port while it renders: a part of that render, and nobody else can pass as one. Or its own
 * site, by the name that its client has used: such a request waits for no render.
 */
import { docker, logs } from '../../e2e/harness/engine/docker.ts';
import { type Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { ECHO_PORT, mark, page, SITE, startAsking } from './own-requests.ts';
import { OTHER_KEY } from './peers.ts';

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

describe.each(['child', 'thread'])('a render that waits for a %s which asks the own port', (by) => {
  test('gets its answer, and no other process gets in beside it', async () => {
    const [parent, asked, other] = [`parent-${by}`, `asked-by-${by}`, `not-${by}`];
    const render = pod.get(page(parent, { when: `go-${by}`, by, ask: page(asked) }));
    await pod.begun(parent);
    const before = await metric('overlap_total');
    const stranger = neighbour(
      `fetch('http://127.0.0.1:' + process.env.PORT + '${page(other)}').then((answer) => console.log(answer.status))`,
    );
    await until('it waits', async () => (await metric('overlap_total')) === before + 1);
    pod.release(`go-${by}`);
    expect((await render).body).toBe(`${parent}\n200 ${asked}`);
    expect((await stranger).trim()).toBe('200');
    // The other one has waited for longer, and has been looked at before.
    expect(order(parent, asked, other)).toEqual([
      ...[`${parent} begin`, `${asked} begin`, `${asked} end`, `${parent} end`],
      ...[`${other} begin`, `${other} end`],
    ]);
  });
});

test('a render that waits beside a child process is told, with the name of its executable', async () => {
  const before = await metric('child_waits_total');
  const render = pod.get(page('browser', { by: 'child', at: `127.0.0.1:${ECHO_PORT}`, ask: '/held' }));
  await until('it is counted', async () => (await metric('child_waits_total')) === before + 1);
  const said = (await logs(pod.workers[0] ?? ''))
    .split('\n')
    .filter((line) => line.includes('beside the child process'));
  expect(said).toEqual([
    expect.stringMatching(/beside the child process "node", and all render slots .*http:\/\/127\.0\.0\.1:/),
  ]);
  // Arguments may be secret.
  expect(said.join()).not.toContain('fetch(');
  pod.release('echo');
  expect((await render).status).toBe(200);
});

describe('a render that asks its own site', () => {
  const Host = SITE;
  // A host that a client can name, and that leads to somebody else: it learns a mark. What that is worth is below.
  const ECHO = `127.0.0.2:${ECHO_PORT}`;

  test.each(['fetch', 'http', 'expect'])('by %s waits for no other render', async (by) => {
    const names = ['own_site_sent_total', 'own_site_requests_total', 'requests_total', 'overlap_total'];
    const counts = () => Promise.all(names.map(metric));
    const before = await counts();
    const ids = [1, 2, 3].map((visitor) => `site-${by}-${visitor}`);
    // The one worker has one of them at a time.
    const answers = ids.map((id) =>
      pod.get(page(id, { by, at: SITE, ask: page(`${id}-asked`) }), { headers: { Host } }),
    );
    for (const [index, answer] of (await Promise.all(answers)).entries()) {
      expect([answer.status, answer.body]).toEqual([200, `${ids[index]}\n200 ${ids[index]}-asked`]);
    }
    expect((await counts()).map((count, index) => count - (before[index] ?? 0))).toEqual([3, 3, 3, 0]);
  });

  test('by an address of the pod, whatever its client has asked for', async () => {
    const asks = page('by-address', { at: `127.0.0.1:${PORTS.http}`, ask: page('at-address') });
    expect((await pod.get(asks, { headers: { Host: 'shop.example' } })).body).toBe('by-address\n200 at-address');
  });

  const HTTP = PORTS.http;
  test.each([
    ['fetch', `127.0.0.2:${HTTP}`, {}],
    ['fetch', `0.0.0.0:${HTTP}`, {}],
    ['http', `127.0.0.2:${HTTP}`, {}],
    ['http', `127.0.0.1:${HTTP}`, { host: 'shop.example' }],
    ['http', `127.0.0.1:${HTTP}`, { host: 'shop.example', list: 1 }],
    ['http', `127.0.0.1:${HTTP}`, { host: `127.0.0.1:${HTTP}`, list: 1 }],
    ['fetch', `127.0.0.1:${HTTP}`, { host: 'shop.example' }],
  ])('by %s to %s %j it waits for no other render', async (...[by, at, more]) => {
    const before = await metric('own_site_sent_total');
    const ids = [1, 2].map((visitor) => `${by}-${at}-${Object.values(more)}-${visitor}`);
    const answers = ids.map((id) =>
      pod.get(page(id, { ...more, by, at, ask: page(`${id}-asked`) }), { headers: { Host: 'localhost:8080' } }),
    );
    for (const [index, answer] of (await Promise.all(answers)).entries())
      expect([answer.status, answer.body]).toEqual([200, `${ids[index]}\n200 ${ids[index]}-asked`]);
    expect((await metric('own_site_sent_total')) - before).toBe(2);
  });

  test('whose address leads to several sites: the one that the head names has no mark of the other', async () => {
    const forms: Record<string, number>[] = [{}, { list: 1 }];
    for (const list of forms) {
      const asks = page('names-another', { by: 'http', at: ECHO, ask: '/', host: 'api.example', ...list });
      const { body } = await pod.get(asks, { headers: { Host: ECHO } });
      expect(body).toMatch(/\n200 \[.*"api\.example"/);
      expect(body).not.toMatch(/x-corelane-own-site/i);
    }
  });

  test('with more requests at a time than places and queue.maxLength: they wait for each other, not for renders', async () => {
    // The quarantine lets no more than two at a time to a URL without an answer.
    expect((await pod.get(page('one-of-120'))).status).toBe(200);
    const many = page('asks-120', { by: 'http', at: SITE, ask: page('one-of-120'), times: 120 });
    const { body } = await pod.get(many, { headers: { Host } });
    expect(body.split('\n')).toEqual(['asks-120', ...Array(120).fill('200 one-of-120')]);
  });

  test('whose answer asks it, too; what that one sends has no mark', async () => {
    const deep = await pod.get(page('deep', { deep: 2, at: SITE }), { headers: { Host } });
    expect(deep.body.split('200 deep')).toHaveLength(3);
    const held = pod.get(page('above', { hold: 1 }));
    await pod.begun('above');
    const asks = (depth: number) =>
      pod.get(page(`depth-${depth}`, { at: ECHO, ask: '/' }), { headers: { Host: ECHO, ...mark({ depth }) } });
    const [, next] = /"X-Corelane-Own-Site","([0-9a-f]{32})"/i.exec((await asks(1)).body) ?? [];
    expect([-1, 0].map((periods) => mark({ depth: 2, periods })['X-Corelane-Own-Site'])).toContain(next);
    expect((await asks(2)).body).not.toMatch(/x-corelane-own-site/i);
    pod.release('above');
    expect((await held).status).toBe(200);
  });

  test('a mark goes to no other site, not along with copied headers or a redirect, and the program does not see it', async () => {
    const headers = { Host };
    const said = await Promise.all([
      pod.get(page('other-port', { at: ECHO, ask: '/' }), { headers }),
      pod.get(page('other-port-http', { by: 'http', at: ECHO, ask: '/' }), { headers }),
      pod.get(page('copies', { copy: 1, at: ECHO, ask: '/' }), { headers }),
      pod.get(page('follows', { at: SITE, ask: page('leads', { to: `http://${ECHO}/` }) }), { headers }),
    ]);
    for (const { body } of said) {
      expect(body).toMatch(/\n200 \[.*"host"/i);
      expect(body).not.toMatch(/x-corelane-own-site/i);
    }
    const [raw, distinct] = JSON.parse((await pod.get(page('raw', { raw: 1 }))).body.split('\n')[1] ?? '');
    const at = raw.findIndex((text: string) => text.toLowerCase() === 'x-corelane-own-site');
    expect([at > 0, raw[at + 1], distinct['x-corelane-own-site']]).toEqual([true, '', ['']]);
  });

  test('only a mark that counts leads past a render, from any pod with the key', async () => {
    const held = pod.get(page('marks', { hold: 1 }));
    await pod.begun('marks');
    const marks = [
      ...[mark({ key: OTHER_KEY }), mark({ periods: -9 }), mark({ periods: 9 }), mark({ depth: 3 })],
      ...['0'.repeat(32), '1', '2', 'own-site-1', '1 ', 'x'.repeat(4_000)].map((text) => ({
        'X-Corelane-Own-Site': text,
      })),
      { X_Corelane_Own_Site: mark()['X-Corelane-Own-Site'] ?? '' },
    ];
    const none = marks.map((headers, index) => pod.get(page(`none-${index}`), { headers }));
    await pod.queued(marks.length);
    for (const headers of [mark(), mark({ depth: 2 }), mark({ periods: -1 })])
      expect((await pod.get(page('marked'), { headers })).body).toBe('marked');
    expect(marks.flatMap((_headers, index) => pod.events({ id: `none-${index}` }))).toEqual([]);
    pod.release('marks');
    expect((await held).status).toBe(200);
    expect((await Promise.all(none)).map(({ status }) => status)).toEqual(marks.map(() => 200));
  });

  test('who has a mark gets eight places of a worker, beside its render', async () => {
    const ids = Array.from({ length: 9 }, (_unused, index) => `place-${index}`);
    const held = pod.get(page('beside', { hold: 1 }));
    await pod.begun('beside');
    // Their answers count: the quarantine holds the third request at once for a URL without an answer.
    const answered = async () => (await pod.runtimeApi('show table urls')).match(/ gpc0=[1-9]/g)?.length ?? 0;
    const before = await answered();
    expect((await pod.get(page('counted'), { headers: mark() })).body).toBe('counted');
    expect(await answered()).toBe(before + 1);
    const answers = ids.map((id) => pod.get(page(id, { hold: 1 }), { headers: mark() }));
    const waiting = () => pod.metric('haproxy_backend_current_queue{proxy="own-site-1"}');
    await until('one waits', async () => (await waiting()) === 1);
    const begun = () => pod.events({ event: 'begin' }).filter(({ id = '' }) => ids.includes(id)).length;
    await until('the others have begun', () => begun() === 8);
    // What such a request sends has places of its own.
    expect((await pod.get(page('deeper'), { headers: mark({ depth: 2 }) })).body).toBe('deeper');
    expect(begun()).toBe(8);
    pod.release('beside', ...ids);
    expect((await Promise.all([held, ...answers])).map(({ status }) => status)).toEqual(Array(10).fill(200));
  });

  test('a full queue that refuses what a render has sent is told', async () => {
    const before = await metric('own_site_refused_total');
    for (const by of ['fetch', 'http'])
      expect((await pod.get(page(`full-${by}`, { by, at: `127.0.0.3:${ECHO_PORT}`, ask: '/full' }))).body).toMatch(
        /\n503 /,
      );
    expect(await metric('own_site_refused_total')).toBe(before + 2);
    const said = (await logs(pod.workers[0] ?? ''))
      .split('\n')
      .filter((line) => line.includes('renders wait for each other'));
    expect(said).toEqual([
      expect.stringContaining(`to "http://127.0.0.3:${ECHO_PORT}" was answered 503 queue-timeout`),
    ]);
  });
});
