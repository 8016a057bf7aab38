/**
 * Files of yesterday while several revisions live: whichever pod is asked has them, no worker is, and what nobody has
 * costs little and is kept by nobody.
 */
import type { Pod } from '../../e2e/harness/engine/pod.ts';
import { until } from '../../e2e/harness/engine/pod.ts';
import { ASSETS, NEXT, NOW, OLD, Revisions } from '../../e2e/harness/engine/revisions.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { stickyMetric } from './stickiness.ts';

const SPEC = { workersPerPod: 1, assets: ASSETS };
const CACHEABLE = 'public, max-age=31536000, immutable';

let all: Revisions;
beforeAll(async () => {
  all = await Revisions.start(SPEC, OLD, NOW, NEXT);
});
afterAll(() => all?.stop());

const file = (pod: Pod, name: string, folder = '/_next/static/', call = {}) => pod.get(`${folder}${name}.js`, call);
const limited = (pod: Pod) => stickyMetric(pod, 'files', 'limited');

test('each revision has the files of both others, with any method that reads, and no worker is asked', async () => {
  const before = all.begun();
  for (const pod of all.pods) {
    for (const revision of [OLD, NOW, NEXT]) {
      for (const folder of ['/_next/static/', '/only/']) {
        const { status, body, headers } = await file(pod, revision, folder);
        expect([status, body, headers['cache-control']]).toEqual([200, revision, CACHEABLE]);
        expect(Object.keys(headers).filter((name) => /^x-(corelane|accel)/.test(name))).toEqual([]);
        expect(headers['set-cookie']).toBeUndefined();
      }
      const head = await file(pod, revision, '/_next/static/', { method: 'HEAD' });
      expect([head.status, head.headers['content-length'], head.body]).toEqual([200, '10', '']);
    }
  }
  expect(all.begun()).toBe(before);
});

test('what all have is of the pod that is asked', async () => {
  for (const revision of [OLD, NOW, NEXT])
    expect((await file(all.of(revision), 'all')).body).toBe(`all of ${revision}`);
});

test('what nobody has is 404 of the pod that was asked, and nobody keeps it', async () => {
  const pod = all.of(NOW);
  const others = () => all.of(OLD).events({ event: 'begin' }).length + all.of(NEXT).events({ event: 'begin' }).length;
  const before = others();
  const none = await file(pod, 'nobody', '/only/');
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

test('200 at once of a file that nobody has asked for wait for each other, and take no slot', async () => {
  const before = all.begun();
  const paths = Array.from({ length: 200 }, () => file(all.of(NEXT), OLD));
  expect(new Set((await Promise.all(paths)).map(({ body }) => body))).toEqual(new Set([OLD]));
  expect(all.begun()).toBe(before);
});

test('what nobody has is asked of others once, until another revision comes', async () => {
  const pod = all.of(NOW);
  const later = 'cccccccccc';
  const asked = () => all.of(OLD).metric('haproxy_server_sessions_total{proxy="has-file",server="nginx"}');
  expect((await file(pod, later, '/only/')).status).toBe(404);
  const before = await asked();
  for (let n = 0; n < 5; n += 1) expect((await file(pod, later, '/only/')).status).toBe(404);
  expect(await asked()).toBe(before);
  const fourth = await all.add(later, SPEC);
  try {
    // Well within the time for which the pod would remember.
    await until('the pod knows it', async () => (await file(pod, later, '/only/')).body === later, 8_000);
  } finally {
    all.fleet.pods.pop();
    await fourth.stop();
  }
}, 120_000);

test('a scan of names that nobody has costs other pods little, and others find their files meanwhile', async () => {
  const pod = all.of(NOW);
  const asked = () => all.of(OLD).metric('haproxy_server_sessions_total{proxy="has-file",server="nginx"}');
  const [before, limitedBefore, began, start] = [await asked(), await limited(pod), all.begun(), performance.now()];
  expect((await file(pod, OLD, '/only/')).body).toBe(OLD);
  let next = 0;
  const scanner = async () => {
    for (; next < 3_000; ) {
      next += 1;
      expect((await pod.get(`/only/${next}-${'x'.repeat(next % 200)}.js`)).status).toBe(404);
    }
  };
  const scan = Promise.all(Array.from({ length: 50 }, scanner));
  // What was found before needs no budget.
  for (let n = 0; n < 20; n += 1) expect((await file(pod, OLD, '/only/')).body).toBe(OLD);
  await scan;
  const seconds = (performance.now() - start) / 1_000;
  // 60 of a client at once, and 10 a second; beside it what has been found.
  expect((await asked()) - before).toBeLessThan(60 + 10 * seconds + 40);
  expect((await limited(pod)) - limitedBefore).toBeGreaterThan(1_000);
  expect(all.begun()).toBe(began);
  // And it ends.
  await until('there is a budget again', async () => {
    const { status } = await file(pod, NEXT, '/only/');
    return status === 200;
  });
}, 120_000);

test('a client that leaves while it is looked for takes nothing with it', async () => {
  const pod = all.of(NOW);
  for (let n = 0; n < 300; n += 1) {
    const signal = AbortSignal.timeout(n % 4);
    await fetch(`http://127.0.0.1:${pod.port(PORTS.http)}/only/leaves-${n}.js`, { signal }).catch(() => {});
  }
  await until('files are found', async () => (await file(pod, OLD, '/only/')).body === OLD);
});

test('a frozen pod of another revision costs a moment', async () => {
  await all.fleet.engine.run('pause', all.of(OLD).haproxy);
  try {
    const began = performance.now();
    expect((await file(all.of(NOW), NEXT, '/only/')).body).toBe(NEXT);
    expect((await file(all.of(NOW), 'frozen', '/only/')).status).toBe(404);
    expect(performance.now() - began).toBeLessThan(3_000);
  } finally {
    await all.fleet.engine.run('unpause', all.of(OLD).haproxy);
  }
  await until('it is asked again', async () => (await file(all.of(NOW), OLD, '/only/')).body === OLD);
});
