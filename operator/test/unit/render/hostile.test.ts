/**
 * Configuration is data (I7), for 1,000 random and malicious resources: each is refused, or its configuration has
 * exactly the directives of a harmless resource of the same shape. The sidecar tests feed them to the real parsers.
 * `HOSTILE_SEED=n` tries others.
 */
import { parseRenderService } from '../../../src/api/resource.ts';
import type { RenderServiceSpec } from '../../../src/api/spec.ts';
import { type DataPlaneConfig, renderConfig } from '../../../src/render/index.ts';
import { ruleOf } from '../../../src/render/model/cache.ts';
import { networks } from '../../../src/render/model/networks.ts';
import { ODD_PATH } from '../../../src/render/nginx/classes.ts';
import { haproxyDirectives, nginxDirectives, structuralDifference } from '../../support/directives.ts';
import { HOSTILE_COUNT, HOSTILE_SEED, harmless, hostileResource, strings } from '../../support/hostile.ts';

/** What stands behind `basePath`, by the presets of frameworks: URLs of files, and of requests of a class. */
const FILES_BELOW = ['_next/static/', '_nuxt/', '_nuxt/builds/latest.json', '_app/immutable/', 'assets/', '_astro/'];
const CLASSES_BELOW = ['_next/data', '_ipx', '_server-islands'];
const CLASSES_AT = ['_next/image', '_next/image/', '_image', '_image/'];

/** A value as it stands in one quoted word of a map, of which it is a part, or in an argument of HAProxy's. */
function derived(value: string): string[] {
  const literal = value.replaceAll('.', '[.]');
  const cookie = value.replaceAll(/[$*+.|]/g, '[$&]').replaceAll('^', '\\^');
  return [
    value,
    `"~^${literal.replace(/\/$/, '')}(?:/|$)"`,
    `"~*^${literal}$"`,
    `"~*${literal}"`,
    `"~(?:^|; *)(?:${cookie})="`,
    `$http_${value.toLowerCase().replaceAll('-', '_')}`,
    `refused-${value}`,
    value.replace(/\/?$/, '/'),
    ruleOf(value),
    `"corelane-class ${value}\\n"`,
    `"~^${ODD_PATH}${literal.replace(/\/$/, '')}(?:[/?]|$)"`,
    `"~^${ODD_PATH}${literal}(?:[?]|$)"`,
    `"~^${ODD_PATH}[^?]*${literal}(?:[?]|$)"`,
    ...FILES_BELOW.map((path) => `${value}/${path}`),
    ...CLASSES_BELOW.map((path) => `"~^${ODD_PATH}${literal}/${path}(?:[/?]|$)"`),
    ...CLASSES_AT.map((path) => `"~^${ODD_PATH}${literal}/${path}(?:[?]|$)"`),
    ...['class-', 'full-', 'queue(class-', 'be_conn_free(class-'].map(
      (name) => `${name}${value}${name.includes('(') ? ')' : ''}`,
    ),
  ];
}

