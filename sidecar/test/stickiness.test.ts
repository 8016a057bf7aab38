/** Requests that name a revision, or whose page was of one, stay at it while it lives. */
import { PATIENT_PEERS } from '../../e2e/harness/engine/haproxy-modules.ts';
import { type Pod, until } from '../../e2e/harness/engine/pod.ts';
import { calling, NEXT, NOW, OLD, Revisions } from '../../e2e/harness/engine/revisions.ts';
import { NAVIGATION } from './canary.ts';
import { ALWAYS, cookie, SPEC, toldRevision } from './stickiness.ts';

describe('by id', () => {
  let all: Revisions;
  let pod: Pod;
  beforeAll(async () => {
    all = await Revisions.start(
      { ...SPEC, pods: PATIENT_PEERS },
      [OLD, calling('yesterday')],
      [NOW, calling('today')],
      NEXT,
    );
    pod = all.of(NOW);
  });
  afterAll(() => all?.stop());

  const at = async (path: string, headers: Record<string, string> = {}, call = {}) =>
    all.renderedBy(await pod.get(path, { headers, ...call }));

  test('header or query, any method, pages and data; in every pod; without an annotation the revision is the id', async () => {
    for (const one of all.pods) {
      pod = one;
      expect(await at('/', { 'x-deployment-id': 'yesterday' })).toBe('yesterday');
      expect(await at('/?dpl=yesterday')).toBe('yesterday');
      expect(await at('/?a=b&dpl=%79esterday', NAVIGATION)).toBe('yesterday');
      expect(await at('/', { 'x-deployment-id': NEXT }, { method: 'POST', body: 'x' })).toBe(NEXT);
      expect(await at('/', { 'x-deployment-id': 'today' }, { method: 'PUT', body: 'x' })).toBe('today');
      // The header comes first.
      expect(await at('/?dpl=today', { 'x-deployment-id': 'yesterday' })).toBe('yesterday');
    }
    pod = all.of(NOW);
  });

  test('the application sees what its client has sent, and knows what it is called', async () => {
    const answer = await pod.get('/?dpl=yesterday', { headers: { 'x-deployment-id': 'yesterday' } });
    expect(JSON.parse(answer.body)).toMatchObject({
      deployment: 'yesterday',
      headers: { 'x-deployment-id': 'yesterday' },
    });
    expect(toldRevision(answer)).toBeUndefined();
  });

  test.each([
    ['nobody', { 'x-deployment-id': 'tomorrow' }],
    ['another case', { 'x-deployment-id': 'Yesterday' }],
    ['a part', { 'x-deployment-id': 'yester' }],
    ['more', { 'x-deployment-id': 'yesterday,today' }],
    ['too much', { 'x-deployment-id': 'y'.repeat(8_000) }],
    ['nothing', { 'x-deployment-id': '' }],
    ['the revision of one that has a name', { 'x-deployment-id': OLD }],
    ['bytes beyond ASCII', { 'x-deployment-id': 'yesterda\xff' }],
  ])('an id that names %s is served where it has come to', async (_what, headers) => {
    expect(await at('/', headers)).toBe('today');
  });

  test.each([
    '/?dpl=',
    '/?dpl',
    '/?dpl=%00',
    '/?dpl=yesterday%0d%0a',
    `/?${'dpl=x&'.repeat(1_000)}`,
    '/?xdpl=yesterday',
    '/?dpl=x&dpl=yesterday',
  ])('a query that names nobody: %.20s', async (path) => expect(await at(path)).toBe('today'));

  test('several headers name nobody', async () => {
    const answer = await pod.get('/', { headers: { 'x-deployment-id': ['yesterday', 'yesterday'] } as never });
    expect(all.renderedBy(answer)).toBe('today');
  });
});

describe('by cookie', () => {
  let all: Revisions;
  let pod: Pod;
  beforeAll(async () => {
    all = await Revisions.start({ ...ALWAYS, pods: PATIENT_PEERS }, OLD, NOW);
    pod = all.of(NOW);
  });
  afterAll(() => all?.stop());

  test('a browser is told the revision of its page, once, and stays there with all that belongs to it', async () => {
    const page = await pod.get('/', { headers: NAVIGATION });
    expect(toldRevision(page)).toEqual({ revision: NOW, attributes: 'Path=/; Max-Age=86400; SameSite=Lax; HttpOnly' });
    const safe = await pod.get('/', { headers: { ...NAVIGATION, 'x-forwarded-proto': 'https' } });
    expect(toldRevision(safe)?.attributes).toBe('Path=/; Max-Age=86400; SameSite=Lax; HttpOnly; Secure');
    for (const one of all.pods) {
      const again = await one.get('/', { headers: { ...NAVIGATION, cookie: cookie(NOW) } });
      expect([all.renderedBy(again), toldRevision(again)]).toEqual([NOW, undefined]);
      const data = await one.get('/', { headers: { cookie: `a=b; ${cookie(NOW)}; c=d` }, method: 'POST' });
      expect([all.renderedBy(data), toldRevision(data)]).toEqual([NOW, undefined]);
      expect(JSON.parse(data.body).headers.cookie).toBe('a=b; c=d');
    }
  });

  test.each([
    ['who is no browser', { headers: { accept: '*/*' } }, '/'],
    ['who sends something', { headers: NAVIGATION, method: 'POST' }, '/'],
    ['who gets what caches share', { headers: NAVIGATION }, '/?header=Cache-Control:public,%20max-age=60'],
    ['who gets an error', { headers: NAVIGATION }, '/?status=500'],
  ])('%s is told none', async (_what, call, path) => expect(toldRevision(await pod.get(path, call))).toBeUndefined());

  test.each(['0000000001', 'x', '', NOW.toUpperCase(), `${NOW}0`, `"${OLD}"`, '9'.repeat(6_000), '../../etc'])(
    'a cookie that names no revision that lives is none, and its person gets another one: %.12s',
    async (text) => {
      const page = await pod.get('/', { headers: { ...NAVIGATION, cookie: cookie(text) } });
      expect([all.renderedBy(page), toldRevision(page)?.revision]).toEqual([NOW, NOW]);
    },
  );

  test('a page does not wait for a revision that has no place; what belongs to a page does', async () => {
    const old = all.of(OLD);
    const held = old.get('/?hold=1&id=held-by-others');
    await old.begun('held-by-others');
    const page = await pod.get('/', { headers: { ...NAVIGATION, cookie: cookie(OLD) } });
    expect([all.renderedBy(page), toldRevision(page)?.revision]).toEqual([NOW, NOW]);
    const data = pod.get('/', { headers: { cookie: cookie(OLD) } });
    await until(
      'it waits',
      async () => (await old.metric('haproxy_server_current_queue{proxy="line",server="slots"}')) === 1,
    );
    old.release('held-by-others');
    await held;
    expect(all.renderedBy(await data)).toBe(OLD);
  });
});
