/** What pods have counted of their requests, and what status makes of it for the objectives. */
import type { RenderServiceResource, RenderServiceStatus } from '../../src/api/resource.ts';
import { objectivesStatus } from '../../src/controller/objectives-status.ts';
import type { KubeObject } from '../../src/kube/types.ts';
import { addCounts, countsSince, type RequestCounts, readCounts } from '../../src/pods/request-counts.ts';
import { RequestWindow } from '../../src/pods/request-window.ts';
import { PodSampler } from '../../src/pods/sampler.ts';

/** As a pod has it; `within` by upper bound. */
function page({ ok, failed, within }: { ok: number; failed: number; within: Record<string, number> }): string {
  const all = Math.max(0, ...Object.values(within));
  return `# HELP corelane_requests_total Requests.
# TYPE corelane_requests_total counter
corelane_requests_total{code="2xx",reason=""} ${ok}
corelane_requests_total{code="5xx",reason=""} ${Math.floor(failed / 2)}
corelane_requests_total{code="5xx",reason="queue-full"} ${failed - Math.floor(failed / 2)}
# TYPE corelane_request_duration_seconds histogram
${Object.entries(within)
  .map(([le, count]) => `corelane_request_duration_seconds_bucket{le="${le}"} ${count}\n`)
  .join('')}corelane_request_duration_seconds_bucket{le="+Inf"} ${all}
corelane_request_duration_seconds_sum 1.5
corelane_request_duration_seconds_count ${all}
`;
}

const counts = (answered: number, failed: number, timed: number, within: Record<string, number>): RequestCounts => ({
  ...{ answered, failed, timed },
  within: new Map(Object.entries(within).map(([bound, count]) => [Number(bound), count])),
});

describe('a page', () => {
  test('has requests by code and by time', () => {
    const text = page({ ok: 97, failed: 3, within: { '0.25': 90, '0.5': 99, '1': 100 } });
    expect(readCounts(text)).toEqual(counts(100, 3, 100, { 0.25: 90, 0.5: 99, 1: 100 }));
  });

  test('keeps nothing of buckets that there are not, however many a page has', () => {
    const bounds = Array.from({ length: 9_000 }, (_unused, n) => `${n + 100}`);
    const lines = bounds.map((le) => `corelane_request_duration_seconds_bucket{le="${le}"} 1`);
    const text = `corelane_request_duration_seconds_bucket{le="2.5"} 7\n${lines.join('\n')}\n`;
    expect(readCounts(text)?.within).toEqual(new Map([[2.5, 7]]));
  });

  test('without them has none: of an older version, or of anybody', () => {
    expect([readCounts(''), readCounts('haproxy_up 1\n'), readCounts('{"a": 1}')]).toEqual(Array(3).fill(undefined));
  });

  test.each(['NaN', '-1', '1e300', 'Infinity', 'x', '0x10000000000000'])('with %s in it counts nothing', (value) => {
    expect(readCounts(`corelane_requests_total{code="5xx"} ${value}\n`)).toEqual(counts(0, 0, 0, {}));
  });
});

test('no page, and no number of them, has more requests than a whole number can say', () => {
  const line = 'corelane_requests_total{code="5xx",reason=""} 999999999999\n';
  const most = readCounts(line.repeat(10_000)) as RequestCounts;
  expect(most.answered).toBeLessThanOrEqual(1e12);
  const window = new RequestWindow(0);
  for (let ms = 0; ms < 300_000; ms += 15) window.add(most, ms);
  expect(Number.isSafeInteger(window.totals(300_000).answered)).toBe(true);
});

describe('what is new', () => {
  const before = counts(100, 3, 99, { 0.5: 90, 1: 99 });

  test('is the difference', () => {
    expect(countsSince(before, counts(110, 4, 109, { 0.5: 95, 1: 109 }))).toEqual(counts(10, 1, 10, { 0.5: 5, 1: 10 }));
  });

  test.each([
    ['fewer requests', counts(7, 1, 7, { 0.5: 6, 1: 7 })],
    ['fewer in a bucket', counts(120, 4, 120, { 0.5: 60, 1: 120 })],
    ['fewer that failed', counts(120, 2, 120, { 0.5: 95, 1: 120 })],
    // A burst of refusals after it: as many have been answered as before, and fewer of them well.
    ['fewer that did not', counts(160, 155, 160, { 0.5: 95, 1: 160 })],
  ])('is all after a restart: %s', (_what, now) => {
    expect(countsSince(before, now)).toEqual(now);
  });

  test('adds up over pods', () => {
    expect(addCounts(before, counts(1, 1, 1, { 1: 1, 5: 1 }))).toEqual(counts(101, 4, 100, { 0.5: 90, 1: 100, 5: 1 }));
  });
});

