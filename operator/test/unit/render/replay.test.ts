/** Which requests a second worker must not render once a worker has begun them, and where HAProxy looks at that. */
import type { RenderServiceSpecInput } from '../../../src/api/spec.ts';
import { renderServiceSpec } from '../../../src/api/validated-spec.ts';
import { renderHaproxy } from '../../../src/render/haproxy/index.ts';
import { dataPlaneModel } from '../../../src/render/model/index.ts';

const template = { spec: { containers: [{ name: 'worker', image: 'example/app:1' }] } };
const ONCE = 'http-request set-var(txn.only_once) bool(true)';

/** Lines of a frontend of HAProxy's configuration. */
function frontend(name: string, input: Partial<RenderServiceSpecInput> = {}): string[] {
  const config = renderHaproxy(dataPlaneModel(renderServiceSpec.parse({ template, ...input })));
  const [, lines = ''] = new RegExp(`\\nfrontend ${name}\\n((?: +.*\\n)+)`).exec(config) ?? [];
  return lines.split('\n').map((line) => line.trim());
}

/** The acl as HAProxy evaluates it, for a target of a request. */
function isExcepted(target: string, replayExcept: string[] = []): boolean {
  const [path = ''] = target.split('?');
  const seen = `${decodeURIComponent(path).replaceAll(/\/\/+/g, '/')}/`.toLowerCase();
  return frontend('front', { replayExcept }).some((line) => {
    const [, how, words = ''] = /^acl excepted var\(txn\.path\) -m (beg|sub) -i (.+)$/.exec(line) ?? [];
    return words.split(' ').some((word) => {
      if (how === 'beg') return seen.startsWith(word.toLowerCase());
      return how === 'sub' && seen.includes(word.toLowerCase());
    });
  });
}

test.each([
  ...['/api/auth/callback/github?code=1&state=2', '/auth/callback', '/auth/confirm?token_hash=1', '/auth/github'],
  ...['/api/auth/magic-link/verify?token=1', '/shop/api/auth/callback/google', '/auth/google/callback', '/callback'],
  ...['/sign-in/sso-callback', '/api/auth/kinde_callback', '/oauth2/redirect/google', '/api/oauth/google?code=1'],
  ...['/account/authorize?code=1', '/en-us/account/authorize'],
  ...['/verify/4711', '/account/verify-email', '/en/confirm-email/1', '/newsletter/confirm', '/login/magic-link'],
  ...['/signin-oidc?code=1', '/authenticate?token=1', '/login/magic?token=1', '/reset-password/4711'],
  ...['/accounts/password-reset/4711', '/account/activate/4711', '/newsletter/unsubscribe/4711'],
  ...['/login/oauth2/code/google?code=1', '/api/login/oauth2/code/google?code=1', '/Signin-OIDC/'],
  ...['/API/Auth/Callback/', '//auth//callback', '/api%2Fauth/%63allback', '/auth/', '/oauth'],
])('a sign-in: %s', (target) => expect(isExcepted(target)).toBe(true));

test.each([
  ...['/', '/authors/1', '/author/auth-guide', '/docs/auth', '/api/authors', '/products?next=/auth/callback'],
  ...['/callbacks', '/blog/callback-hell', '/verified', '/confirmation/1', '/oauth2-proxy', '/order/place'],
  ...[
    '/docs/oauth',
    '/docs/oauth2/scopes',
    '/authorized',
    '/docs/login/oauth2',
    '/cards/magic',
    '/magic/boosters',
    '/login',
  ],
  ...['/activated', '/authenticated', '/unsubscribed', '/signin-oidc-guide', '/blog/reset-password-safely'],
])('no sign-in: %s', (target) => expect(isExcepted(target)).toBe(false));

test.each<[target: string, isMeant: boolean]>([
  ['/order/place', true],
  ['/order/place/', true],
  ['/Order//PLACE/7?x=1', true],
  ['/order/placed', false],
  ['/shop/order/place', false],
])('below a path of replayExcept: %s %s', (target, isMeant) => {
  for (const path of ['/order/place', '/order/place/', '/Order/Place'])
    expect(isExcepted(target, ['/a', path])).toBe(isMeant);
});

test('"/" is every path', () => expect(isExcepted('/products/1', ['/'])).toBe(true));

test.each<[RenderServiceSpecInput['replay'], by: string[]]>([
  ['Safe', [`${ONCE} unless { method GET HEAD OPTIONS }`, `${ONCE} if excepted`]],
  ['Always', [`${ONCE} if excepted`]],
  ['Never', [ONCE]],
])('replay: %s excepts them, for clients and for peers', (replay, by) => {
  for (const name of ['front', 'peers'])
    expect(frontend(name, { replay }).filter((line) => line.startsWith(ONCE))).toEqual(by);
});

test('the exceptions hold without the worker runtime', () => {
  const lines = frontend('front', { runtime: { instrument: false } });
  expect(lines).toContain(`${ONCE} if excepted`);
  expect(lines.filter((line) => line.includes('worker-died'))).toEqual([
    expect.stringMatching(/ if \{ so_name replay \} \{ var\(txn\.only_once\) -m bool \} /),
  ]);
});

test('the cache is not for them', () => {
  const lines = frontend('cache', { cache: { enabled: true } });
  const passes = lines.findIndex((line) => / hdr X-Corelane-Why replay if excepted$/.test(line));
  expect(passes).toBeGreaterThan(-1);
  expect(passes).toBeLessThan(lines.indexOf('http-request lua.join_herd'));
});

test('classes that are not replayed, and those alone', () => {
  const match = [{ pathPrefix: '/api' }];
  const classes = [
    { name: 'a', match, replay: false },
    { name: 'b', match },
    { name: 'c', match, replay: false },
  ];
  const once = frontend('front', { classes }).filter((line) => line.startsWith(`${ONCE} if { var(txn.served_as) `));
  expect(once).toEqual([`${ONCE} if { var(txn.served_as) -m str a c }`]);
  expect(frontend('front', { classes: [{ name: 'b', match }] }).join('\n')).not.toContain('var(txn.served_as) -m str');
});

test.each([
  ['order', /^must be a path such as \/shop: it begins with "\/"/],
  ['https://shop.example/order', /^must be a path such as /],
  ['/order/*', /^must be a path such as /],
  ['/order?id=1', /^must be a path such as /],
  ['/order\n  acl excepted always_true', /^must be a path such as /],
])('%j is refused', (path, message) => {
  const { error } = renderServiceSpec.safeParse({ template, replayExcept: ['/a', path] });
  expect(error?.issues[0]).toMatchObject({ path: ['replayExcept', 1], message: expect.stringMatching(message) });
});
