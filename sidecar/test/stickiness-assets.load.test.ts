/** Files of yesterday under many requests, with budgets by the second and pods that freeze: all of it by the clock. */
import { type Pod, until } from '../../e2e/harness/engine/pod.ts';
import { NEXT, NOW, OLD, Revisions } from '../../e2e/harness/engine/revisions.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { figure } from '../../operator/test/support/figure.ts';
import { stickyMetric } from './stickiness.ts';
import { fileOf, SPEC } from './stickiness-assets.ts';

let all: Revisions;
beforeAll(async () => {
  all = await Revisions.start(SPEC, OLD, NOW, NEXT);
});
afterAll(() => all?.stop());

const limited = (pod: Pod) => stickyMetric(pod, 'files', 'limited');

test('200 at once of a file that nobody has asked for wait for each other, and take no slot', async () => {
  const before = all.begun();
  const paths = Array.from({ length: 200 }, () => fileOf(all.of(NEXT), OLD));
  expect(new Set((await Promise.all(paths)).map(({ body }) => body))).toEqual(new Set([OLD]));
  expect(all.begun()).toBe(before);
});

test('what nobody has is asked of others once, until another revision comes', async () => {
  const pod = all.of(NOW);
  const later = 'cccccccccc';
  const asked = () => all.of(OLD).metric('haproxy_server_sessions_total{proxy="has-file",server="nginx"}');
  expect((await fileOf(pod, later, '/only/')).status).toBe(404);
  const before = await asked();
  for (let n = 0; n < 5; n += 1) expect((await fileOf(pod, later, '/only/')).status).toBe(404);
  expect(await asked()).toBe(before);
  const fourth = await all.add(later, SPEC);
  try {
    // Well within the time for which the pod would remember.
    await until('the pod knows it', async () => (await fileOf(pod, later, '/only/')).body === later, 8_000);
  } finally {
    all.fleet.pods.pop();
    await fourth.stop();
  }
}, 120_000);

test('a scan of names that nobody has costs other pods little, and others find their files meanwhile', async () => {
  const pod = all.of(NOW);
  const asked = () => all.of(OLD).metric('haproxy_server_sessions_total{proxy="has-file",server="nginx"}');
  const [before, limitedBefore, began, start] = [await asked(), await limited(pod), all.begun(), performance.now()];
  expect((await fileOf(pod, OLD, '/only/')).body).toBe(OLD);
  let next = 0;
  const scanner = async () => {
    for (; next < 3_000; ) {
      next += 1;
      expect((await pod.get(`/only/${next}-${'x'.repeat(next % 200)}.js`)).status).toBe(404);
    }
  };
  const scan = Promise.all(Array.from({ length: 50 }, scanner));
  // What was found before needs no budget.
  for (let n = 0; n < 20; n += 1) expect((await fileOf(pod, OLD, '/only/')).body).toBe(OLD);
  await scan;
  const seconds = (performance.now() - start) / 1_000;
  const [asks, refused] = [(await asked()) - before, (await limited(pod)) - limitedBefore];
  // 60 of a client at once, and 10 a second; beside it what has been found.
  const asksMax = 60 + 10 * seconds + 40;
  figure('file lookups at another pod during a scan of 3,000 names', asks, '', `< ${Math.round(asksMax)}`);
  figure('file lookups refused by the budget during the scan', refused, 'of 3000', '> 1000');
  expect(asks).toBeLessThan(asksMax);
  expect(refused).toBeGreaterThan(1_000);
  expect(all.begun()).toBe(began);
  // And it ends.
  await until('there is a budget again', async () => {
    const { status } = await fileOf(pod, NEXT, '/only/');
    return status === 200;
  });
}, 120_000);

test('a client that leaves while it is looked for takes nothing with it', async () => {
  const pod = all.of(NOW);
  for (let n = 0; n < 300; n += 1) {
    const signal = AbortSignal.timeout(n % 4);
    await fetch(`http://127.0.0.1:${pod.port(PORTS.http)}/only/leaves-${n}.js`, { signal }).catch(() => {});
  }
  await until('files are found', async () => (await fileOf(pod, OLD, '/only/')).body === OLD);
});

test('a frozen pod of another revision costs a moment', async () => {
  await all.fleet.engine.run('pause', all.of(OLD).haproxy);
  try {
    const began = performance.now();
    expect((await fileOf(all.of(NOW), NEXT, '/only/')).body).toBe(NEXT);
    expect((await fileOf(all.of(NOW), 'frozen', '/only/')).status).toBe(404);
    const tookMs = performance.now() - began;
    figure('time of two file requests beside a frozen pod', tookMs, 'ms', '< 3000 ms');
    expect(tookMs).toBeLessThan(3_000);
  } finally {
    await all.fleet.engine.run('unpause', all.of(OLD).haproxy);
  }
  await until('it is asked again', async () => (await fileOf(all.of(NOW), OLD, '/only/')).body === OLD);
});
