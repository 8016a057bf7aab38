/** Pages that are kept: who gets which, and what is in them. */
import http from 'node:http';
import { docker } from '../../e2e/harness/engine/docker.ts';
import { PATIENT_PEERS } from '../../e2e/harness/engine/haproxy-modules.ts';
import { type Answer, Pod, until } from '../../e2e/harness/engine/pod.ts';
import { CACHE_MOUNT_PATH, PORTS } from '../../operator/src/api/names.ts';
import { ask, ownPage, page, renders, seconds, statusOf } from './cache.ts';
import { rawConnection } from './raw.ts';
import { inSteps, openStream, STREAMS } from './stream.ts';

const MISS = 'Corelane; fwd=uri-miss';
const HIT = 'Corelane; hit';

/** The preset for Next without its assets, classes and priorities: only its cache settings are left. */
const NEXT = { framework: 'Next' as const, concurrency: 1, assets: [], classes: [], priority: { classes: [] } };

let pod: Pod;
let streams: Pod;
let largeHeads: Pod;
beforeAll(async () => {
  const query = { mode: 'Except' as const, names: ['utm_source'] };
  const key = { headers: ['X-Market'], cookies: ['lang', '$theme.v2'], query };
  const bypass = { cookies: ['session', 'connect.sid', 'a!$%&*+^`|~'], headers: ['X-Preview'], paths: ['/account'] };
  const ttl = [
    { pathPrefix: '/chosen', value: '60s' },
    { pathPrefix: '/chosen/not', value: '0s' },
  ];
  [pod, streams, largeHeads] = await Promise.all([
    Pod.start({ workersPerPod: 2, cache: { enabled: true, key, bypass, ttl } }, PATIENT_PEERS),
    Pod.start({ workersPerPod: 2, cache: { enabled: true, maxSize: '8Mi' } }, STREAMS),
    Pod.start({ ...NEXT, cache: { enabled: true }, buffering: { maxHeaderSize: '128Ki' } }),
  ]);
});
afterAll(() => Promise.all([pod?.stop(), streams?.stop(), largeHeads?.stop()]));

const seen = ({ body }: Answer) => JSON.parse(body).headers as Record<string, string>;

test('a page is rendered once, and says how old it is', async () => {
  const first = await pod.get(page('once'));
  // Its Age is 1 if a second ended between the worker's Date and the cache (RFC 9111, 4.2.3).
  expect([first.status, statusOf(first)]).toEqual([200, MISS]);
  const second = await pod.get(page('once'));
  expect([second.status, statusOf(second), second.body]).toEqual([200, HIT, first.body]);
  expect(Number(second.headers.age)).toBeGreaterThanOrEqual(0);
  expect(second.headers.date).toBe(first.headers.date);
  expect(second.headers['cache-control']).toBe('max-age=60');
  expect(second.headers['server-timing']).toBeUndefined();
  expect(renders(pod, 'once')).toBe(1);
  const log = await until('the log has both', async () => {
    const lines = (await pod.accessLog()).filter(({ uri }) => String(uri).includes('id=once'));
    return lines.length === 2 ? lines : undefined;
  });
  expect(log.map(({ cache, worker, renderMs }) => [cache, worker !== '', renderMs !== null])).toEqual([
    ['miss', true, true],
    ['hit', false, false],
  ]);
});

/** Packets with data that a client in the pod gets for so many kept pages, one after the other (tcpi_data_segs_in). */
async function packets(path: string, times: number): Promise<number> {
  const talk = `
    my $socket = IO::Socket::INET->new("127.0.0.1:${PORTS.http}") or die "$!";
    for (1 .. $ARGV[1]) {
      print $socket "GET $ARGV[0] HTTP/1.1\\r\\nHost: packets\\r\\n\\r\\n";
      my $page = "";
      until ($page =~ /\\r\\n0\\r\\n\\r\\n$/) { sysread($socket, $page, 65536, length $page) or die "cut" }
    }
    print unpack "x152 L", getsockopt($socket, 6, 11);`;
  return Number(await docker('exec', pod.haproxy, 'perl', '-MIO::Socket::INET', '-e', talk, path, `${times}`));
}

test('its head is in the first packet of its body', async () => {
  const path = page('packets', 'max-age=60', '&size=20000');
  // One is rendered; what is rendered has a packet for its head.
  expect(await packets(path, 1)).toBeGreaterThan(0);
  expect(await packets(path, 20)).toBe(20);
});

test('a page for a year is kept for a minute', async () => {
  const year = page('year', 's-maxage=31536000');
  await pod.get(year);
  expect(statusOf(await pod.get(year))).toBe(HIT);
  // The file of the page begins with two numbers: a version, and until when nginx gives it out.
  const look = `grep -rl id=year ${CACHE_MOUNT_PATH} | xargs head -c 16 | od -An -t d8`;
  const [, untilSeconds] = (await docker('exec', pod.nginx, 'sh', '-c', look)).trim().split(/\s+/).map(Number);
  const renderedMs = Date.parse((await pod.get(year)).headers.date ?? '');
  expect((untilSeconds ?? Number.NaN) - renderedMs / 1_000).toBeLessThanOrEqual(61);
});

