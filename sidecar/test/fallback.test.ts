/**
 * What a browser gets where there is no page for it: a static one, from which it renders by itself. Programs and
 * crawlers get the error as ever.
 */
import { rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { join } from 'node:path';
import { docker } from '../../e2e/harness/engine/docker.ts';
import { type Call, Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { browser, CHROME, filling, reason, SHELL, seen } from './fallback.ts';
import { rawConnection } from './raw.ts';

let pod: Pod;
const stop = () => pod?.stop();
const { whileFull } = filling(() => pod);

describe('a full queue', () => {
  beforeAll(async () => {
    const fallback = { html: SHELL, status: 200, paths: ['/shop', '/a.b/'] };
    pod = await Pod.start({ workersPerPod: 1, queue: { maxLength: 1, timeout: '60s' }, fallback });
  });
  afterAll(stop);

  test('a browser gets the page, which nobody keeps and nobody can compare', async () => {
    await whileFull(async () => {
      const { status, headers, body } = await pod.get('/shop/red?x=1', browser());
      expect([status, body]).toEqual([200, SHELL]);
      expect(headers).toMatchObject({
        'content-type': 'text/html; charset=utf-8',
        'content-length': String(Buffer.byteLength(SHELL)),
        'cache-control': 'no-store',
        'x-corelane-error': 'queue-full',
        'retry-after': '1',
      });
      for (const name of ['etag', 'last-modified', 'accept-ranges', 'x-accel-redirect', 'set-cookie'])
        expect([name, headers[name]]).toEqual([name, undefined]);
      const head = await pod.get('/shop', browser({}, { method: 'HEAD' }));
      expect([head.status, head.body, head.headers['content-length']]).toEqual([
        200,
        '',
        String(Buffer.byteLength(SHELL)),
      ]);
    });
  });

  test('whatever a browser says it has already', async () => {
    await whileFull(async () => {
      for (const headers of [
        { 'if-none-match': '"a"' },
        { 'if-none-match': 'W/"a", *' },
        { 'if-modified-since': 'Fri, 01 Jan 2100 00:00:00 GMT' },
        { range: 'bytes=0-1' },
        { range: 'bytes=0-1', 'if-range': '"a"' },
      ])
        expect([headers, seen(await pod.get('/shop', browser(headers)))]).toEqual([
          headers,
          [200, 'queue-full', 'shell'],
        ]);
    });
  });

  test('who is no browser that shows a page gets JSON, and never 200', async () => {
    const others: [string, string, Call][] = [
      ['a form', '/shop', browser({}, { method: 'POST' })],
      ['a program that says nothing', '/shop', { headers: { 'user-agent': CHROME } }],
      ['a program that takes anything', '/shop', browser({ accept: '*/*' })],
      ['an API', '/shop', browser({ accept: 'application/json' })],
      ['one that takes no HTML', '/shop', browser({ accept: 'application/json, text/html;q=0' })],
      ['another type', '/shop', browser({ accept: 'x/text/html' })],
      ['a script', '/shop', browser({ 'sec-fetch-mode': 'cors' })],
      ['an image', '/shop', browser({ 'sec-fetch-mode': 'no-cors' })],
      ['a browser that looks ahead', '/shop', browser({ 'sec-purpose': 'prefetch;prerender' })],
      ['an older one', '/shop', browser({ purpose: 'prefetch' })],
      ['the router of Next', '/shop', browser({ 'next-router-prefetch': '1' })],
      ['a condition', '/shop', browser({ 'if-none-match': '*' })],
      ['another', '/shop', browser({ 'if-match': '"a"' })],
      ['a third', '/shop', browser({ 'if-unmodified-since': 'Thu, 01 Jan 1970 00:00:00 GMT' })],
      ['another path', '/api', browser()],
      ['a longer element', '/shopping', browser()],
      ['the dot is a dot', '/a-b/', browser()],
      ['it is not at the root', '/x/shop', browser()],
      ['a path that goes up', '/shop/../api', browser()],
      ['one that says what nginx would', '/shop', { headers: { 'x-corelane-fallback': '1', accept: '*/*' } }],
      ...[
        'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)',
        `${CHROME} (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)`,
        'Mozilla/5.0 (compatible; Google-InspectionTool/1.0;)',
        'facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)',
        'WhatsApp/2.23.20.0',
        CHROME.replace('Chrome', 'HeadlessChrome'),
        '',
      ].map((agent): [string, string, Call] => [agent, '/shop', browser({ 'user-agent': agent })]),
    ];
    await whileFull(async () => {
      for (const [what, path, call] of others)
        expect([what, seen(await pod.get(path, call))]).toEqual([what, [503, 'queue-full', 'json']]);
    });
  });

  test('every browser that shows a page does', async () => {
    await whileFull(async () => {
      for (const [path, headers] of [
        ['/shop', { 'sec-fetch-mode': '' }],
        ['/shop', { accept: 'text/html' }],
        ['/shop', { accept: 'application/json;q=0.1, text/html;level=1;q=0.5' }],
        [
          '/shop',
          { 'user-agent': 'Mozilla/5.0 (Linux; Android 9; CUBOT_X19) AppleWebKit/537.36 Chrome/142.0 Safari/537.36' },
        ],
        ['/shop', { 'user-agent': `${CHROME} [Pinterest/iOS]` }],
        ['/shop/', {}],
        ['//shop/a', {}],
        ['/x/../shop', {}],
        ['/a.b/c', {}],
        ['/a.b', {}],
      ] as const)
        expect([path, headers, seen(await pod.get(path, browser(headers)))]).toEqual([
          ...[path, headers],
          [200, 'queue-full', 'shell'],
        ]);
    });
  });

  test('a pod that drains says that the connection ends', async () => {
    await whileFull(async () => {
      writeFileSync(join(pod.marks, 'begun'), '');
      // One that would keep its connection.
      const agent = new http.Agent({ keepAlive: true });
      const answer = await until('HAProxy has seen it', async () => {
        const one = await pod.get('/shop', browser({}, { agent }));
        return one.headers.connection?.endsWith('close') ? one : undefined;
      });
      expect(seen(answer)).toEqual([200, 'queue-full', 'shell']);
      agent.destroy();
    });
    rmSync(join(pod.marks, 'begun'));
  });
});

describe('every error of the proxies, and none of the application', () => {
  beforeAll(async () => {
    pod = await Pod.start({ workersPerPod: 1, fallback: { html: SHELL } });
  });
  afterAll(stop);

  test.each([400, 404, 429, 500, 502, 503, 504])('an error %d of the application passes', async (status) => {
    const id = `app-${status}`;
    const path = `/?id=${id}&status=${status}&header=${encodeURIComponent('x-corelane-error:queue-full')}`;
    const answer = await pod.get(path, browser());
    expect([...reason(answer), JSON.parse(answer.body).id]).toEqual([status, undefined, id]);
    expect(pod.events({ event: 'begin', id })).toHaveLength(1);
  });

  test.each(['@corelane_fallback', '@corelane_shell', '/@corelane_shell', '/shell.html'])(
    'no application, and no client, leads to the page: %s',
    async (target) => {
      const id = `led-${target.replace(/\W/g, '')}-${target.length}`;
      const header = encodeURIComponent(`X-Accel-Redirect:${target}`);
      const led = await pod.get(`/?id=${id}&status=503&header=${header}`, browser());
      expect([...reason(led), JSON.parse(led.body).id]).toEqual([503, undefined, id]);
      const asked = await pod.get(target.replace(/^@/, '/@'), browser({ 'x-accel-redirect': target }));
      expect([asked.status, JSON.parse(asked.body).method]).toEqual([200, 'GET']);
    },
  );

  test('what nginx refuses keeps its status, and a browser gets the page', async () => {
    const large = { cookie: 'a'.repeat(30_000), 'x-large': 'a'.repeat(30_000), 'x-more': 'a'.repeat(10_000) };
    for (const [path, headers, expected] of [
      ['/shop#red', {}, [400, 'bad-request']],
      ['/shop', { host: 'a,b' }, [400, 'bad-request']],
      ['/shop', large, [431, 'head-too-large']],
      // nginx has read no header of this one, and not all of that one.
      ['/search/100%', {}, [400, 'bad-request']],
      ['/shop', { cookie: 'a'.repeat(40_000) }, [431, 'head-too-large']],
    ] as const) {
      const answer = await pod.get(path, browser(headers));
      expect([path, ...seen(answer), answer.headers['retry-after']]).toEqual([path, ...expected, 'shell', undefined]);
    }
    expect(seen(await pod.get('/shop#red'))).toEqual([400, 'bad-request', 'json']);
    expect(seen(await pod.get('/shop', { headers: large }))).toEqual([431, 'head-too-large', 'json']);
    expect(seen(await pod.get('/search/100%', { method: 'POST' }))).toEqual([400, 'bad-request', 'json']);
  });

  test.each([
    ['a form that nginx refuses gets JSON', 'POST', 'a'],
    ['so does a browser whose request is refused, and whose body is broken', 'GET', 'a,b'],
  ])('%s', async (_what, method, host) => {
    const socket = await rawConnection(pod.port(PORTS.http));
    const headers = Object.entries(browser().headers ?? {}).map(([name, value]) => `${name}: ${value}\r\n`);
    const head = `${method} /shop HTTP/1.1\r\nHost: ${host}\r\n${headers.join('')}Transfer-Encoding: chunked`;
    socket.write(`${head}\r\n\r\nzz\r\n\r\n`);
    let received = '';
    for await (const chunk of socket) received += chunk.toString('latin1');
    expect(received).toMatch(/^HTTP\/1\.1 400 .*\{"error":"bad-request"\}$/s);
  });

  test('HAProxy is not there', async () => {
    await docker('kill', '--signal', 'KILL', pod.haproxy);
    expect(seen(await pod.get('/?id=down', browser()))).toEqual([503, 'proxy-down', 'shell']);
    expect(seen(await pod.get('/?id=down'))).toEqual([502, 'proxy-down', 'json']);
    await docker('start', pod.haproxy);
    await until('ready', () =>
      pod.get('/readyz', { port: PORTS.health }).then(
        ({ status }) => status === 200,
        () => false,
      ),
    );
  });
});

describe("errors of nginx' own", () => {
  afterEach(stop);

  test('the page of a refused request is for its paths, and takes no place', async () => {
    const edit = (_file: string, text: string) => text.replace(/corelane_requests [0-9]+/, 'corelane_requests 1');
    pod = await Pod.start({ workersPerPod: 1, fallback: { html: SHELL, paths: ['/shop'] } }, { edit });
    const busy = pod.get('/?hold=1&id=holds');
    await pod.begun('holds');
    expect(seen(await pod.get('/shop/100%?x=/api', browser()))).toEqual([400, 'bad-request', 'shell']);
    expect(seen(await pod.get('/api/100%?x=/shop', browser()))).toEqual([400, 'bad-request', 'json']);
    expect(seen(await pod.get('/shop#red', browser()))).toEqual([400, 'bad-request', 'shell']);
    pod.release('holds');
    expect((await busy).status).toBe(200);
  });

  test('as many requests as there is memory for', async () => {
    const edit = (_file: string, text: string) => text.replace(/corelane_requests [0-9]+/, 'corelane_requests 1');
    pod = await Pod.start({ workersPerPod: 1, fallback: { html: SHELL } }, { edit });
    const busy = pod.get('/?hold=1&id=busy');
    await pod.begun('busy');
    expect(seen(await pod.get('/', browser()))).toEqual([503, 'requests-full', 'shell']);
    expect(seen(await pod.get('/'))).toEqual([503, 'requests-full', 'json']);
    pod.release('busy');
    expect((await busy).status).toBe(200);
  });
});

describe('a page of a ConfigMap', () => {
  beforeAll(async () => {
    pod = await Pod.start({
      workersPerPod: 1,
      queue: { maxLength: 1, timeout: '60s' },
      fallback: { configMap: { name: 'shop-shell' }, status: 200 },
    });
  });
  afterAll(stop);

  test('it comes, and is another one, without any restart', async () => {
    pod.writeShell('<p>first');
    await whileFull(async () => expect(await pod.get('/', browser())).toMatchObject({ status: 200, body: '<p>first' }));
    pod.writeShell('<p>second');
    await whileFull(async () =>
      expect(await pod.get('/', browser())).toMatchObject({ status: 200, body: '<p>second' }),
    );
  });
});
