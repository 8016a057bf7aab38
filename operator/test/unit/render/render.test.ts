import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { RenderServiceSpec, RenderServiceSpecInput } from '../../../src/api/spec.ts';
import { renderServiceSpec } from '../../../src/api/validated-spec.ts';
import { FORWARDING } from '../../../src/render/haproxy/entrance.ts';
import { renderHaproxy } from '../../../src/render/haproxy/index.ts';
import { renderConfig } from '../../../src/render/index.ts';
import { renderLive } from '../../../src/render/live.ts';
import { dataPlaneModel } from '../../../src/render/model/index.ts';
import { percent, quoted, whole, word } from '../../../src/render/safe.ts';

const template = { spec: { containers: [{ name: 'worker', image: 'example/app:1' }] } };

function specOf(input: Partial<RenderServiceSpecInput> = {}): RenderServiceSpec {
  return renderServiceSpec.parse({ template, ...input });
}

describe('time limits: whoever is nearer to the worker gives up first, so that the error says who was late', () => {
  test.each<Partial<RenderServiceSpecInput>>([
    {},
    { timeouts: { render: '100ms' }, queue: { timeout: '10m' } },
    { timeouts: { render: '1h' }, drain: { timeout: '2h' } },
    { timeouts: { handler: '100ms' } },
    { timeouts: { handler: '1h' }, replay: 'Never' },
    { timeouts: { handler: '1h' }, replay: 'Always' },
  ])('%j', (input) => {
    const { timeouts, queue } = dataPlaneModel(specOf(input));
    for (const { workerMs, workerAfterWaitingMs } of [timeouts, ...(timeouts.handler ? [timeouts.handler] : [])]) {
      expect(workerMs).toBeLessThan(workerAfterWaitingMs);
      expect(workerAfterWaitingMs).toBeLessThan(timeouts.lineMs);
    }
    expect(timeouts.proxyMs).toBeGreaterThan(queue.timeoutMs + timeouts.lineMs);
    expect(timeouts.haproxyClientMs).toBeGreaterThan(timeouts.clientSendMs);
  });
});

test('what may change something has a limit of its own, unless every request is a render', () => {
  const config = (input: Partial<RenderServiceSpecInput>) => renderConfig(specOf(input));
  const usual = config({});
  expect(usual['haproxy.cfg']).toMatch(
    /\n {2}acl safe_method method GET HEAD OPTIONS\n {2}http-request set-timeout server 301000ms if !safe_method \{ str\(worker-ms\),map_str_int\(\S+\) lt 301000 \}\n {2}http-request set-timeout server 321000ms if !safe_method \{ str\(worker-after-waiting-ms\),map_str_int\(\S+\) lt 321000 \} \{ nbsrv\(workers-up\) eq 0 \}\n/,
  );
  // An event stream too, in both backends that a GET may be in, unless live settings have made that of renders longer.
  const silence =
    /\n {2}http-response set-timeout server 301000ms if \{ res\.hdr\(Content-Type\) -m beg -i text\/event-stream \} \{ str\(worker-ms\),map_str_int\(\S+\) lt 301000 \}\n/g;
  expect(usual['haproxy.cfg'].match(silence)).toHaveLength(usual['haproxy.cfg'].split('acl safe_method ').length - 1);
  // nginx waits for whichever is the longest.
  expect(usual['nginx.conf']).toContain('\n  proxy_read_timeout 351000ms;\n');
  const pure = config({ replay: 'Always' });
  expect(pure['haproxy.cfg']).not.toMatch(/safe_method|text\/event-stream/);
  expect(pure['nginx.conf']).toContain('\n  proxy_read_timeout 111000ms;\n');
});

test('an event stream that comes by way of the cache is ended by the stage of its worker', () => {
  const config = renderConfig(specOf({ cache: { enabled: true } }))['haproxy.cfg'];
  const lasts = 'http-response set-timeout server 326000ms if { res.hdr(Content-Type) -m beg -i text/event-stream }\n';
  expect(config.split(lasts)).toHaveLength(1 + ['herds', 'unherded', 'fills'].length);
});

test('a mark for the own site needs guarded workers only, and answers of its places count as answers of the URL', () => {
  const config = renderConfig(specOf())['haproxy.cfg'];
  const section = (name: string) => config.split(`\n${name}\n`)[1]?.split('\n\n')[0] ?? '';
  // A URL without an answer gets a new connection, and its first visitors wait for their own site as all others do.
  expect(section('backend workers')).toMatch(/set-header X-Corelane-Own-Site [\s\S]*var\(txn\.fresh\)/);
  // A request has each counter once: what `front` has taken does nothing in the backend behind it.
  const counters = (name: string) => section(name).match(/(?<= track-)sc\d/g);
  expect([counters('frontend front'), counters('backend own-site-1')]).toEqual([['sc1', 'sc2'], ['sc0']]);
  expect(section('backend own-site-1')).toMatch(/ track-sc0 var\(txn\.url\) table urls [\s\S]* sc-inc-gpc0\(0\) /);
});