test('a page with a large head is kept, whatever the head of who asks', async () => {
  const path = page('large-head', 'max-age=60', '&head=60000');
  const headers = { 'x-a': 'a'.repeat(30_000), 'x-b': 'b'.repeat(30_000) };
  for (const status of [MISS, HIT]) {
    const answer = await pod.get(path, { headers });
    expect([answer.status, statusOf(answer), answer.headers['x-long']]).toEqual([200, status, 'x'.repeat(60_000)]);
  }
  expect(renders(pod, 'large-head')).toBe(1);
});

test('a target of 60,000 bytes reaches a worker where a head may have 128 KiB', async () => {
  const path = `/?id=long-target&q=${'a'.repeat(60_000)}`;
  for (const method of ['GET', 'POST']) {
    const { status, body } = await largeHeads.get(path, { method });
    expect([method, status, JSON.parse(body)]).toMatchObject([method, 200, { id: 'long-target', method }]);
  }
});

test('a page with a head that is too large for a cached file is never kept', async () => {
  const path = page('no-room', 'max-age=60', '&head=70000');
  for (const count of [1, 2]) {
    const { status, headers, body } = await largeHeads.get(path);
    expect([status, headers['x-long'], JSON.parse(body).id]).toEqual([200, 'x'.repeat(70_000), 'no-room']);
    expect(renders(largeHeads, 'no-room')).toBe(count);
  }
});

test('nor is one whose name and head together are too large for a cached file', async () => {
  const path = page('no-room-name', 'max-age=60', `&head=60000&q=${'a'.repeat(6_000)}`);
  for (const count of [1, 2]) {
    const { status, headers, body } = await pod.get(path);
    expect([status, headers['x-long'], JSON.parse(body).id]).toEqual([200, 'x'.repeat(60_000), 'no-room-name']);
    expect(renders(pod, 'no-room-name')).toBe(count);
  }
});

test('a page whose name leaves its head no room is 502, and says so', async () => {
  const answer = await pod.get(page('name', 'max-age=60', `&head=60000&q=${'a'.repeat(20_000)}`));
  expect([answer.status, answer.headers['x-corelane-error']]).toEqual([502, 'bad-response']);
});

test('a page that comes after early hints is kept as it is', async () => {
  const path = page('hinted', 'max-age=60', '&hints=2');
  const first = await pod.get(path);
  expect([first.status, JSON.parse(first.body).id]).toEqual([200, 'hinted']);
  const second = await pod.get(path);
  expect([second.status, statusOf(second), second.body]).toEqual([200, HIT, first.body]);
});

test('HEAD gets the head of a page, and fills the cache', async () => {
  const head = await pod.get(page('head'), { method: 'HEAD' });
  expect([head.status, head.body]).toEqual([200, '']);
  expect(statusOf(await pod.get(page('head')))).toBe(HIT);
  expect(renders(pod, 'head')).toBe(1);
});

test.each(['private', 'no-store', 'no-cache', 'max-age=0', 'max-age=60, private'])(
  '%s is not kept',
  async (control) => {
    const id = `not-${control.replace(/[^a-z0-9]/g, '')}`;
    for (const _ of [1, 2]) expect((await pod.get(ownPage(id, control))).status).toBe(200);
    // One render shows that it cannot be cached, and each client gets one.
    expect(renders(pod, id)).toBe(3);
  },
);

test.each(['private', 'max-age=60'])(
  'a sign-in is rendered once for each request, and not kept: %s',
  async (control) => {
    const id = `sign-in-${control.replace(/[^a-z0-9]/g, '')}`;
    const answers = [0, 1].map(() => pod.get(`/auth/callback${page(id, control)}`));
    for (const answer of answers) expect(statusOf(await answer)).toBe('Corelane; fwd=miss; detail=replay');
    expect(renders(pod, id)).toBe(2);
  },
);

test.each(['Set-Cookie:a=b', 'Vary:*', 'Vary:a, *'])('%s is not kept', async (header) => {
  const id = `not-${header.replace(/[^a-zA-Z0-9]/g, '')}`;
  for (const _ of [1, 2]) await pod.get(ownPage(id, 'max-age=60', `&header=${encodeURIComponent(header)}`));
  expect(renders(pod, id)).toBe(3);
});

test('what a user has chosen for a path goes before what the application says of times', async () => {
  const at = (path: string, id: string) => `${path}${page(id, 'no-cache, max-age=0')}`;
  for (const _ of [1, 2]) await pod.get(at('/chosen/a', 'chosen'));
  for (const _ of [1, 2]) await pod.get(at('/chosen/not/a', 'chosen-not'));
  expect([renders(pod, 'chosen'), renders(pod, 'chosen-not')]).toEqual([1, 2]);
});

