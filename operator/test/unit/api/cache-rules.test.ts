/** What is refused of `cache`, where the refusal says what to do, and what is not. */
import { renderServiceSpec } from '../../../src/api/validated-spec.ts';

const template = { spec: { containers: [{ name: 'worker', image: 'example/app:1' }] } };

function refusal(cache: object, spec: object = {}) {
  const { error } = renderServiceSpec.safeParse({ template, cache: { enabled: true, ...cache }, ...spec });
  const [first] = error?.issues ?? [];
  return first && `${first.path.join('.')}: ${first.message}`;
}

const ttl = (...pairs: [string, string][]) => ({ ttl: pairs.map(([pathPrefix, value]) => ({ pathPrefix, value })) });

test.each([
  ['1ms', false],
  ['999ms', false],
  ['0ms', true],
  ['1000ms', true],
  ['1001ms', true],
])('a time of %s: %s', (value, fits) => {
  const refused = [ttl(['/', value]), { staleIfError: value }, { staleWhileRevalidate: value }].map((one) =>
    refusal(one),
  );
  const why = expect.stringMatching(/^cache\.(ttl|stale.*): .*must be 0s or at least 1s/);
  expect(refused).toEqual(Array(3).fill(fits ? undefined : why));
});

test.each([
  ['/shop', '/shop', false],
  ['/shop', '/shop/', false],
  ['/shop', '/shop/a', true],
  ['/shop', '/shops', true],
  ['/', '/shop', true],
])('times for %s and for %s: %s', (one, other, fits) => {
  const refused = refusal(ttl([one, '1s'], [other, '2s']));
  if (fits) expect(refused).toBeUndefined();
  else expect(refused).toMatch(/^cache\.ttl: each pathPrefix must be there once only/);
});

test.each([
  ['/shop/', '/shop', true],
  ['/shop', '/shop/a', true],
  ['/shop/a', '/shop', true],
  ['/shop', '/', true],
  ['/shop', '/shops', false],
  ['/shop', '/a', false],
])('a cache for %s with a time for %s: %s', (path, prefix, fits) => {
  const refused = refusal({ paths: ['/news', path], ...ttl([prefix, '1s']) });
  if (fits) expect(refused).toBeUndefined();
  else expect(refused).toMatch(/^cache\.ttl: .*add it to cache\.paths/);
});

test('names of parameters want a mode that looks at them', () => {
  const names = ['page'];
  expect(refusal({ key: { query: { names } } })).toMatch(/^cache\.key\.query: .*set mode to Only or Except/);
  for (const mode of ['Only', 'Except']) expect(refusal({ key: { query: { mode, names } } })).toBeUndefined();
});

test.each(['connect.sid', '__Secure-next-auth.session-token', 'a!$%&*+-.^_`|~', 'a'.repeat(64)])(
  'a cookie may be called %s',
  (name) => {
    for (const one of [{ bypass: { cookies: [name] } }, { key: { cookies: [name] } }])
      expect(refusal(one)).toBeUndefined();
  },
);

test.each(['a=1', 'a;b', 'a b', 'a"b', 'a\\b', 'a{b', 'a\n', 'ä', ''])('no cookie is called %j', (name) => {
  for (const one of [{ bypass: { cookies: [name] } }, { key: { cookies: [name] } }])
    expect(refusal(one)).toMatch(/^cache\.(bypass|key)\.cookies\.0: /);
});

test('what is off needs no memory', () => {
  const sidecar = { nginx: { memoryLimit: '128Mi' } };
  expect(refusal({}, { sidecar })).toMatch(/^sidecar\.nginx\.memoryLimit: must be at least 160Mi/);
  expect(refusal({ enabled: false }, { sidecar })).toBeUndefined();
});