test('what renders send to their own site never waits behind renders, and has two thirds of the requests of nginx', () => {
  for (const queue of [{}, { maxLength: 0 }]) {
    const { 'haproxy.cfg': config, 'nginx.conf': nginx } = renderConfig(specOf({ queue }));
    const requests = Number(/ corelane_requests (\d+);/.exec(nginx)?.[1]);
    const [, max] =
      / X-Corelane-Error queue-full .* if own_site .*\{ var\(txn\.own_waiting\) -m int ge (\d+) \}/.exec(config) ?? [];
    expect(Number(max)).toBe(Math.floor((2 / 3) * requests));
    // Whoever has a free place in its own pool does not wait, however many do so for the other one.
    for (const pool of ['own-site-1', 'own-site-2'])
      expect(config).toContain(` { var(txn.own_site) -m str ${pool} } { be_conn_free(${pool}) le 0 } { var(`);
    expect(config).toContain('set-var(txn.own_waiting) queue(own-site-2),add(txn.own_waiting) if own_site\n');
    // Where a slot is free, or no worker is up.
    expect(config.match(/unset-var\(txn\.own_site\) if .*/g)).toEqual([
      'unset-var(txn.own_site) if !no_slot',
      'unset-var(txn.own_site) if { nbsrv(workers-up) eq 0 }',
      ...(config.includes('acl elsewhere') ? ['unset-var(txn.own_site) if elsewhere'] : []),
    ]);
  }
});

test('each backend of workers bounds the head of a response', () => {
  const classes = [{ name: 'api', match: [{ pathPrefix: '/api/' }] }];
  const backends = renderConfig(specOf({ classes }))['haproxy.cfg'].split('\nbackend ').slice(1);
  const ofWorkers = backends
    .map((text) => text.split('\n\n')[0] ?? '')
    .filter((text) => /\n {2}server worker-0 127\.0\.0\.1:9002 (?!track )/.test(text));
  expect(ofWorkers.map((text) => text.split('\n')[0])).toEqual(['workers', 'class-api', 'own-site-1', 'own-site-2']);
  for (const text of ofWorkers)
    expect(text).toContain(' X-Corelane-Error bad-response if { res.hdrs,length gt 65536 }');
});

test('what is kept for a request lasts as long as a handler may take: a mark, and that its client has gone', () => {
  const config = (input: Partial<RenderServiceSpecInput>) => renderConfig(specOf(input))['haproxy.cfg'];
  const said = (input: Partial<RenderServiceSpecInput>) => [
    / life-s=(\d+)\n/.exec(config(input))?.[1],
    /\nbackend clients\n {2}stick-table .* expire (\w+) /.exec(config(input))?.[1],
  ];
  expect(said({})).toEqual(['301', '301000ms']);
  expect(said({ timeouts: { render: '10m' } })).toEqual(['601', '601000ms']);
  // Each request is a render.
  expect(said({ timeouts: { render: '1m' }, replay: 'Always' })).toEqual(['61', '61000ms']);
});

test('response buffers satisfy nginx however small the setting is', () => {
  for (const maxHeaderSize of ['16Ki', '20Ki', '33Ki', '64Ki', '127Ki', '128Ki']) {
    const buffering = { maxHeaderSize, response: { memory: '8Ki' } };
    const { heads, response } = dataPlaneModel(specOf({ buffering, sidecar: { haproxy: { memoryLimit: '512Mi' } } }));
    expect(response.busyBytes).toBeGreaterThanOrEqual(Math.max(heads.bufferBytes, response.bufferBytes));
    expect(response.busyBytes).toBeLessThanOrEqual((response.buffers - 1) * response.bufferBytes);
  }
});

test.each([undefined, 'Next', 'Nuxt', 'SvelteKit', 'ReactRouter', 'Astro', 'Angular'] as const)(
  'who looks at drafts gets no page of others: framework %s',
  (framework) => {
    const cache = { enabled: true, bypass: { cookies: ['session', 'previewToken'] } };
    const { cache: model } = dataPlaneModel(specOf({ cache, ...(framework && { framework }) }));
    expect(model?.bypass.cookies).toEqual(['session', 'previewToken', '__prerender_bypass', '__next_preview_data']);
  },
);