/** Request headers that describe the client, its network path or its preferences. */
const SAID = [
  ...['accept', 'accept-language', 'user-agent', 'origin', 'referer', 'save-data', 'dnt', 'priority', 'from', 'via'],
  ...['rsc', 'next-router-state-tree', 'sec-ch-ua', 'sec-ch-ua-mobile', 'sec-fetch-dest', 'sec-gpc', 'purpose'],
  ...[
    'tenant',
    'account-id',
    'country',
    'device-type',
    'cloudfront-viewer-country',
    'cf-ipcountry',
    'fastly-client-ip',
  ],
  ...['true-client-ip', 'client-ip', 'x-forwarded-for', 'x-real-ip', 'forwarded', 'x-forwarded-port', 'x-host'],
  ...['x-forwarded-prefix', 'x-original-url', 'x-rewrite-url', 'x-http-method-override', 'x-middleware-subrequest'],
  ...['x-invoke-path', 'x-nextjs-data', 'x-now-route-matches', 'next-action', 'baggage', 'sentry-trace', 'tracestate'],
  ...[
    'remote-user',
    'ssl-client-subject-dn',
    'client-cert',
    'api-key',
    'apikey',
    'x-api-key',
    'session-token',
    'userid',
  ],
  ...['x-corelane-herd', 'x-corelane-round', 'x-corelane-key', 'x-corelane-ttl', 'x-corelane-personal', 'x-anything'],
  ...['x-corelane-why', 'x-corelane-found', 'proxy-authorization', 'accept-encoding', 'x-request-id', 'anything'],
];

test('of a client the worker sees what is in the key, and nothing else', async () => {
  const headers = {
    ...Object.fromEntries(SAID.map((name) => [name, 'evil'])),
    cookie: 'session2=evil; lang=de; a=evil',
  };
  const got = seen(await pod.get(page('evil'), { headers }));
  expect(JSON.stringify(got)).not.toMatch(/evil/);
  // Applications read these two without checking that they are there.
  expect(got).toMatchObject({ accept: '*/*', cookie: 'lang=de', 'user-agent': 'Corelane' });
  expect(Object.keys(got).toSorted()).toEqual(
    [
      ...['accept', 'cookie', 'host', 'user-agent', 'x-corelane-request', 'x-forwarded-host'],
      ...['x-forwarded-proto', 'x-request-id', 'x-request-start'],
    ].toSorted(),
  );
  // The next visitor gets the same page.
  const next = await pod.get(page('evil'), { headers: { cookie: 'lang=de' } });
  expect([statusOf(next), seen(next)]).toEqual([HIT, got]);
});

test('what a worker sees of who asks is in the key', async () => {
  const variants: Record<string, string>[] = [
    {},
    { 'x-forwarded-host': 'other' },
    { 'x-forwarded-proto': 'https' },
    { host: 'other' },
  ];
  const more: Record<string, string>[] = [
    { cookie: 'lang=fr' },
    { cookie: 'x=1; lang=de' },
    { 'x-market': 'ch' },
    { 'accept-encoding': 'gzip' },
  ];
  for (const headers of [...variants, ...more]) {
    const answer = await pod.get(page('keyed'), { headers });
    expect([headers, statusOf(answer)]).toEqual([headers, MISS]);
  }
  const same: Record<string, string>[] = [
    { cookie: 'lang=de' },
    { 'x-market': 'ch', cookie: 'y=2' },
    { host: 'OTHER' },
  ];
  for (const headers of same)
    expect([headers, statusOf(await pod.get(page('keyed'), { headers }))]).toEqual([headers, HIT]);
});

test('parameters that do not count do not get to the worker', async () => {
  await pod.get(`${page('query')}&utm_source=a`);
  expect(statusOf(await pod.get(`${page('query')}&utm_source=b`))).toBe(HIT);
  expect(statusOf(await pod.get(`/?utm_source=c&${page('query').slice(2)}`))).toBe(HIT);
  // Written in another way it is another one.
  expect(statusOf(await pod.get(`${page('query')}&utm%5Fsource=b`))).toBe(MISS);
});

test('variants by Vary: what the application names its render is shown', async () => {
  const vary = '&header=Vary:X-Market-2,%20Accept-Encoding,%20Accept-Language,%20User-Agent';
  const path = ownPage('vary', 'max-age=60', vary);
  for (const language of ['de', 'fr', 'de', 'fr']) {
    const answer = await pod.get(path, { headers: { 'accept-language': language, 'user-agent': 'Browser' } });
    expect([seen(answer)['accept-language'], seen(answer)['user-agent']]).toEqual([language, 'Browser']);
    expect(answer.headers.vary).toBe('X-Market-2, Accept-Encoding, Accept-Language, User-Agent');
  }
  // The first one was rendered without its language before.
  expect(renders(pod, 'vary')).toBe(3);
  // Pages of the same route are shown it at once, and what they were shown tells their variants.
  const sibling = '/vary/y?id=sibling&header=Cache-Control:max-age=60';
  for (const language of ['de', 'fr', 'de', 'fr']) {
    const answer = await pod.get(sibling, { headers: { 'accept-language': language } });
    expect(seen(answer)['accept-language']).toBe(language);
  }
  expect(renders(pod, 'sibling')).toBe(2);
});

