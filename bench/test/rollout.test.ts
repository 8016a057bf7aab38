/** The parts of `make bench-rollout` that compute. */
import type { Record as LoadRecord } from '../lib/load.ts';
import type { Note } from '../lib/notes.ts';
import { filesOf, PARTS } from '../rollout/apps.ts';
import { failedIn } from '../rollout/chunks.ts';
import { newCase } from '../rollout/judge.ts';
import { type Case, judgeMany, type Look } from '../rollout/judgement.ts';
import { isKept, lastLine, markdown, picture, type RolloutReport } from '../rollout/report.ts';
import {
  type Death,
  renderedBy,
  resultOf,
  type Side,
  type Stretch,
  secondsToLast,
  shareErrorPoints,
  shareOverTime,
  wantedOverTime,
} from '../rollout/sides.ts';

const record = (number: number, extra: Partial<LoadRecord> = {}): LoadRecord => ({
  ...{ group: 'visitor', id: `visitor-${number}`, at: 1_000 + number, ms: 1, status: 200, to: '10.0.0.1' },
  ...extra,
});
const note = (event: Note['event'], id: string, at: number): Note => ({ worker: 0, pid: 1, at, event, id });
const stretch = (extra: Partial<Stretch> = {}): Stretch => ({
  ...{ name: '50 %', share: 0.5, beganMs: 0, fromMs: 1_000, toMs: 2_000, pods: { stable: 2, canary: 1 }, fallbacks: 7 },
  ...extra,
});

test('a request was rendered by the version that ended it last; one that nobody has ended by none', () => {
  const rendered = renderedBy({
    stable: [note('begin', 'a', 1), note('end', 'a', 2), note('end', 'b', 9), note('begin', 'c', 1)],
    canary: [note('begin', 'b', 3), note('end', 'b', 4), note('end', 'd', 5), note('begin', 'a', 1)],
  });
  expect([...rendered]).toEqual([
    ['a', 'stable'],
    ['b', 'stable'],
    ['d', 'canary'],
  ]);
});

describe('a stretch', () => {
  const rendered = new Map<string, Side>(
    Array.from({ length: 100 }, (_unused, n) => [`visitor-${n}`, n % 4 === 0 ? 'canary' : 'stable']),
  );
  const records = Array.from({ length: 100 }, (_unused, n) => record(n));

  test('has the share of what was rendered, from the moment at which everybody knew it', () => {
    expect(resultOf(stretch(), records, rendered, [])).toMatchObject({
      ...{ requests: 100, reached: 0.25, lost: 0, fallbacks: 7 },
    });
    // 1000 to 1009: three of ten.
    expect(resultOf(stretch({ toMs: 1_010 }), records, rendered, [])).toMatchObject({ requests: 10, reached: 0.3 });
    expect(resultOf(stretch({ fromMs: 1_001, toMs: 1_004 }), records, rendered, []).reached).toBe(0);
    expect(resultOf(stretch({ fromMs: 3_000, toMs: 4_000 }), records, rendered, []).reached).toBeNaN();
    // Nobody has rendered these.
    const lost = Array.from({ length: 50 }, (_unused, n) => record(200 + n, { status: 0 }));
    expect(resultOf(stretch(), [...records, ...lost], rendered, [])).toMatchObject({ requests: 150, reached: 0.25 });
  });

  test('has lost what was not answered whole, also while it was being changed', () => {
    const lost = [
      record(1, { at: 500, status: 503 }),
      record(2, { error: 'closed' }),
      record(3, { at: 2_000, status: 0 }),
    ];
    expect(resultOf(stretch(), [...records, ...lost], rendered, [])).toMatchObject({ lost: 2, atDead: 0 });
  });

  test('tells apart whose own connection died with a pod', () => {
    const deaths: Death[] = [{ host: '10.0.0.1', killedMs: 1_500, forgottenMs: 1_600 }];
    const failed = (extra: Partial<LoadRecord>) => record(1, { status: 0, error: 'ECONNRESET', ...extra });
    const of = (extra: Partial<LoadRecord>) => {
      const { lost, atDead } = resultOf(stretch(), [failed(extra)], rendered, deaths);
      return { lost, atDead };
    };
    const theirs = { lost: 0, atDead: 1 };
    const ours = { lost: 1, atDead: 0 };
    expect(of({ at: 1_490, ms: 20 })).toEqual(theirs);
    expect(of({ at: 1_550, ms: 3_000 })).toEqual(theirs);
    expect(of({ at: 1_490, ms: 5 })).toEqual(ours);
    expect(of({ at: 1_601, ms: 5 })).toEqual(ours);
    expect(of({ at: 1_490, ms: 20, to: '10.0.0.2' })).toEqual(ours);
  });
});