describe('a window', () => {
  const one = counts(1, 1, 1, { 1: 1 });
  const answered = (window: RequestWindow, ms: number) => window.totals(ms).answered;

  test('has the last five minutes, and says for how long it has been looking', () => {
    const window = new RequestWindow(0);
    for (let ms = 0; ms <= 600_000; ms += 15_000) window.add(one, ms);
    expect(window.totals(600_000)).toMatchObject({ answered: 20, failed: 20, timed: 20, seconds: 300 });
    expect(answered(window, 750_000)).toBe(10);
    expect(window.totals(2_000_000)).toMatchObject({ answered: 0, seconds: 300 });
    expect(new RequestWindow(1_000).totals(46_000)).toMatchObject({ answered: 0, seconds: 45 });
  });

  test('keeps as much for a thousand pods as for one', () => {
    const window = new RequestWindow(0);
    for (let ms = 0; ms < 300_000; ms += 15) window.add(one, ms);
    expect(answered(window, 299_999)).toBe(20_000);
    // The oldest slice goes as a whole.
    expect(answered(window, 300_000)).toBe(19_000);
  });
});

describe('status', () => {
  const resource = (objectives?: RenderServiceStatus['objectives']) =>
    ({
      metadata: { generation: 1 },
      status: { observedGeneration: 1, objectives },
    }) as unknown as RenderServiceResource;
  const spec = { availability: 99.9, latency: { p95: '400ms', p99: '1s' } };
  const totals = { ...counts(1000, 1, 500, { 0.25: 400, 0.5: 450, 1: 499 }), seconds: 300 };

  test('has the shares, of a time between two buckets in proportion', () => {
    expect(objectivesStatus(resource(), spec, totals)).toEqual({
      seconds: 300,
      requests: 1000,
      availabilityPercent: 99.9,
      latencyPercent: { p95: 86, p99: 99.8 },
    });
  });

  test('is rounded down: 100 is all of them', () => {
    const nearly = { ...counts(1_000_000, 1, 1_000_000, { 1: 999_999 }), seconds: 300 };
    expect(objectivesStatus(resource(), { availability: 99, latency: { p99: '1s' } }, nearly)).toMatchObject({
      availabilityPercent: 99.999,
      latencyPercent: { p99: 99.999 },
    });
    const all = { ...counts(7, 0, 7, { 1: 7 }), seconds: 300 };
    expect(objectivesStatus(resource(), { availability: 99, latency: { p99: '1s' } }, all)).toMatchObject({
      availabilityPercent: 100,
      latencyPercent: { p99: 100 },
    });
  });

  test('has no share that the API server would refuse, whatever pods tell', () => {
    for (const told of [counts(1, 200, 1, { 1: -5 }), counts(1, 0, 1, { 1: 300 })]) {
      const { availabilityPercent, latencyPercent } = objectivesStatus(
        resource(),
        { availability: 99, latency: { p99: '1s' } },
        { ...told, seconds: 300 },
      ) as NonNullable<RenderServiceStatus['objectives']>;
      for (const percent of [availabilityPercent, latencyPercent?.p99]) {
        expect(percent).toBeGreaterThanOrEqual(0);
        expect(percent).toBeLessThanOrEqual(100);
      }
    }
  });

  test('without requests has no shares', () => {
    const none = { ...counts(0, 0, 0, {}), seconds: 300 };
    expect(objectivesStatus(resource(), spec, none)).toMatchObject({
      requests: 0,
      availabilityPercent: null,
      latencyPercent: { p95: null, p99: null },
    });
  });

  test('leaves what another leader has found as long as nothing is known', () => {
    const before = { seconds: 300, requests: 7, availabilityPercent: 99 };
    expect(objectivesStatus(resource(before), spec, undefined)).toBe(before);
  });

  test('leaves it until this process has counted for as long, and at most for the window', () => {
    const before = { seconds: 300, requests: 7, availabilityPercent: 99 };
    const requestsAfter = (seconds: number, told = before) =>
      objectivesStatus(resource(told), spec, { ...totals, seconds })?.requests;
    expect([requestsAfter(30), requestsAfter(299), requestsAfter(300)]).toEqual([7, 7, 1000]);
    expect(requestsAfter(120, { ...before, seconds: 120 })).toBe(1000);
    // No operator has written that.
    expect(requestsAfter(300, { ...before, seconds: 86_400 })).toBe(1000);
  });

  test('of an earlier generation of the spec is not left', () => {
    const before = resource({ seconds: 300, requests: 7 });
    before.metadata.generation = 2;
    expect(objectivesStatus(before, spec, { ...totals, seconds: 30 })).toMatchObject({ seconds: 30, requests: 1000 });
  });

  test('forgets an objective that is gone, and all of them', () => {
    const before = { seconds: 300, requests: 7, availabilityPercent: 99, latencyPercent: { p50: 100, p99: 98 } };
    expect(objectivesStatus(resource(before), { latency: { p99: '1s' } }, totals)).toMatchObject({
      availabilityPercent: null,
      latencyPercent: { p50: null, p99: 99.8 },
    });
    expect(objectivesStatus(resource(before), undefined, totals)).toBeNull();
    expect(objectivesStatus(resource(), undefined, totals)).toBeUndefined();
  });
});

