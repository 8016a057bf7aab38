/** Floods of ids, cookies and requests for one revision: how much they cost others. */
import { type Pod, until } from '../../e2e/harness/engine/pod.ts';
import { NOW, OLD, type Revisions } from '../../e2e/harness/engine/revisions.ts';
import { figure } from '../../operator/test/support/figure.ts';
import { REVISION_COOKIE, stickyMetric } from './stickiness.ts';
import { startTwo } from './stickiness-hostile.ts';

let all: Revisions;
let pod: Pod;
let old: Pod;
beforeAll(async () => {
  all = await startTwo();
  [pod, old] = [all.of(NOW), all.of(OLD)];
});
afterAll(() => all?.stop());

test('2,000 ids and cookies by chance find nobody, and cost nobody anything', async () => {
  const before = await old.metric('haproxy_frontend_http_requests_total{proxy="peers"}');
  let next = 0;
  const client = async () => {
    for (; next < 2_000; ) {
      next += 1;
      const id = `${next}-${'x'.repeat(next % 60)}`;
      const name = next.toString(16).padStart(10, '0');
      const headers = { 'x-deployment-id': id, cookie: `${REVISION_COOKIE}=${name}`, 'sec-fetch-mode': 'navigate' };
      expect((await pod.get(`/?dpl=${id}`, { headers })).status).toBeLessThan(504);
    }
  };
  await Promise.all(Array.from({ length: 2 }, client));
  const asked = (await old.metric('haproxy_frontend_http_requests_total{proxy="peers"}')) - before;
  const sticky = await stickyMetric(pod, 'requests', 'id');
  figure('requests at the peers port during 2,000 requests with random ids', asked, '', '< 1500');
  figure('requests with random ids that stick to a revision', sticky, 'of 2000', '< 50');
  // What pods ask each other anyway: nobody has a slot now and then.
  expect(asked).toBeLessThan(1_500);
  expect(sticky).toBeLessThan(50);
}, 120_000);

test('all the world names a revision that has one worker: others are served, and its queue stays as long as it may be', async () => {
  const answers = await Promise.all(
    Array.from({ length: 40 }, (_unused, n) => pod.get(`/?ms=50&id=crowd-${n}&dpl=${OLD}`)),
  );
  const by = answers.map((answer) => all.renderedBy(answer));
  expect(by.filter((one) => one === OLD).length).toBeGreaterThan(0);
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 503]));
  const most = Math.max(...old.events({ event: 'begin' }).map(({ inFlight = 0 }) => inFlight));
  expect(most).toBe(1);
  await until('it is served again', async () => (await pod.get('/')).status === 200);
});