test('the share error is that of the worst stretch, in points, to either side', () => {
  const result = (wanted: number, reached: number) => ({ ...resultOf(stretch(), [], new Map(), []), wanted, reached });
  expect(shareErrorPoints([result(0.05, 0.052), result(0.5, 0.49), result(0, 0)])).toBeCloseTo(1);
  expect(shareErrorPoints([result(0, 0.3), result(0.5, 0.49)])).toBeCloseTo(30);
  expect(shareErrorPoints([result(0, Number.NaN)])).toBeNaN();
});

test('an abort is over with the last visitor that the new version has rendered', () => {
  const notes = [
    note('end', 'visitor-1', 900),
    note('end', 'visitor-3', 3_500),
    note('end', 'visitor-2', 1_200),
    note('begin', 'visitor-4', 3_600),
    note('end', 'hello', 3_700),
    note('end', 'visitor-9', 9_000),
  ];
  expect(secondsToLast(notes, 'visitor', 1_000, 5_000)).toBe(2.5);
  expect(secondsToLast(notes, 'visitor', 4_000, 5_000)).toBe(0);
});

test('shares over time, in percent, as they came and as they were wanted', () => {
  const sides = new Map<string, Side>([
    ['visitor-1', 'canary'],
    ['visitor-2', 'stable'],
    ['visitor-3', 'canary'],
  ]);
  const records = [record(1, { at: 0 }), record(2, { at: 1_900 }), record(3, { at: 5_000 }), record(4, { at: 5_000 })];
  expect(shareOverTime(records, sides, 0, 2)).toEqual([
    [0, 50],
    [4, 100],
  ]);
  expect(wantedOverTime([stretch()], 500)).toEqual([
    [0.5, 50],
    [1.5, 50],
  ]);
});

const traffic = (system: string, lost: number) => ({
  ...{ system, requests: 1_000, perSecond: 400, shareErrorPoints: 0.0412, abortSeconds: 0.731, lost, atDead: 3 },
  stretches: [resultOf(stretch(), [record(1)], new Map([['visitor-1', 'canary']]), [])],
  failures: { ECONNREFUSED: 3 },
  wanted: [[0, 50]] as [number, number][],
  curve: [
    [0, 50],
    [2, 51],
  ] as [number, number][],
});
const report: RolloutReport = {
  machine: { cpus: 2, kernel: '6.18', node: 'v24', loadBefore: 0.1 },
  seconds: 60,
  traffic: [traffic('Corelane', 0), traffic('a Deployment per version', 40)],
};

test('the last line is of Corelane, with - for what was not run', () => {
  expect(lastLine(report)).toBe(
    'rollout: lost=0 share_error_points=0.04 abort_seconds=0.73 false_aborts=- chunk_errors=-',
  );
  const row = { app: 'next', rollouts: 20, chunks: 120, scriptsMissing: 0, failures: { 404: 40 } };
  const rest: RolloutReport = {
    machine: report.machine,
    seconds: 1,
    judgement: {
      ...{ runs: 1_000, seed: 1, falseAborts: 2, byErrorRate: [{ errorRate: 0.01, runs: 1_000, falseAborts: 2 }] },
      errorsToAbort: [{ sharePercent: 5, median: 4, max: 4 }],
    },
    chunks: [
      { ...row, system: 'Corelane', chunkErrors: 0 },
      { ...row, system: 'a Deployment', chunkErrors: 40 },
    ],
  };
  expect(lastLine(rest)).toBe('rollout: lost=- share_error_points=- abort_seconds=- false_aborts=2 chunk_errors=0');
  expect(markdown(rest)).toMatch(/^\| next, a Deployment .* 40 x 404 \|$/m);
});

test('one lost request, or one chunk, of Corelane is a failure; those of others are not', () => {
  const own = {
    system: 'Corelane',
    app: 'next',
    rollouts: 1,
    chunks: 6,
    chunkErrors: 0,
    scriptsMissing: 0,
    failures: {},
  };
  const other = { ...own, system: 'a Deployment', chunkErrors: 6 };
  expect(isKept({ ...report, chunks: [own, other] })).toBe(true);
  expect(isKept({ ...report, chunks: [{ ...own, chunkErrors: 1 }, other] })).toBe(false);
  expect(isKept({ ...report, chunks: [{ ...own, scriptsMissing: 1 }, other] })).toBe(false);
  expect(isKept({ ...report, traffic: [traffic('Corelane', 1)] })).toBe(false);
});

