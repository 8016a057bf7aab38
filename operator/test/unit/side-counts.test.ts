/** What pods have counted of both sides of a canary: read, compared, and believed as far as it can be true. */
import {
  addSides,
  clientsSince,
  countNew,
  NO_SIDES,
  readSides,
  SIDE_BUCKETS,
  type SidesPage,
  sidesSince,
} from '../../src/pods/side-counts.ts';
import { borderMs, countAbove, countOf, learnt, slowBucket, TIME_BUCKETS } from '../../src/rollout/render-times.ts';

const text = (canary: string, stable = '0 0', epoch = '17.000001', revision = 7) =>
  `epoch=${epoch}\nrevision=${revision}\ncanary=${canary}\nstable=${stable}\n`;
const page = (...args: Parameters<typeof text>) => readSides(text(...args)) as SidesPage;
const times = (counts: Record<number, number>) =>
  Array.from({ length: SIDE_BUCKETS }, (_unused, bucket) => counts[bucket] ?? 0);

describe('a page', () => {
  test('has requests, errors and times of both sides', () => {
    expect(page('12 2 0:3 27:6 136:1', '100 1')).toEqual({
      ...{ epoch: '17.000001', revision: 7 },
      canary: { requests: 12, errors: 2, times: times({ 0: 3, 27: 6, 136: 1 }) },
      stable: { requests: 100, errors: 1, times: times({}) },
      clients: { canary: { seen: 0, failed: [] }, stable: { seen: 0, failed: [] } },
    });
    expect(SIDE_BUCKETS).toBe(TIME_BUCKETS);
  });

  test.each([
    ['nothing', ''],
    ['another page', 'serial=abc\ncanary=1\n'],
    ['one side', 'epoch=1\nrevision=7\ncanary=1 0\n'],
    ['sides in another order', 'epoch=1\nrevision=7\nstable=1 0\ncanary=1 0\n'],
    ['no epoch', text('1 0').replace(/^epoch.*\n/, '')],
    ['an epoch without an end', text('1 0', '1 0', '1'.repeat(33))],
    ['a revision that is none', text('1 0').replace('revision=7', 'revision=b')],
    ['fewer than nothing', text('-1 0')],
    ['a number without an end', text(`1${'0'.repeat(12)} 0`)],
    ['what is no number', text('NaN 0')],
    ['an exponent', text('1e9 0')],
    ['more errors than requests', text('3 4')],
    ['more times than requests', text('3 1 5:3')],
    ['a bucket that there is not', text('3 0 137:1')],
    ['more buckets than there are', text(`9999 0${' 1:1'.repeat(138)}`)],
    ['a client that is none', `${text('1 0')}canary-clients=1 xyz\nstable-clients=0\n`],
    ['clients that are too many', `${text('1 0')}canary-clients=9${' a'.repeat(33)}\nstable-clients=0\n`],
    ['clients of the other side', `${text('1 0')}stable-clients=1 a\ncanary-clients=1 b\n`],
    ['megabytes', text(`9 0${' '.repeat(2_000_000)}`)],
    ['a page of zeros', '\0'.repeat(10_000)],
  ])('%s is none', (_what, body) => expect(readSides(body)).toBeUndefined());
});

describe('what is new', () => {
  test('is the difference', () => {
    expect(sidesSince(page('12 2 27:6', '100 1'), page('15 3 27:7 30:1', '140 1 2:39'), 2_000)).toEqual({
      canary: { requests: 3, errors: 1, times: times({ 27: 1, 30: 1 }) },
      stable: { requests: 40, errors: 0, times: times({ 2: 39 }) },
    });
  });

  test.each([
    ['a pod that was started again', page('5 1 3:2', '7 0', '18.5')],
    ['another canary', page('5 1 3:2', '7 0', '17.000001', 8)],
  ])('is all of it, of %s', (_what, now) =>
    expect(sidesSince(page('12 2 27:6', '100 1'), now, 2_000)).toEqual({
      canary: { requests: 5, errors: 1, times: times({ 3: 2 }) },
      stable: { requests: 7, errors: 0, times: times({}) },
    }),
  );

  test.each([
    ['fewer requests than before', page('11 2', '100 1')],
    ['fewer errors than before', page('20 1', '100 1')],
    ['a bucket that became smaller', page('20 2 27:5', '100 1')],
    ['more errors than requests of that time', page('13 5 27:6', '100 1')],
    ['more than any pod answers', page('12 2 27:6', '40102 1')],
    ['more than any pod answers, since it was started again', page('999999999999 0', '0 0', '18.5')],
  ])('%s: that cannot be', (_what, now) => expect(sidesSince(page('12 2 27:6', '100 1'), now, 2_000)).toBeUndefined());

  test('many in a time that is long enough', () =>
    expect(sidesSince(page('0 0'), page('0 0', '40001 0'), 3_000)?.stable.requests).toBe(40_001));

  test('of several pods it is the sum', () => {
    const some = sidesSince(page('0 0'), page('3 1 5:1', '4 0'), 1_000) ?? NO_SIDES;
    expect(addSides(addSides(NO_SIDES, some), some)).toEqual({
      canary: { requests: 6, errors: 2, times: times({ 5: 2 }) },
      stable: { requests: 8, errors: 0, times: times({}) },
    });
  });
});