/** A token, which names of cookies are. */
const PLAIN_NAME = /^[\w!#$%&'*+.^`|~-]+$/;

/**
 * The cache's key is one word made of all its names, and so is what its cookies are matched by, so these stay: exactly
 * that word is expected. Where one is no token it is harmless like all others, and would be noticed.
 */
function withKeyOf({ cache: { bypass, key } }: RenderServiceSpec, other: RenderServiceSpec): RenderServiceSpec {
  const names = [...key.headers, ...key.cookies, ...key.query.names, ...bypass.cookies];
  if (!names.every((name) => PLAIN_NAME.test(name))) return other;
  const { cookies } = bypass;
  return { ...other, cache: { ...other.cache, key, bypass: { ...other.cache.bypass, cookies } } };
}

/** Ranges of addresses are written as networks, each once: as many harmless ones are expected. */
function withNetworksOf({ forwarded }: RenderServiceSpec, other: RenderServiceSpec): RenderServiceSpec {
  const trust = networks(forwarded.trust).map((_network, index) => `x${index}`);
  return { ...other, forwarded: { ...other.forwarded, trust } };
}

/** What a value has added to the configuration, or undefined. */
function injected(spec: RenderServiceSpec, config: DataPlaneConfig): string | undefined {
  const values = new Set([...strings(spec), ...networks(spec.forwarded.trust)].flatMap(derived));
  const expected = renderConfig(withNetworksOf(spec, withKeyOf(spec, harmless(spec))));
  return (
    structuralDifference(nginxDirectives(config['nginx.conf']), nginxDirectives(expected['nginx.conf']), values) ??
    structuralDifference(haproxyDirectives(config['haproxy.cfg']), haproxyDirectives(expected['haproxy.cfg']), values)
  );
}

const resources = Array.from({ length: HOSTILE_COUNT }, (_unused, index) => hostileResource(HOSTILE_SEED, index));

test(`no value adds a directive, seed ${HOSTILE_SEED}`, () => {
  const found = resources.flatMap((resource, index) => {
    const parsed = parseRenderService(resource);
    if (!parsed.ok) return [];
    const { spec } = parsed.renderService;
    const why = injected(spec, renderConfig(spec));
    return why ? [`resource ${index}: ${why}`] : [];
  });
  expect(found).toEqual([]);
});

test('the resources try something: many are refused, many are accepted, both also with hostile text', () => {
  const accepted = resources.filter((resource) => parseRenderService(resource).ok);
  const isHostile = (resource: unknown) => strings(resource).some((text) => /[\n\r\0;{}"'\\]/.test(text));
  expect(accepted.length).toBeGreaterThan(HOSTILE_COUNT / 5);
  expect(HOSTILE_COUNT - accepted.length).toBeGreaterThan(HOSTILE_COUNT / 5);
  expect(accepted.filter(isHostile).length).toBeGreaterThan(HOSTILE_COUNT / 100);
  expect(accepted.filter(({ spec }) => (spec as { assets?: object[] }).assets?.length)).not.toEqual([]);
  const refusedFields = resources.flatMap((resource) => {
    const parsed = parseRenderService(resource);
    return parsed.ok ? [] : parsed.errors.map(({ path }) => path);
  });
  for (const field of ['ping.path', 'queue.timeout', 'balance', 'concurrency', 'buffering.request.maxSize', 'replay'])
    expect(refusedFields).toContain(`spec.${field}`);
});

describe('a renderer that lets a value through is noticed', () => {
  const parsed = parseRenderService({ ...hostileResource(1, 0), spec: { template: template() } });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  const { spec } = parsed.renderService;

  function template() {
    return { spec: { containers: [{ name: 'worker', image: 'example/app:1' }] } };
  }

  test.each(['/p {}\nlocation /q', '/p{ return 200; } location = /q', '/p;', '/p "', '/p /q', '/p #', '/p\\'])(
    'nginx, %j',
    (path) => {
      const config = renderConfig(spec);
      config['nginx.conf'] = config['nginx.conf'].replace('location = /ping', () => `location = ${path}`);
      expect(injected({ ...spec, ping: { path } }, config)).toMatch(/ stands where /);
    },
  );

  test.each(['first\n  server evil 10.0.0.1:80', 'first #', "first '", 'first evil'])('HAProxy, %j', (value) => {
    const config = renderConfig(spec);
    config['haproxy.cfg'] = config['haproxy.cfg'].replace('balance roundrobin', () => `balance ${value}`);
    expect(injected({ ...spec, balance: 'first' }, config)).toMatch(/ stands where /);
  });

  test('a value that is a part of a word', () => {
    const config = renderConfig(spec);
    config['nginx.conf'] = config['nginx.conf'].replace('pid /tmp/nginx.pid', 'pid /tmp/evil.pid');
    expect(injected({ ...spec, ping: { path: 'evil' } }, config)).toMatch(/ stands where /);
  });
});

test.each([
  [{ volumes: {} }, 'volumes'],
  [{ containers: [null] }, 'containers[0]'],
  [{ containers: [] }, 'containers'],
  [{ containers: [{ name: 'worker', ports: 'http' }] }, 'containers[0].ports'],
  [{ containers: [{ name: 1 }] }, 'containers[0].name'],
  [{ initContainers: 'none' }, 'initContainers'],
])('an API server that lets pod template %j through does not make the operator fail', (podSpec, path) => {
  const template = { spec: { containers: [{ name: 'worker' }], ...podSpec } };
  expect(parseRenderService({ ...hostileResource(1, 0), spec: { template } })).toMatchObject({
    ok: false,
    errors: expect.arrayContaining([expect.objectContaining({ path: `spec.template.spec.${path}` })]),
  });
});