test('the page has every stretch of every system, and the picture a chart of each', () => {
  const page = markdown(report);
  expect(page.match(/^\| 50 % /gm)).toHaveLength(2);
  expect(page).toContain('How requests failed: 3 x ECONNREFUSED.');
  expect(picture(report).match(/a Deployment per version/g)?.length).toBeGreaterThan(0);
});

describe('canaries by chance', () => {
  /** Stops whoever has made so many errors. */
  const stopsAt = (limit: number, looks: [number, Look][] = []) => {
    return (): Case => {
      let errors = 0;
      return {
        look: (share, figures) => {
          looks.push([share, figures]);
          errors += figures.canary.errors;
        },
        isStopped: () => errors >= limit,
      };
    };
  };

  test('the same seed gives the same; each rate of errors has its runs', () => {
    // As many as some of those make that fail once in a hundred times.
    const result = judgeMany(stopsAt(29), 50, 7);
    expect(judgeMany(stopsAt(29), 50, 7)).toEqual(result);
    expect(judgeMany(stopsAt(29), 50, 8)).not.toEqual(result);
    expect(result.byErrorRate.map(({ runs }) => runs)).toEqual([10, 10, 10, 10, 10]);
    expect(result.falseAborts).toBe(result.byErrorRate.reduce((sum, { falseAborts }) => sum + falseAborts, 0));
    const stopped = result.byErrorRate.map(({ falseAborts }) => falseAborts);
    expect([stopped[0], stopped[1], stopped[3], stopped[4]]).toEqual([0, 0, 10, 10]);
    expect(stopped[2]).toBeGreaterThan(0);
  });

  test('errors of a broken one are counted until it is stopped', () => {
    const { errorsToAbort } = judgeMany(stopsAt(4), 20, 1);
    expect(errorsToAbort.map(({ sharePercent }) => sharePercent)).toEqual([50, 5]);
    for (const { median, max } of errorsToAbort) {
      expect(median).toBeGreaterThanOrEqual(4);
      // A look has ten requests.
      expect(max).toBeLessThanOrEqual(4 + 10);
    }
  });

  test('the operator as it judges by default stops who fails always, soon, and hardly anybody who is no worse', () => {
    const { falseAborts, errorsToAbort } = judgeMany(newCase, 100, 1);
    expect(falseAborts).toBeLessThanOrEqual(3);
    for (const { max } of errorsToAbort) expect(max).toBeLessThan(60);
  });

  test('sides are as large as the share says, and all that is counted is of them', () => {
    const looks: [number, Look][] = [];
    judgeMany(stopsAt(Number.POSITIVE_INFINITY, looks), 5, 1);
    // Of those that are no worse; the broken ones' looks are shorter.
    const of = (share: number) =>
      looks.filter(([at, { stable, canary }]) => at === share && stable.requests + canary.requests === 60);
    const part = (share: number) => {
      const sum = of(share).reduce((total, [, { canary }]) => total + canary.requests, 0);
      return sum / (60 * of(share).length);
    };
    expect(part(500)).toBeCloseTo(0.05, 1);
    expect(part(5_000)).toBeCloseTo(0.5, 1);
    for (const [, { canary, stable }] of looks.slice(0, 500))
      for (const { requests, errors, renders, slow } of [canary, stable]) {
        expect(errors + renders).toBe(requests);
        expect(slow).toBeLessThanOrEqual(renders);
      }
  });
});

test.each(['next', 'nuxt'] as const)(
  'the two versions of %s differ in every part, and in nothing that loads them',
  (app) => {
    const [first, second] = [filesOf(app, '1'), filesOf(app, '2')];
    const same = Object.keys(first).filter((path) => first[path] === second[path]);
    expect(Object.keys(second)).toEqual(Object.keys(first));
    expect(same.filter((path) => path.includes('part-'))).toEqual([]);
    expect(same).toContain('app/parts/load.js');
    expect(Object.keys(first).filter((path) => path.includes('part-'))).toHaveLength(PARTS);
  },
);

test('a part that did not come has failed, and so has one of the other version', () => {
  const texts = ['part 0 of version 1', 'part 1 failed: ChunkLoadError: ...', 'part 2 of version 2'];
  expect(failedIn(texts, '1')).toBe(2);
  expect(failedIn(texts.slice(0, 1), '1')).toBe(0);
});
