/** What pods say that share their work or their pages: each request is counted where its client is. */
import { Fleet } from '../../e2e/harness/engine/fleet.ts';
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { page, renders } from './cache.ts';
import { countedOf, logged, metricsPage, ofNginx, pageAndLog, samplesOf } from './metrics.ts';

const IN = 'corelane_requests_handed_over_total{direction="in"}';
const OUT = 'corelane_requests_handed_over_total{direction="out"}';

test('a request that is handed over is counted by the pod of its client, and as one that came by the other', async () => {
  const fleet = await Fleet.start(2, { workersPerPod: 1 });
  try {
    const [home, other] = fleet.pods as [Pod, Pod];
    // A pod that was asked while it started is left alone for a moment.
    await until('it knows it', async () => samplesOf(await metricsPage(home)).get('corelane_peers_known') === 1);
    const before = [await logged(home), await logged(other)] as const;
    const held = home.get('/?hold=1&id=held');
    await home.begun('held');
    expect((await home.get('/?id=away&ms=30')).status).toBe(200);
    expect(other.events({ event: 'begin', id: 'away' })).toHaveLength(1);
    home.release('held');
    expect((await held).status).toBe(200);
    const [[here, log], [there, others]] = [await pageAndLog(home, before[0] + 2), await pageAndLog(other, before[1])];
    expect(Object.fromEntries(ofNginx(here))).toEqual(Object.fromEntries(countedOf(log)));
    expect(Object.fromEntries(ofNginx(there))).toEqual(Object.fromEntries(countedOf(others)));
    expect([samplesOf(here).get(OUT), samplesOf(here).get(IN)]).toEqual([1, 0]);
    expect([samplesOf(there).get(OUT), samplesOf(there).get(IN)]).toEqual([0, 1]);
  } finally {
    await fleet.stop();
  }
});

describe('with the cache', () => {
  let pod: Pod;
  let before: number;
  beforeAll(async () => {
    pod = await Pod.start({
      workersPerPod: 2,
      cache: { enabled: true },
      classes: [{ name: 'api', match: [{ pathPrefix: '/api/' }] }],
    });
  });
  afterAll(() => pod?.stop());
  beforeEach(async () => {
    before = await logged(pod);
  });

  test('a page is rendered once, and given to many: one render, and the time of each', async () => {
    const path = page('many');
    const herd = await Promise.all(Array.from({ length: 6 }, () => pod.get(path)));
    const others = [await pod.get(path), await pod.get('/?id=none'), await pod.get('/api/a?id=call')];
    for (const { status } of [...herd, ...others]) expect(status).toBe(200);
    const [now, log] = await pageAndLog(pod, before + 9);
    expect(renders(pod, 'many')).toBe(1);
    expect(Object.fromEntries(ofNginx(now))).toEqual(Object.fromEntries(countedOf(log)));
    const results = [...samplesOf(now)].flatMap(([series, count]) => {
      const [, result] = /^corelane_cache_requests_total\{result="([a-z]+)"\}$/.exec(series) ?? [];
      return result ? [[result, count]] : [];
    });
    expect(results).toHaveLength(8);
    for (const [result, count] of results)
      expect([result, count]).toEqual([result, log.filter(({ cache }) => cache === result).length]);
    expect(log.filter(({ servedAs }) => servedAs === 'api')).toHaveLength(1);
  });
});