test('a page that depends on cookies is for those who have none, or none but those of scripts', async () => {
  const path = ownPage('cookies', 'max-age=60', '&header=Vary:Cookie');
  const with_ = (cookie: string) => pod.get(path, { headers: { cookie } });
  expect(statusOf(await pod.get(path))).toBe(MISS);
  const guest = await with_('_ga=1.2; _gid=3; _ga_ABC=x; _gcl_au=1; lang2=');
  expect(statusOf(guest)).not.toBe(HIT);
  const visitor = await with_('_ga=1.2; _gid=3; _ga_ABC=x; _gcl_au=1');
  expect([statusOf(visitor), visitor.headers.vary]).toEqual([HIT, 'Cookie']);
  const names = ['_ga_x-y', '_gac_UA-1', '_gali', '_gat', '_gat_UA-1', '_gcl_new', '__utmz', '_fbp', '_hjid'];
  expect(statusOf(await with_(names.map((name) => `${name}=1`).join('; ')))).toBe(HIT);
  // Google Optimize changes the page, and applications have names of their own.
  for (const name of ['_gaexp', '_gallery']) {
    const own = await with_(`_ga=1.2; ${name}=1`);
    expect([statusOf(own), seen(own).cookie]).toEqual([expect.not.stringMatching(/hit/), `_ga=1.2; ${name}=1`]);
  }
  for (const _ of [1, 2]) {
    const member = await with_('_ga=1.2; sid=1');
    expect([member.status, seen(member).cookie]).toEqual([200, '_ga=1.2; sid=1']);
  }
  // A client cannot forge the header by which nginx tells the two variants.
  const forged = await pod.get(path, { headers: { 'x-corelane-personal': '1' } });
  expect(statusOf(forged)).toBe(HIT);
  expect(seen(await with_('sid=1')).cookie).toBe('sid=1');
});

test('many cookies of scripts are soon looked through, and one that is none makes a page personal', async () => {
  const path = ownPage('many-cookies', 'max-age=60', '&header=Vary:Cookie');
  await pod.get(path);
  const scripts = '_gat=1;'.repeat(1000);
  expect(statusOf(await pod.get(path, { headers: { cookie: scripts } }))).toBe(HIT);
  const member = await pod.get(path, { headers: { cookie: `${scripts}x` } });
  expect([member.status, seen(member).cookie]).toEqual([200, `${scripts}x`]);
});

test.each([
  ['as large as it may be', 0, 200],
  ['too large by a byte', 1, 431],
])('a request with cookies that is %s', async (what, more, status) => {
  const target = ownPage(`large-${status}`, 'max-age=60', '&header=Vary:Cookie');
  const half = 'x'.repeat(30_000);
  const lines = ['Host: a', 'Connection: close', 'Cookie: sid=1', `X-Half: ${half}`, `X-Other: ${half}`, 'X-Pad: '];
  // As nginx counts: each header has 8 bytes beside its own, of which two are ": " here (sidecar/nginx/size.c).
  const bytes = lines.reduce((sum, line) => sum + line.length - 2 + 8, 'GET'.length + target.length);
  const socket = await rawConnection(pod.port(PORTS.http));
  let answer = '';
  socket.setEncoding('latin1').on('data', (chunk) => {
    answer += chunk;
  });
  const pad = 'x'.repeat(64 * 1024 - bytes + more);
  socket.write([`GET ${target} HTTP/1.1`, `${lines.join('\r\n')}${pad}`, '', ''].join('\r\n'));
  await until(`it is answered, ${what}`, () => socket.destroyed);
  expect([answer.split(' ')[1], answer.includes('X-Corelane-Error: head-too-large')]).toEqual([
    `${status}`,
    status === 431,
  ]);
});

test('a member who is the first takes no page from the guests', async () => {
  const path = ownPage('member', 'max-age=60', '&header=Vary:Cookie');
  const member = () => pod.get(path, { headers: { cookie: 'sid=1' } });
  expect([seen(await member()).cookie, renders(pod, 'member')]).toEqual(['sid=1', 2]);
  expect([statusOf(await pod.get(path)), statusOf(await pod.get(path))]).toEqual([MISS, HIT]);
  expect(statusOf(await member())).toBe('Corelane; fwd=miss; detail=cookie');
});