describe('the sampler', () => {
  const { now: realNow } = performance;
  let now = 0;
  beforeEach(() => {
    now = 1_000;
    performance.now = () => now;
  });
  afterEach(() => {
    performance.now = realNow;
  });

  const pod = (name: string) =>
    ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, uid: `uid-${name}` },
      status: { phase: 'Running', podIP: name },
      workerCores: { 'worker-0': 1 },
    }) as KubeObject;

  /** Pods whose pages of counts are in `pages`; `owners` says of which RenderService they are. */
  function world(owners: Record<string, string | undefined>, pages: Record<string, string | Error>) {
    const asked: string[] = [];
    const changed: string[] = [];
    const counted = new Set(Object.values(owners).filter((owner) => owner !== undefined));
    const sampler = new PodSampler({
      pods: () => Object.keys(owners).map(pod),
      onChange: ({ metadata }) => changed.push(metadata.name),
      onResult: () => {},
      countedFor: ({ metadata }) => owners[metadata.name],
      counted: () => counted,
      get: async (address, path) => {
        if (path !== '/corelane/metrics')
          return 'haproxy_server_status{proxy="workers",server="worker-0",state="UP"} 1\n';
        asked.push(address);
        const text = pages[address] ?? '';
        if (text instanceof Error) throw text;
        return text;
      },
    });
    const round = async () => {
      await sampler.round();
      now += 15_000;
    };
    return { sampler, asked, changed, counted, round };
  }

  const at = (ok: number, failed = 0) => page({ ok, failed, within: { '0.5': ok, '1': ok + failed } });

  test('asks for counts only where there are objectives', async () => {
    const { sampler, asked, round } = world({ a: 'shop', b: undefined }, { a: at(5), b: at(5) });
    await round();
    expect(asked).toEqual(['a']);
    expect(sampler.requestsOf('shop')).toBeUndefined();
  });

  test('adds what is new of all pods; the first look at a pod is no news', async () => {
    const owners: Record<string, string> = { a: 'shop', b: 'shop', c: 'blog' };
    const pages: Record<string, string> = { a: at(1000), b: at(7), c: at(3) };
    const { sampler, changed, round } = world(owners, pages);
    await round();
    Object.assign(pages, { a: at(1010, 2), b: at(27), c: at(3) });
    changed.length = 0;
    await round();
    // Who has had requests has news, though nothing else has changed.
    expect(changed.toSorted()).toEqual(['a', 'b']);
    expect(sampler.requestsOf('shop')).toMatchObject({ answered: 32, failed: 2, timed: 32, seconds: 30 });
    expect(sampler.requestsOf('blog')).toMatchObject({ answered: 0, seconds: 30 });
  });

  test('goes on after a HAProxy that was started again, and after a pod that does not answer', async () => {
    const pages: Record<string, string | Error> = { a: at(1000), b: at(50) };
    const { sampler, round } = world({ a: 'shop', b: 'shop' }, pages);
    await round();
    Object.assign(pages, { a: at(4), b: new Error('404') });
    await round();
    expect(sampler.of(pod('b'))).toMatchObject({ workers: [{ up: true }] });
    pages.b = at(60);
    await round();
    expect(sampler.requestsOf('shop')).toMatchObject({ answered: 14 });
  });

  test('forgets a RenderService that is gone, or has no objectives any more', async () => {
    const owners: Record<string, string | undefined> = { a: 'shop' };
    const { sampler, counted, round } = world(owners, { a: at(1) });
    for (let rounds = 0; rounds < 3; rounds += 1) await round();
    // It has no pods for a while.
    delete owners.a;
    await round();
    expect(sampler.requestsOf('shop')).toMatchObject({ answered: 0 });
    counted.delete('shop');
    await round();
    expect(sampler.requestsOf('shop')).toBeUndefined();
  });
});
