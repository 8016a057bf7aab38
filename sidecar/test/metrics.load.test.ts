/**
 * What a pod's page of metrics says of time-outs and stuck workers, which a busy machine has at other times, how often
 * it is made, and the table of the docs, whose families are there when there was a stuck worker.
 */
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { POD_METRICS } from '../../operator/gen/metrics/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { figure } from '../../operator/test/support/figure.ts';
import { canaryAt, setCanary } from './canary.ts';
import { CountedPod, error, WORKER_IDS } from './counted-pod.ts';
import { type Family, metricsPage } from './metrics.ts';

let counted: CountedPod;
let pod: Pod;
beforeAll(async () => {
  counted = await CountedPod.start({
    queue: { maxLength: 3, timeout: '8s' },
    timeouts: { render: '8s' },
    watchdog: { stallTimeout: '1s', quarantine: { enabled: false } },
  });
  pod = counted.pod;
});
afterAll(() => pod?.stop());

/** What is sent, and what its client is told. */
const FAULTS: Record<string, () => Promise<unknown>> = {
  'who waits for too long, and renders beyond their limit': async () => {
    const held = await counted.hold(WORKER_IDS.map((n) => `late-${n}`));
    expect(error(await counted.get('/?id=waits-long'))).toEqual([503, 'queue-timeout']);
    for (const answer of await Promise.all(held)) expect(error(answer)).toEqual([504, 'render-timeout']);
    pod.release(...WORKER_IDS.map((n) => `late-${n}`));
    await counted.allUp();
  },
  'a worker that is stuck': async () => {
    expect(error(await counted.get('/?loop=1&id=stuck'))).toEqual([502, 'worker-stuck']);
    await counted.allUp();
  },
};

test.each(Object.entries(FAULTS))('%s: the page says what the log says, in no more series', async (_name, run) => {
  await run();
  await counted.expectPageOfLog();
});

test('who asks again and again gets the page of this second', async () => {
  const began = performance.now();
  const pages = new Set<string>();
  for (let n = 0; n < 40; n += 1) pages.add((await pod.get('/corelane/metrics', { port: PORTS.stats })).body);
  const seconds = (performance.now() - began) / 1000;
  figure('different pages of metrics for 40 requests', pages.size, '', `<= ${(2 + seconds).toFixed(1)}`);
  expect(pages.size).toBeLessThanOrEqual(2 + seconds);
});

/** Rows by their names, with the labels that the samples of a family have. */
const labelsOf = ({ samples }: Family) =>
  new Set([...samples.keys()].flatMap((series) => [...series.matchAll(/([a-z]+)="/g)].map(([, label]) => label)));

/** Families of a page that are not as the table of the docs has them. */
function unlikeTable(page: Map<string, Family>): unknown[] {
  return [...page].flatMap(([name, family]) => {
    const row = POD_METRICS.find((one) => one.name === name);
    const labels = [...labelsOf(family)].filter((label) => label !== 'le').sort();
    const isLike = row && row.type === family.type && String(row.labels.toSorted()) === String(labels);
    return isLike && family.help.length > 10 ? [] : [{ name, type: family.type, labels, row }];
  });
}

test('each family is in the table of the docs, and each row of that on the page of some pod', async () => {
  const [few, all] = [await metricsPage(pod), await metricsPage(pod, '?detail=1')];
  const other = await Pod.start({
    workersPerPod: 1,
    cache: { enabled: true },
    concurrency: 'Auto',
    classes: [{ name: 'api', match: [{ pathPrefix: '/api/' }] }],
    tracing: { endpoint: 'http://127.0.0.1:9' },
  });
  // One with a cache takes part in no canary.
  const sides = await Pod.start({ workersPerPod: 1 });
  try {
    await setCanary(sides, canaryAt(0));
    for (const path of ['/?ms=50&id=a', '/api/b?id=b']) expect((await other.get(path)).status).toBe(200);
    const seen = new Set([...few.keys(), ...all.keys()]);
    const more = await until('the time by requests in progress is on the page', async () => {
      const page = await metricsPage(other, '?detail=1');
      return page.has('corelane_worker_level_seconds_total') ? page : undefined;
    });
    for (const page of [few, all, more, await metricsPage(other), await metricsPage(sides)]) {
      expect(unlikeTable(page)).toEqual([]);
      for (const name of page.keys()) seen.add(name);
    }
    const missing = POD_METRICS.map(({ name }) => name).filter((name) => !seen.has(name));
    // It wants some seconds of work; the others pods of several revisions, which the tests of stickiness have.
    const isElsewhere = (name: string) => name === 'corelane_worker_wait_ratio' || name.startsWith('corelane_sticky_');
    expect(missing.filter((name) => !isElsewhere(name))).toEqual([]);
    // Only the rows with detail are not for everybody.
    const isFew = (name: string) => !POD_METRICS.find((row) => row.name === name)?.detail;
    expect([...few.keys()].filter((name) => !isFew(name))).toEqual([]);
    expect([...all.keys()].filter((name) => isFew(name) && !few.has(name))).toEqual([]);
    // The same words for the same figure, whoever has written them.
    for (const [name, { help, type }] of few)
      expect([name, all.get(name)?.help, all.get(name)?.type]).toEqual([name, help, type]);
  } finally {
    await Promise.all([other.stop(), sides.stop()]);
  }
});