test('a member has one render for each page of a route that depends on cookies, and guests share theirs', async () => {
  const pages = Array.from({ length: 10 }, (_unused, n) => `basket-${n}`);
  const target = (id: string) => `/baskets/${id}${page(id, 'max-age=60', '&header=Vary:Cookie').slice(1)}`;
  const member = (id: string) => pod.get(target(id), { headers: { cookie: 'sid=1' } });
  for (const id of pages) expect(seen(await member(id)).cookie).toBe('sid=1');
  // Three renders in vain show it.
  expect(pages.map((id) => renders(pod, id))).toEqual([2, 2, 2, 1, 1, 1, 1, 1, 1, 1]);
  expect([statusOf(await pod.get(target('basket-9'))), statusOf(await pod.get(target('basket-9')))]).toEqual([
    MISS,
    HIT,
  ]);
  expect(statusOf(await member('basket-9'))).toBe('Corelane; fwd=miss; detail=route');
  expect(renders(pod, 'basket-9')).toBe(3);
});

test('the worker gets headers in the form that nginx compares', async () => {
  // nginx has one cache key for an empty header and a missing one.
  const empty = await pod.get(ownPage('empty', 'max-age=60'), { headers: { 'x-market': '', cookie: 'lang=' } });
  expect(Object.keys(seen(empty))).not.toContain('x-market');
  const path = ownPage('blanks', 'max-age=60', '&header=Vary:Accept-Language,X-Empty');
  for (const language of ['de-DE de;q=0.9', 'de-DE,de;q=0.9']) {
    const answer = await pod.get(path, { headers: { 'accept-language': language, 'x-empty': '' } });
    expect(seen(answer)['accept-language']).toBe('de-DE, de;q=0.9');
    expect(Object.keys(seen(answer))).not.toContain('x-empty');
  }
  expect(statusOf(await pod.get(path, { headers: { 'accept-language': 'de-DE,  de;q=0.9' } }))).toBe(HIT);
});

test.each(['*', 'X-Forwarded-For', 'X-Real-IP', 'X-Request-ID', 'Forwarded'])(
  'a page that depends on %s is for nobody else',
  async (name) => {
    const path = ownPage(`depends-${name.replace(/[^a-zA-Z]/g, '')}`, 'max-age=60', `&header=Vary:${name}`);
    for (const address of ['192.0.2.1', '192.0.2.2']) {
      const answer = await pod.get(path, { headers: { 'x-forwarded-for': address, 'user-agent': address } });
      expect([statusOf(answer), seen(answer)['user-agent']]).toEqual(['Corelane; fwd=miss; detail=vary', address]);
    }
  },
);

test.each([
  ['Authorization', { authorization: 'Bearer x' }, undefined],
  ['no-cache', { 'cache-control': 'no-cache' }, 'no-cache'],
  ['no-store', { 'cache-control': 'max-age=0, no-store' }, 'no-cache'],
  ['Pragma', { pragma: 'no-cache' }, 'no-cache'],
  ['a cookie', { cookie: 'a=b; session=1' }, 'cookie'],
  ['a cookie with a dot', { cookie: 'a=b; connect.sid=1' }, 'cookie'],
  ['any token', { cookie: 'a!$%&*+^`|~=1' }, 'cookie'],
  ['a header', { 'x-preview': '1' }, 'header'],
])('%s: rendered for itself, with all that it has', async (name, headers, why) => {
  const id = `bypass-${name.replace(/[^a-zA-Z]/g, '')}`;
  await pod.get(page(id));
  const answer = await pod.get(page(id), { headers: { ...headers, 'x-other': 'own' } });
  expect([statusOf(answer), seen(answer)['x-other']]).toEqual([why && `Corelane; fwd=bypass; detail=${why}`, 'own']);
  expect(seen(answer)).toMatchObject(headers);
  expect(renders(pod, id)).toBe(2);
  expect(statusOf(await pod.get(page(id)))).toBe(HIT);
});

test('a cookie is named as it is', async () => {
  // None of these is a cookie of `bypass`, so the page that is there will do.
  await pod.get(page('named'));
  for (const name of ['connectXsid', 'xconnect.sid', 'connect.sid2', 'CONNECT.SID', 'aa!$%&*+^`|~'])
    expect([name, statusOf(await pod.get(page('named'), { headers: { cookie: `${name}=1` } }))]).toEqual([name, HIT]);
  expect(renders(pod, 'named')).toBe(1);
});

test('a cookie in the key may have any name, and the worker gets it', async () => {
  const themed = (value: string) => pod.get(page('themed'), { headers: { cookie: `_ga=1; $theme.v2=${value}` } });
  const first = await themed('dark');
  expect([statusOf(first), seen(first).cookie]).toEqual([MISS, '$theme.v2=dark']);
  expect([statusOf(await themed('dark')), statusOf(await themed('light')), statusOf(await themed('light'))]).toEqual([
    HIT,
    MISS,
    HIT,
  ]);
});

