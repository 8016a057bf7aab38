/**
 * Files of yesterday while several revisions live: whichever pod is asked has them, no worker is, and what nobody has
 * costs little and is kept by nobody.
 */
import { PATIENT_PEERS } from '../../e2e/harness/engine/haproxy-modules.ts';
import { NEXT, NOW, OLD, Revisions } from '../../e2e/harness/engine/revisions.ts';
import { stickyMetric } from './stickiness.ts';
import { fileOf, SPEC } from './stickiness-assets.ts';

const CACHEABLE = 'public, max-age=31536000, immutable';

let all: Revisions;
beforeAll(async () => {
  all = await Revisions.start({ ...SPEC, pods: PATIENT_PEERS }, OLD, NOW, NEXT);
});
afterAll(() => all?.stop());

test('each revision has the files of both others, with any method that reads, and no worker is asked', async () => {
  const before = all.begun();
  for (const pod of all.pods) {
    for (const revision of [OLD, NOW, NEXT]) {
      for (const folder of ['/_next/static/', '/only/']) {
        const { status, body, headers } = await fileOf(pod, revision, folder);
        expect([status, body, headers['cache-control']]).toEqual([200, revision, CACHEABLE]);
        expect(Object.keys(headers).filter((name) => /^x-(corelane|accel)/.test(name))).toEqual([]);
        expect(headers['set-cookie']).toBeUndefined();
      }
      const head = await fileOf(pod, revision, '/_next/static/', { method: 'HEAD' });
      expect([head.status, head.headers['content-length'], head.body]).toEqual([200, '10', '']);
    }
  }
  expect(all.begun()).toBe(before);
});

test('what all have is of the pod that is asked', async () => {
  for (const revision of [OLD, NOW, NEXT])
    expect((await fileOf(all.of(revision), 'all')).body).toBe(`all of ${revision}`);
});

test('what nobody has is 404 of the pod that was asked, and nobody keeps it', async () => {
  const pod = all.of(NOW);
  const others = () => all.of(OLD).events({ event: 'begin' }).length + all.of(NEXT).events({ event: 'begin' }).length;
  const before = others();
  const none = await fileOf(pod, 'nobody', '/only/');
  expect([none.status, none.headers['x-corelane-error'], none.headers['cache-control']]).toEqual([
    ...[404, 'asset-not-found', 'no-store'],
  ]);
  const worker = await pod.get('/_next/static/nobody.js?status=404&header=Cache-Control:public,%20max-age=31536000');
  expect([worker.status, worker.headers['cache-control']]).toEqual([404, 'no-store']);
  expect(pod.events({ event: 'begin', id: '/_next/static/nobody.js' })).toHaveLength(1);
  expect(others()).toBe(before);
});

test('a page that an application answers for a missing script is kept by nobody', async () => {
  const { status, headers } = await all
    .of(NOW)
    .get('/_next/static/spa.js?header=Content-Type:text/html&header=Cache-Control:public,%20max-age=600');
  expect([status, headers['cache-control']]).toEqual([200, 'no-store']);
});

test.each([
  ['a folder whose files change', 'GET', `/public/${OLD}.js`],
  ['another method', 'POST', `/_next/static/${OLD}.js`],
  ['a page', 'GET', `/${OLD}.js`],
])('is not looked for elsewhere: %s', async (_what, method, path) => {
  const before = await stickyMetric(all.of(NOW), 'files', 'found');
  const { body } = await all.of(NOW).get(`${path}?id=here-${method}`, { method });
  expect(JSON.parse(body)).toMatchObject({ id: `here-${method}`, method });
  expect(await stickyMetric(all.of(NOW), 'files', 'found')).toBe(before);
});
