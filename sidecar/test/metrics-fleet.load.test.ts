/**
 * More of what pods say of pages that they share: with asserted durations, or pods of their own that the gate has no
 * time for.
 */
import { APP_FILES, AppFiles } from '../../e2e/harness/engine/app-files.ts';
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { figure } from '../../operator/test/support/figure.ts';
import { page, renders, seconds } from './cache.ts';
import { countedOf, metricsPage, ofNginx, pageAndLog, samplesOf } from './metrics.ts';

const RENDERS = 'corelane_request_render_duration_seconds_count';

describe('with the cache', () => {
  let pod: Pod;
  beforeAll(async () => {
    pod = await Pod.start({ workersPerPod: 2, cache: { enabled: true } });
  });
  afterAll(() => pod?.stop());

  test('what is rendered anew behind a page is a render; nobody has waited for it', async () => {
    const path = page('swr', 'max-age=1, stale-while-revalidate=60', '&ms=700');
    await pod.get(path);
    const [first] = await pageAndLog(pod, 1);
    await seconds(2.2);
    expect((await pod.get(path)).status).toBe(200);
    const [now, log] = await pageAndLog(pod, 2);
    expect(renders(pod, 'swr')).toBe(2);
    // The log has the first one alone.
    expect((samplesOf(now).get(RENDERS) ?? 0) - (samplesOf(first).get(RENDERS) ?? 0)).toBe(1);
    expect(log.at(-1)).toMatchObject({ cache: 'stale', renderMs: null });
    const took = Number(log.at(-1)?.totalSeconds);
    figure('response time of a stale page while its render takes 0.7 s', took, 's', '< 0.7 s');
    expect(took).toBeLessThan(0.7);
    const bucket = 'corelane_request_duration_seconds_bucket{le="0.5"}';
    expect((samplesOf(now).get(bucket) ?? 0) - (samplesOf(first).get(bucket) ?? 0)).toBe(1);
  });
});

test('a file is a request, and takes no time', async () => {
  const files = new AppFiles({ 'static/app.js': 'x' });
  const pod = await Pod.start(
    { workersPerPod: 1, assets: [{ path: '/static/', from: `${APP_FILES}/static`, missing: 'NotFound' }] },
    { options: files.options },
  );
  try {
    expect((await pod.get('/static/app.js')).status).toBe(200);
    expect((await pod.get('/static/none.js')).status).toBe(404);
    expect((await pod.get('/?id=page')).status).toBe(200);
    const [now, log] = await pageAndLog(pod, 3);
    const isFile = ({ uri }: Record<string, unknown>) => String(uri).startsWith('/static/');
    expect(Object.fromEntries(ofNginx(now))).toEqual(Object.fromEntries(countedOf(log, isFile)));
    const samples = samplesOf(now);
    expect(samples.get('corelane_requests_total{code="4xx",reason="asset-not-found"}')).toBe(1);
    expect(samples.get('corelane_request_duration_seconds_count')).toBe(1);
  } finally {
    await pod.stop();
    files.remove();
  }
});

/** HAProxy takes nothing away, as a peer's might that is of somebody else's making. */
const believes = (_file: string, text: string) =>
  text
    .replaceAll(
      'del-header X-Corelane- -m beg if',
      "del-header '^x-corelane-(?!(?:queue-ms|render-ms|error)$)' -m reg if",
    )
    .replaceAll(/ {2}http-after-response set-header X-Corelane-(?:Render|Queue)-Ms .*\n/g, '')
    .replaceAll(/proxy_hide_header X-Corelane-(?:Queue|Render)-Ms;/g, '');

test('headers that nobody honest sends make no series, and no figure that is none', async () => {
  const pod = await Pod.start({ workersPerPod: 1 }, { edit: believes });
  try {
    const tell = (name: string, value: string) => `header=${encodeURIComponent(`x-corelane-${name}:${value}`)}`;
    const times = ['99999999999999999999', '9223372036854775807', '86400001', '-1', 'NaN', '1e3', '', '12"'];
    for (const [n, ms] of times.entries()) {
      const forged = [tell('queue-ms', ms), tell('render-ms', ms), tell('error', `a"b\\${n}`)];
      const answer = await pod.get(`/?id=bad-${n}&${forged.join('&')}`);
      expect([answer.status, answer.headers['x-corelane-error']]).toEqual([200, `a"b\\${n}`]);
    }
    await pod.get(`/?id=good&${tell('queue-ms', '40')}&${tell('render-ms', '20000')}`);
    const page = await until('all are counted', async () => {
      const now = samplesOf(await metricsPage(pod));
      return (now.get('corelane_requests_total{code="2xx",reason="other"}') ?? 0) > times.length ? now : undefined;
    });
    const series = [...page].filter(([name, count]) => name.startsWith('corelane_requests_total') && count > 0);
    expect(series.map(([name]) => name)).toEqual(['corelane_requests_total{code="2xx",reason="other"}']);
    expect(page.get('corelane_request_queue_duration_seconds_count')).toBe(1);
    expect(page.get('corelane_request_queue_duration_seconds_sum')).toBe(0.04);
    expect(page.get('corelane_request_render_duration_seconds_sum')).toBe(20);
  } finally {
    await pod.stop();
  }
});