test.each(['__prerender_bypass', '__next_preview_data', 'previewToken'])(
  'who looks at drafts gets no page of others, whatever framework says: %s',
  async (name) => {
    const id = `draft-${name.replace(/[^a-zA-Z]/g, '')}`;
    await pod.get(page(id));
    const draft = await pod.get(page(id), { headers: { cookie: `a=b; ${name}=1` } });
    expect([statusOf(draft), seen(draft).cookie]).toEqual(['Corelane; fwd=bypass; detail=cookie', `a=b; ${name}=1`]);
    expect(statusOf(await pod.get(page(id)))).toBe(HIT);
  },
);

test('the preset of a framework has headers of its router in the key', async () => {
  const asked = (headers: Record<string, string>) => largeHeads.get(page('preset'), { headers });
  expect([statusOf(await asked({})), statusOf(await asked({}))]).toEqual([MISS, HIT]);
  for (const name of ['rsc', 'next-router-state-tree', 'next-router-prefetch', 'next-router-segment-prefetch']) {
    const first = await asked({ [name]: '1' });
    expect([statusOf(first), seen(first)[name]]).toEqual([MISS, '1']);
    expect(statusOf(await asked({ [name]: '1' }))).toBe(HIT);
  }
});

test('a page that turns out to be personal is rendered with what makes it so', async () => {
  const headers = {
    ...{ cookie: 'user=1', 'api-key': 'me', 'x-auth-request-email': 'me', 'user-agent': 'Browser' },
    ...{ accept: 'text/html', 'accept-language': 'de', 'x-forwarded-for': '192.0.2.7', 'x-real-ip': '192.0.2.7' },
  };
  const path = ownPage('personal', 'private');
  for (const count of [2, 3]) {
    const answer = await pod.get(path, { headers });
    expect([statusOf(answer), renders(pod, 'personal')]).toEqual(['Corelane; fwd=miss; detail=private', count]);
    // The render is the same as without a cache, with the address of the client.
    expect(seen(answer)).toMatchObject(headers);
  }
});

test('pages of a route that are for nobody else are not rendered twice for long', async () => {
  const ids = Array.from({ length: 10 }, (_unused, n) => `route-${n}`);
  for (const id of ids) {
    const answer = await pod.get(`/orders/${id}?id=${id}`, { headers: { cookie: '_ga=1' } });
    expect([answer.status, seen(answer).cookie]).toEqual([200, '_ga=1']);
  }
  const counts = ids.map((id) => renders(pod, id));
  expect(counts).toEqual([2, 2, 2, 1, 1, 1, 1, 1, 1, 1]);
  const why = async (path: string) => statusOf(await pod.get(path));
  expect(await why('/orders/route-0?id=again')).toBe('Corelane; fwd=miss; detail=route');
  // Another route is not affected.
  expect(await why(`/other/1${page('other')}`)).toBe(MISS);
});

test.each([
  ['a page that is private', 'private', 200],
  ['a page that is not to be stored', 'no-store', 200],
  ["guests' way to the login", 'private', 307],
  ['a redirect', 'no-cache', 302],
  ['a request that was refused', 'no-cache', 403],
  ['a page that is not there', 'max-age=60', 404],
  ['a request that is none', 'max-age=60', 400],
])("%s is nobody else's, whatever has been chosen for its path", async (what, control, status) => {
  const id = `own-${what.replaceAll(/[^a-z]/g, '')}`;
  const path = `/chosen${ownPage(id, control, `&status=${status}&header=Location:/login`)}`;
  // Each case has a host of its own, because routes remember what cannot be cached.
  for (const _ of [1, 2]) expect((await pod.get(path, { headers: { host: id } })).status).toBe(status);
  expect(renders(pod, id)).toBe(3);
});

test('a render that fails is done again with all that its client sent, and not for each page of a route', async () => {
  const pages = Array.from({ length: 5 }, (_unused, n) => `failed-${n}`);
  for (const id of pages) {
    const target = `/failing/${id}${page(id, 'max-age=60', '&status=500').slice(1)}`;
    const answer = await pod.get(target, { headers: { 'user-agent': 'Browser' } });
    expect([answer.status, seen(answer)['user-agent']]).toEqual([500, 'Browser']);
  }
  expect(pages.map((id) => renders(pod, id))).toEqual([2, 2, 2, 1, 1]);
});

test('an error that the application says to caches is kept', async () => {
  const path = page('gone', 's-maxage=60', '&status=410');
  expect(statusOf(await pod.get(path))).toBe(MISS);
  expect([statusOf(await pod.get(path)), renders(pod, 'gone')]).toEqual([HIT, 1]);
});

test('a page that was changed is rendered anew', async () => {
  await pod.get(page('changed'));
  expect((await pod.get(page('changed', 'max-age=60', '&x=1'), { method: 'POST' })).status).toBe(200);
  expect(statusOf(await pod.get(page('changed')))).toBe(MISS);
});

