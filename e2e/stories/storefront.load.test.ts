/**
 * The storefront example under load: all workers in turn, pages of the proxies beside a queue, a rolling update.
 *
 * A load test: renders need a free core, and no request may fail for a minute.
 */
import { eventually, kubectl } from '../harness/cluster/cluster.ts';
import { lost, startLoad } from '../harness/cluster/load.ts';
import { podsOf, untilReady } from '../harness/cluster/renderservice.ts';
import { applyStorefront, NAME, NAMESPACE } from './storefront.ts';

const URL_IN_CLUSTER = `http://${NAME}.${NAMESPACE}.svc/`;
/** A page of about 20 ms on a free core, a tenth of what the storefront shows by itself. */
const SHORT_PAGE = `${URL_IN_CLUSTER}?products=150`;

beforeAll(applyStorefront);
afterAll(() => kubectl(['-n', NAMESPACE, 'delete', 'renderservice', NAME, '--ignore-not-found']));

describe('the storefront example', () => {
  test('serves 400 renders at twice its workers, each worker one at a time, all workers in turn', async () => {
    const load = await startLoad(NAMESPACE, 'story-load', [
      ...['--url', SHORT_PAGE, '--requests', '400', '--concurrency', '12'],
    ]);
    const result = await load.result(240_000);
    expect({ ok: result.ok, failed: result.failed, overlaps: result.overlaps }).toEqual({
      ok: 400,
      failed: 0,
      overlaps: 0,
    });
    expect(Object.keys(result.workers as object)).toHaveLength(6);
  });

  test('answers ping, readiness and metrics while every worker is busy', async () => {
    const load = await startLoad(NAMESPACE, 'busy-load', [
      ...['--url', URL_IN_CLUSTER, '--requests', '90', '--concurrency', '20'],
    ]);
    const [pod] = await podsOf(NAMESPACE, NAME);
    const proxy = (port: number, path: string) =>
      kubectl(['get', '--raw', `/api/v1/namespaces/${NAMESPACE}/pods/${pod?.metadata.name}:${port}/proxy${path}`]);
    await eventually('a queue', 60_000, async () => {
      const metrics = await proxy(8999, '/metrics?metrics=haproxy_backend_current_queue');
      const queued = /^haproxy_backend_current_queue\{proxy="line"\} (\d+)/m.exec(metrics)?.[1];
      return Number(queued) > 0 || undefined;
    });
    await proxy(9000, '/ping');
    await proxy(8998, '/readyz');
    expect(await proxy(8999, '/')).toMatch(/Statistics Report for HAProxy/);
    expect((await load.result(240_000)).failed).toBe(0);
  });

  test('loses no request in a rolling update', async () => {
    await kubectl(['-n', NAMESPACE, 'scale', 'renderservice', NAME, '--replicas=2']);
    await untilReady(NAMESPACE, NAME);
    const load = await startLoad(NAMESPACE, 'rollout-load', [
      ...['--url', SHORT_PAGE, '--requests', '2000', '--rate', '8', '--concurrency', '64', '--keep-alive'],
    ]);
    const patch = { spec: { template: { metadata: { annotations: { 'example.com/version': String(Date.now()) } } } } };
    const before = await podsOf(NAMESPACE, NAME);
    await kubectl(['-n', NAMESPACE, 'patch', 'renderservice', NAME, '--type=merge', '-p', JSON.stringify(patch)]);
    await untilReady(NAMESPACE, NAME);
    await eventually('the old pods to be gone', 120_000, async () => {
      const pods = await podsOf(NAMESPACE, NAME);
      return pods.every(({ metadata }) => !metadata.deletionTimestamp) || undefined;
    });
    const result = await load.stop();
    const after = await podsOf(NAMESPACE, NAME);
    expect(
      after.some(({ metadata }) =>
        before.some((old) => old.metadata.name === metadata.name && !metadata.deletionTimestamp),
      ),
    ).toBe(false);
    const { ok, overlaps, statuses } = result;
    expect({ overlaps, errors: lost(result), statuses }).toEqual({ overlaps: 0, errors: {}, statuses: { 200: ok } });
    // All the time: the client was not at its last request.
    expect(ok).toBeLessThan(2000);
    expect(ok).toBeGreaterThan(0);
  });
});