/** All characters of a token (RFC 6265) but ' and #. */
const ANY_COOKIE = 'aZ0!$%&*+-.^_`|~';

test('the name of a cookie is matched as it is, whatever is in it', () => {
  const cache = { enabled: true, bypass: { cookies: [ANY_COOKIE] }, key: { cookies: [ANY_COOKIE] } };
  const classes = [{ name: 'a', match: [{ cookie: ANY_COOKIE }] }];
  const config = renderConfig(specOf({ cache, priority: { classes } }))['nginx.conf'];
  const patterns = [...config.matchAll(/"~(\(\?:\^\|; \*\).*aZ0.*)" (?:"|1;)/g)];
  const own = patterns.map(([, text = '']) => new RegExp(text));
  expect(own.length).toBeGreaterThanOrEqual(3);
  for (const pattern of own) {
    expect(`a=b; ${ANY_COOKIE}=1`).toMatch(pattern);
    // None of its characters is another one.
    for (const at of ANY_COOKIE.split('').keys())
      expect(`${ANY_COOKIE.slice(0, at)}x${ANY_COOKIE.slice(at + 1)}=1`).not.toMatch(pattern);
  }
});

test('with the most and longest names a word of nginx.conf stays below its 4,096 bytes', () => {
  const names = Array.from({ length: 16 }, (_unused, n) => `${'$'.repeat(63)}${'.*+|!%&^_`~-0aZbY'[n]}`);
  const cache = { enabled: true, bypass: { cookies: names }, key: { cookies: names } };
  const config = renderConfig(specOf({ cache }));
  const words = config['nginx.conf'].match(/"[^"\n]*"/g) ?? [];
  expect(Math.max(...words.map(({ length }) => length))).toBeLessThan(4_096);
});

test('each server has one location that looks for a page, with one list of headers', () => {
  const spec = specOf({ cache: { enabled: true, shared: 'Peers' }, pooling: { enabled: true } });
  const [, ...servers] = renderConfig(spec)['nginx.conf'].split(/^ {2}server \{$/m);
  const lists = servers.map((server) => server.match(/proxy_set_header X-Corelane-Key /g)?.length ?? 0);
  expect(lists.filter((count) => count > 0)).toEqual([1, 1]);
});

test.each([
  ['Auto', 'auto', true],
  ['Always', 'always', true],
  ['Never', 'never', false],
] as const)('streaming: %s', (streaming, mode, isAtOnce) => {
  const config = renderConfig(specOf({ streaming }));
  expect(config['nginx.conf']).toContain(`\n  corelane_streaming ${mode};\n`);
  expect(config['haproxy.cfg'].includes('\n  option http-no-delay\n')).toBe(isAtOnce);
});

test.each<[object | undefined, string]>([
  [undefined, '    default $corelane_parent;\n  }'],
  [{}, '"" "00-$corelane_new_trace-01";'],
  [{ samplingPercent: 0 }, '"" "00-$corelane_new_trace-00";'],
  [{ samplingPercent: 12.35 }, '\n    12.35% 01;\n    * 00;\n'],
  [{ samplingPercent: 0.01 }, '\n    0.01% 01;\n    * 00;\n'],
])('tracing: %j', (tracing, expected) => {
  const config = renderConfig(specOf({ tracing }))['nginx.conf'];
  expect(config).toContain(expected);
  expect(config.includes('split_clients')).toBe(expected.includes('%'));
});

test.each<[accessLog: object, expected: string[], never: string[]]>([
  [
    {},
    ['corelane_log_query names;', 'corelane_log_client full;', 'flush=100ms;'],
    ['samplingPercent', 'split_clients', 'flush=100ms if='],
  ],
  [
    { query: 'Full', clientAddress: 'Masked' },
    ['corelane_log_query full;', 'corelane_log_client masked;'],
    ['split_clients'],
  ],
  [
    { samplingPercent: 12.35 },
    [
      '\n    12.35% 1;\n    * 0;\n',
      'default 12.35;',
      '"samplingPercent":$corelane_log_percent,',
      'if=$corelane_logged;',
    ],
    ['flush=100ms;'],
  ],
  [
    { samplingPercent: 0 },
    ['default 0;', 'map "|$corelane_log_percent" $corelane_logged {', 'if=$corelane_logged;'],
    ['split_clients', 'flush=100ms;'],
  ],
  [
    { enabled: false, query: 'None', samplingPercent: 10 },
    ['\n  access_log off;\n', 'corelane_log_query none;', '/late-assets corelane_late_asset'],
    ['/dev/stdout', 'log_format corelane ', 'split_clients'],
  ],
])('accessLog: %j', (accessLog, expected, never) => {
  // Locations with a log of their own say both.
  const config = renderConfig(specOf({ accessLog, assets: [{ path: '/a/', from: 'a' }], cache: { enabled: true } }));
  for (const text of expected) expect(config['nginx.conf']).toContain(text);
  for (const text of never) expect(config['nginx.conf']).not.toContain(text);
});

test('HAProxy asks the supervisors, unless there are none by choice', () => {
  const asked = renderHaproxy(dataPlaneModel(specOf({ workersPerPod: 2 })));
  expect(asked).toContain('server worker-0 127.0.0.1:9002 agent-port 9102 ');
  expect(asked).toContain('server worker-1 127.0.0.1:9003 agent-port 9103 ');
  const without = renderHaproxy(dataPlaneModel(specOf({ workersPerPod: 1, runtime: { instrument: false } })));
  expect(without).toContain('server worker-0 127.0.0.1:9002\n');
  expect(without).not.toContain('agent');
});

test('the waiting room inherits no check: it would travel through it into a worker', () => {
  const config = renderHaproxy(dataPlaneModel(specOf()));
  expect(config.indexOf('server waiting-room')).toBeLessThan(config.indexOf('\n  default-server'));
});

describe('config is data (I7)', () => {
  const hostile = [
    '/a\nb',
    '/a;b',
    '/a{b',
    '/a}b',
    '/a"b',
    "/a'b",
    '/a\0b',
    '/a b',
    '/a$b',
    '/a#b',
    '/a\\b',
    '/a%b',
    '',
  ];

  test.each(hostile)('a path %j that slipped through admission is refused', (path) => {
    const spec = specOf();
    expect(() => renderConfig({ ...spec, ping: { path } })).toThrow(/ping.path must not appear/);
  });

  test.each(['first\n  server evil 10.0.0.1:80', 'first;'])('an algorithm %j is refused', (balance) => {
    expect(() => renderConfig({ ...specOf(), balance: balance as 'first' })).toThrow(RangeError);
  });

  test.each(['1s\n', '1s;', '', '-1s', 'NaN'])('a duration %j is refused', (timeout) => {
    const spec = specOf();
    expect(() => renderConfig({ ...spec, queue: { ...spec.queue, timeout } })).toThrow(RangeError);
  });

  test.each([Number.NaN, -1, 0.5, Number.POSITIVE_INFINITY, '1;' as unknown as number])(
    'a number %p is refused',
    (value) => {
      expect(() => whole(value, 'value')).toThrow(RangeError);
      expect(() => renderLive({ ...specOf(), concurrency: value })).toThrow(RangeError);
    },
  );

  test.each([Number.NaN, -1, 0, 100, 0.001, 1e-7, '1% 00; x' as unknown as number])('no percentage: %p', (value) =>
    expect(() => percent(value, 'value')).toThrow(RangeError),
  );

  const ASSET = { path: '/a/', from: 'a', immutable: true };
  test.each<[string, object]>([
    ['path', { path: '/a/ { } location /b/' }],
    ['mutable', { mutable: ['/a/b; return 200'] }],
    ['headers', { headers: { 'X-A': '"; return 200 "' } }],
    ['headers', { headers: { 'X-A': '$http_cookie' } }],
    ['headers', { headers: { 'X-A "b";': 'c' } }],
  ])('%s of assets that slipped through admission is refused: %j', (field, fields) => {
    const spec = specOf({ assets: [ASSET] });
    const assets = spec.assets?.map((asset) => ({ ...asset, ...fields })) as typeof spec.assets;
    expect(() => renderConfig({ ...spec, assets })).toThrow(`assets.${field} must not appear in a configuration file`);
  });

  test.each(['a"b', 'a\\b', 'a$b', 'a\nb', 'a;b', 'a{b', ''])('%j is no quoted word', (text) =>
    expect(() => quoted(text, 'value')).toThrow(RangeError),
  );

  test('ordinary words pass', () => expect(word('/a/b.c~d_e-1', 'path')).toBe('/a/b.c~d_e-1'));
});

test('names.c has every header that HAProxy removes from untrusted clients', () => {
  const source = readFileSync(fileURLToPath(new URL('../../../../sidecar/nginx/names.c', import.meta.url)), 'utf8');
  const [, list = ''] = /families\[\] = \{([^}]+)\}/.exec(source) ?? [];
  const families = [...list.matchAll(/"([^"]+)"/g)].map(([, name]) => name);
  expect(families).toEqual(expect.arrayContaining(FORWARDING.map((pattern) => pattern.replace(/\(.*/, ''))));
});