test.each([
  '/shop/named',
  '/shop/named?back=https://other.example/',
  '//shop.example/shop/named',
  'https://shop.example/shop/named#/x://y/',
  'http://shop.example:/shop/named?port=none',
])('what Location names was changed, too: %s', async (location) => {
  const call = { headers: { host: 'shop.example' } };
  const path = `/shop/named${page(`named-${location.length}`).slice(1)}`;
  await pod.get(path, call);
  expect(statusOf(await pod.get(path, call))).toBe(HIT);
  const header = encodeURIComponent(`Location:${location}`);
  await pod.get(`/shop?id=changes&status=303&header=${header}`, { ...call, method: 'POST' });
  expect(statusOf(await pod.get(path, call))).toBe(MISS);
});

test.each([
  ['leads elsewhere', 308, '/kept/1', '/z'],
  ['says where something else is', 201, '/kept/1', '/z'],
  ['leads to a path that begins alike', 303, '/kept/1', '/kep'],
  ['was refused', 403, '/kept/1', '/kept/1'],
  ['leads this method elsewhere', 308, '/kept/1', '/kept/1'],
  ['climbs to its path', 200, '/z', '/z/../kept/1'],
  ['climbs by a slash that it encodes', 200, '/z', '/z/..%2Fkept%2F1'],
  ['has a slash too many', 200, '/z', '//kept/1'],
])('a stranger takes no page away with a POST that %s', async (what, status, location, path) => {
  const kept = `/kept/1${page(`kept-${what.replaceAll(/[^a-z]/g, '')}`).slice(1)}`;
  await pod.get(kept);
  const header = encodeURIComponent(`Location:${location}`);
  expect((await pod.get(`${path}?id=strange&status=${status}&header=${header}`, { method: 'POST' })).status).toBe(
    status,
  );
  expect(statusOf(await pod.get(kept))).toBe(HIT);
});

test('what is below the path of a POST was changed, too, if Location or Content-Location names it', async () => {
  for (const name of ['Location', 'Content-Location']) {
    const kept = `/below/1${page(`below-${name}`).slice(1)}`;
    await pod.get(kept);
    const header = encodeURIComponent(`${name}:/below/1`);
    await pod.get(`/below/?id=made&status=201&header=${header}`, { method: 'POST' });
    expect([name, statusOf(await pod.get(kept))]).toEqual([name, MISS]);
  }
});

test('conditions are answered of what is kept', async () => {
  const path = page('etag', 'max-age=60', '&header=ETag:%22a%22');
  await pod.get(path);
  expect((await pod.get(path, { headers: { 'if-none-match': '"a"' } })).status).toBe(304);
  const both = { 'if-none-match': '"a"', 'if-modified-since': 'Thu, 01 Jan 1970 00:00:00 GMT' };
  expect((await pod.get(path, { headers: both })).status).toBe(304);
  expect((await pod.get(path, { headers: { 'if-none-match': '"b"' } })).status).toBe(200);
  expect(renders(pod, 'etag')).toBe(1);
});

test.each([
  ['If-Match', '"x"'],
  ['If-Unmodified-Since', 'Thu, 01 Jan 1970 00:00:00 GMT'],
  ['Range', 'bytes=10-'],
])('a page is kept though the %s of its first client holds not', async (name, value) => {
  const more = '&size=10&header=Content-Length:10&header=Accept-Ranges:bytes';
  const path = page(`whole-${name}`, 'max-age=60', more);
  const first = await pod.get(path, { headers: { [name]: value } });
  expect([first.status, first.body.length]).toEqual([200, 10]);
  expect(statusOf(await pod.get(path))).toBe(HIT);
  expect(renders(pod, `whole-${name}`)).toBe(1);
});

test('purge: a path, or all', async () => {
  const there = async (path: string) => statusOf(await pod.get(path));
  const [a, b] = [`/purge-a${page('purge-a')}`, `/purge-b${page('purge-b')}`];
  for (const path of [a, b]) await pod.get(path);
  const [one, all] = ['//purge-%61/x/..//?x=1, tag:other', '*'].map((items) => `X-Corelane-Purge: ${items}`);
  for (const where of ['/purge', '/purge-pod']) {
    expect(await ask(pod, 'POST', where, one)).toMatch(/ 200 OK.*done$/s);
    expect([await there(a), await there(b)]).toEqual([MISS, HIT]);
    expect(await ask(pod, 'POST', where, all)).toMatch(/ 200 OK.*done$/s);
    expect([await there(a), await there(b)]).toEqual([MISS, MISS]);
  }
});

