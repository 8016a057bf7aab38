/** How often answers of 304 leave their connections open: a share of requests, by chance. And a pod without ETags. */
import { Pod } from '../../e2e/harness/engine/pod.ts';
import { figure } from '../../operator/test/support/figure.ts';
import { has, page, tagOf } from './etag.ts';

let pod: Pod;
let never: Pod;
beforeAll(async () => {
  [pod, never] = await Promise.all([
    Pod.start({ workersPerPod: 1 }),
    Pod.start({ workersPerPod: 1, cache: { etag: 'Never' } }),
  ]);
});
afterAll(() => Promise.all([pod, never].map((one) => one?.stop())));

test('304 and pages take turns over connections that are kept, and no answer is that of another', async () => {
  const path = page('kept', 20_000);
  const tag = await tagOf(pod, path);
  await pod.keptConnections(path);
  const reused = () => pod.metric('haproxy_backend_connection_reuses_total{proxy="workers"}');
  const before = await reused();
  for (let n = 0; n < 10; n += 1) {
    expect(await pod.get(path, has(tag))).toMatchObject({ status: 304, body: '' });
    expect((await pod.get(path)).body).toBe('x'.repeat(20_000));
    expect((await pod.get(path, { method: 'HEAD', ...has('*') })).status).toBe(304);
    expect((await pod.get(path, { method: 'POST' })).body.length).toBe(20_000);
  }
  const kept = (await reused()) - before;
  figure('requests over a kept connection, where 304 and pages take turns', kept, 'of 40', '> 30');
  // A 304 to GET or to HEAD that ended its connection would cost ten; a request that comes before the one before it has
  // been put away opens one more.
  expect(kept).toBeGreaterThan(30);
});

test('none where they are not wanted', async () => {
  const { status, headers, body } = await never.get(page('never'), has('*'));
  expect([status, headers.etag, body.length]).toEqual([200, undefined, 50_000]);
});