describe('slow', () => {
  /** Renders of about so many milliseconds. */
  const renders = (...all: [ms: number, count: number][]) => {
    const counts = times({});
    for (const [ms, count] of all) {
      const bucket = counts.findIndex((_count, index) => borderMs(index) >= ms - 1e-9);
      counts[bucket] = (counts[bucket] ?? 0) + count;
    }
    return counts;
  };

  test.each([
    ['of one time', renders([100, 500]), 130],
    ['with a few that take longer', renders([100, 480], [900, 20]), 130],
    ['with many that take longer', renders([100, 400], [900, 100]), 1_140],
    ['that take no time', renders([1, 500]), 6],
  ])('%s: what takes a quarter more than usual, and 5 ms', (_what, counts, ms) => {
    const bucket = slowBucket(counts, 1.25) as number;
    expect(borderMs(bucket)).toBeGreaterThanOrEqual(ms);
    expect(borderMs(bucket)).toBeLessThan(ms * 1.1);
  });

  test('nobody knows it of too few renders, and nothing is slower than all there is', () => {
    expect(slowBucket(renders([100, 99]), 1.25)).toBeUndefined();
    expect(slowBucket([], 1.25)).toBeUndefined();
    expect(slowBucket(renders([130_000, 500]), 1.25)).toBeUndefined();
    expect(slowBucket(renders([100_000, 500]), 100)).toBeUndefined();
  });

  test('2 ms more are not slow, half as long again is', () => {
    const usual = renders([40, 950], [60, 50]);
    const bucket = slowBucket(usual, 1.25) as number;
    expect(countAbove(renders([42, 950], [62, 50]), bucket)).toBe(countAbove(usual, bucket));
    expect(countAbove(renders([60, 950], [90, 50]), bucket)).toBe(1_000);
  });

  test('what was seen first counts for less and less', () => {
    let known: number[] = [];
    for (let look = 0; look < 50; look += 1) known = learnt(known, renders([100, 1_000]));
    expect(countOf(known)).toBeCloseTo(10_000, 3);
    for (let look = 0; look < 50; look += 1) known = learnt(known, renders([400, 1_000]));
    expect(borderMs(slowBucket(known, 1.25) as number)).toBeGreaterThan(500);
    expect(countOf(known.slice(0, 60))).toBeLessThan(150);
  });
});

describe('clients', () => {
  const withClients = (canary: string, stable = '0', epoch = '17.000001') =>
    readSides(`${text('1 0', '1 0', epoch)}canary-clients=${canary}\nstable-clients=${stable}\n`) as SidesPage;
  const nobody = { seen: 0, failed: [] };

  test('what is new is what was not there before', () => {
    expect(withClients('5 a1 b2', '7 c3').clients).toEqual({
      canary: { seen: 5, failed: ['a1', 'b2'] },
      stable: { seen: 7, failed: ['c3'] },
    });
    expect(clientsSince(withClients('3 a1'), withClients('5 a1 b2', '7 c3'))).toEqual({
      canary: { seen: 2, failed: ['b2'] },
      stable: { seen: 7, failed: ['c3'] },
    });
    expect(clientsSince(withClients('3 a1'), withClients('1 a1', '0', '18.5'))).toEqual({
      canary: { seen: 1, failed: ['a1'] },
      stable: nobody,
    });
    expect(clientsSince(withClients('3 a1'), withClients('1 a1')).canary).toEqual(nobody);
  });

  test('one is one, however many pods he has been to', () => {
    const known = new Set<string>();
    const lists = [
      ['a', 'b'],
      ['b', 'a'],
      ['c', 'c'],
    ];
    expect(lists.map((clients) => countNew(clients, known))).toEqual([2, 0, 1]);
  });

  test('no more than so many are kept', () => {
    const clients = Array.from({ length: 12_000 }, (_unused, n) => String(n));
    expect(countNew(clients, new Set())).toBe(10_000);
  });
});