test('a change that nginx hears of twice is one, and its pages can be purged again', async () => {
  const path = `/heard-twice${page('heard-twice', 'max-age=60', '&header=Cache-Tag:heard-twice')}`;
  // A little later than any change before it, as far as this pod knows.
  const changed = Date.parse((await pod.get(path)).headers.date ?? '') + 5000;
  const purgeAt = (ms: number) => ask(pod, 'POST', '/purge-pod', `X-Corelane-Purge: ${ms}:tag:heard-twice`);
  const there = async () => statusOf(await pod.get(path));
  await purgeAt(changed);
  expect([await there(), await there()]).toEqual([MISS, HIT]);
  await purgeAt(changed);
  expect(await there()).toBe(HIT);
  await purgeAt(changed + 1);
  expect(await there()).toBe(MISS);
});

test('nobody purges by a URL alone, nor from outside', async () => {
  await pod.get(page('kept'));
  for (const where of ['/purge', '/purge-pod']) {
    expect(await ask(pod, 'POST', where)).toContain(' 403 ');
    expect(await ask(pod, 'GET', where, 'X-Corelane-Purge: *')).toContain(' 405 ');
  }
  expect(await ask(pod, 'POST', '/purge', 'X-Corelane-Purge: /a, kept')).toMatch(
    / 400 .*"kept" is neither a path, nor tag:NAME, nor \*$/s,
  );
  for (const path of ['/purge', '/purge-pod', '/cache/purge']) {
    const call = { method: 'POST', headers: { 'x-corelane-purge': '*' } };
    expect((await pod.get(path, { ...call, port: PORTS.stats })).status).toBeGreaterThanOrEqual(404);
    expect((await pod.get(`${path}?id=not-the-cache`, call)).status).toBe(200);
  }
  expect(statusOf(await pod.get(page('kept')))).toBe(HIT);
});

test('after its end a page is given out while it is rendered anew, and its client does not wait', async () => {
  const path = page('swr', 'max-age=1, stale-while-revalidate=60', '&until=swr-2');
  pod.release('swr-2');
  await pod.get(path);
  const slow = page('swr-slow', 'max-age=1, stale-while-revalidate=60', '&good=9&hold=swr-slow');
  const first = pod.get(slow);
  await pod.begun('swr-slow');
  pod.release('swr-slow');
  await first;
  await seconds(2.2);
  await docker('exec', pod.workers[0] as string, 'rm', '-f', '/events/lines.swr-slow');
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  const stale = await pod.get(slow, { agent });
  expect([stale.status, statusOf(stale)]).toEqual([200, HIT]);
  expect(String(stale.headers.connection)).toContain('close');
  await until('it is rendered anew', () => renders(pod, 'swr-slow') === 2);
  // Of the same client, while that goes on.
  expect((await pod.get(page('swr-next'), { agent })).status).toBe(200);
  expect(statusOf(await pod.get(slow))).toBe(HIT);
  expect(renders(pod, 'swr-slow')).toBe(2);
  pod.release('swr-slow');
  // On a busy machine it may be looked at when its second is over, and be rendered once more.
  await until('the new one is there', async () => Number((await pod.get(slow)).headers.age) < 2);
  agent.destroy();
});

test('where a render fails the page of before is given out, but not if that is forbidden', async () => {
  const [good, strict] = [page('sie', 'max-age=1', '&good=1'), page('strict', 'max-age=1, must-revalidate', '&good=1')];
  for (const path of [good, strict]) await pod.get(path);
  await seconds(2.2);
  const stale = await pod.get(good);
  expect([stale.status, statusOf(stale)]).toEqual([200, HIT]);
  expect(Number(stale.headers.age)).toBeGreaterThan(1);
  expect((await pod.get(strict)).status).toBe(500);
});

test('a stream comes as it is written though it is kept', async () => {
  const path = inSteps('kept-stream', ['write:20000', 'hold:kept-end', 'write:10'], '&header=Cache-Control:max-age=60');
  const stream = await openStream(streams, path);
  await until('the first piece is here', () => stream.bytes() === 20_000);
  streams.release('kept-end');
  expect([await stream.ended, stream.bytes()]).toEqual([true, 20_010]);
  const again = await streams.get(path);
  expect([again.body.length, statusOf(again)]).toEqual([20_010, HIT]);
});

test('what is too large comes whole, and is not kept', async () => {
  const large = inSteps('large', ['writes:300x10000'], '&header=Cache-Control:max-age=60');
  const announced = inSteps('announced', ['writes:300x10000'], '&header=Cache-Control:max-age=60&length=3000000');
  for (const path of [large, announced]) {
    for (const _ of [1, 2]) expect((await streams.get(path)).body.length).toBe(3_000_000);
  }
  expect([renders(streams, 'large'), renders(streams, 'announced')].map((count) => count >= 2)).toEqual([true, true]);
  expect(Number((await docker('exec', streams.nginx, 'du', '-sk', CACHE_MOUNT_PATH)).split('\t')[0])).toBeLessThan(
    1024,
  );
});
