/**
 * The storefront example under load: all workers in turn, pages of the proxies beside a queue.
 *
 * A load test: renders need a free core, and no request may fail for a minute.
 */
import { eventually, kubectl } from '../harness/cluster/cluster.ts';
import { startLoad } from '../harness/cluster/load.ts';
import { podsOf } from '../harness/cluster/renderservice.ts';
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
});
