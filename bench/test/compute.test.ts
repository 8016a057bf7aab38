/** The parts of the benches that compute: a wrong bound or a wrong count would make every figure wrong. */

import { plot } from '../../operator/plots/index.ts';
import { accountMs } from '../lib/cpu.ts';
import { closedLoopResponseMs, fifoResponseMs } from '../lib/fifo.ts';
import type { Record as LoadRecord } from '../lib/load.ts';
import type { Note } from '../lib/notes.ts';
import { missingMs, outcomeOf } from '../lib/outcome.ts';
import { createRandom, pick } from '../lib/random.ts';
import { percentile, summarize } from '../lib/stats.ts';
import { table } from '../lib/table.ts';

describe('the perfect queue', () => {
  const work = (...pairs: [at: number, service: number][]) => pairs.map(([at, service]) => ({ at, service }));

  test('who finds a free worker does not wait', () => {
    expect(fifoResponseMs(work([0, 50], [1, 50], [50, 50], [51, 50]), 2)).toEqual([50, 50, 50, 50]);
  });

  test('who does not waits for the one that is free first, in order of arrival', () => {
    expect(fifoResponseMs(work([0, 100], [0, 30], [10, 30], [20, 30], [25, 1]), 2)).toEqual([100, 30, 50, 70, 66]);
  });

  test('clients that ask again at once: with as many workers nobody waits, with fewer as long as Little says', () => {
    expect(new Set(closedLoopResponseMs(13, 15, 50, 1_000))).toEqual(new Set([50]));
    const times = closedLoopResponseMs(20, 15, 50, 3_000);
    expect(times.slice(0, 20)).toEqual([...Array(15).fill(50), ...Array(5).fill(100)]);
    expect(times.reduce((sum, ms) => sum + ms, 0) / times.length).toBeCloseTo((20 * 50) / 15, 0);
  });

  test('one worker, exponential times at load 0.5: the mean of M/M/1', () => {
    const random = createRandom(7);
    const exponential = (mean: number) => -Math.log(1 - random()) * mean;
    let at = 0;
    const arrivals = Array.from({ length: 200_000 }, () => {
      at += exponential(200);
      return { at, service: exponential(100) };
    });
    const response = fifoResponseMs(arrivals, 1);
    const mean = response.reduce((sum, ms) => sum + ms, 0) / response.length;
    expect(Math.abs(mean / 200 - 1)).toBeLessThan(0.03); // 100 ms / (1 - 0.5)
  });
});

test('percentiles are nearest ranks, sorted by number', () => {
  expect(summarize([100, 9, 10])).toEqual({ p50: 10, p95: 100, p99: 100, max: 100 });
  const oneToHundred = Array.from({ length: 100 }, (_unused, index) => index + 1);
  for (const percent of oneToHundred) expect(percentile(oneToHundred, percent)).toBe(percent);
  expect(summarize([]).p99).toBeNaN();
});

describe('what a scenario adds up to', () => {
  const record = (id: string, extra: Partial<LoadRecord>): LoadRecord => ({
    ...{ group: 'client', id, at: 0, ms: 1, status: 0 },
    ...extra,
  });
  const note = (event: Note['event'], extra: Partial<Note>): Note => ({ worker: 0, pid: 1, at: 0, event, ...extra });

  test('the workers tell what has been begun, and what overlapped', () => {
    const records = [
      record('fine', { status: 200, ms: 5 }),
      record('begun and lost', { error: 'ECONNRESET' }),
      record('cut short', { status: 200, error: 'closed' }),
      record('refused', { status: 503 }),
      record('left', { error: 'aborted' }),
      record('other', { group: 'slow', status: 502 }),
    ];
    const begun = ['fine', 'begun and lost', 'cut short', 'other'];
    const notes = begun.map((id, index) => note('begin', { id, inFlight: index === 3 ? 2 : 1 }));
    expect(outcomeOf(records, notes, 'client')).toEqual({
      ...{ requests: 5, answered: 1, failed: 3, failedUnstarted: 1, aborted: 1, overlaps: 1 },
      latency: { p50: 5, p95: 5, p99: 5, max: 5 },
    });
  });

  test('a stuck worker is missing until its next process begins something', () => {
    const notes = [
      note('begin', { id: 'runaway-0', at: 100 }),
      note('begin', { id: 'a', at: 150, worker: 1 }),
      note('up', { at: 1_000, pid: 2 }),
      note('begin', { id: 'b', at: 1_200, pid: 2 }),
    ];
    expect(missingMs(notes, 'runaway-0')).toBe(1_100);
    expect(missingMs(notes.slice(0, 2), 'runaway-0')).toBeUndefined();
    expect(missingMs(notes, 'runaway-1')).toBeUndefined();
  });
});

test('the same seed gives the same choices, all of them in range', () => {
  const choices = (seed: number) => {
    const random = createRandom(seed);
    return Array.from({ length: 1_000 }, () => pick(random, 15));
  };
  expect(choices(1)).toEqual(choices(1));
  expect(choices(2)).not.toEqual(choices(1));
  expect(new Set(choices(1))).toEqual(new Set(Array.from({ length: 15 }, (_unused, index) => index)));
});

test('CPU time of a process with a strange name', () => {
  expect(accountMs('12 (a) b (c) S 1 12 12 0 -1 4194560 1 2 3 4 150 50 0 0 20 0 1 0')).toBe(2_000);
  expect(accountMs('')).toBe(0);
});

test('tables are aligned, names to the left and figures to the right', () => {
  expect(table(['system', 'p99'], [['a', 5]])).toBe('| system | p99 |\n| ------ | --: |\n| a      |   5 |');
});

test('a picture has every value and no markup of its texts', () => {
  const bars = [{ series: 'a & b', value: 1_000, text: '<1000>' }];
  const points = [0.5, 0.8, 0.9].map((x) => ({ x, y: x * 100 }));
  const svg = plot([
    { title: 'bars', subtitle: '', groups: [{ label: 'one', bars }] },
    { title: 'lines', subtitle: '', xLabel: 'load', curves: [{ name: 'a & b', points }] },
  ]);
  expect(svg).toContain('&#60;1000&#62;');
  expect(svg).toContain('a &#38; b');
  expect(svg.match(/<circle/g)).toHaveLength(3);
  expect(svg).not.toContain('NaN');
});

test('a plot over time has what happened meanwhile, and one colour for a name', () => {
  const time = { endS: 60, ticks: [[0, '0 s'] as [number, string]] };
  const points: [number, number][] = [
    [0, 5],
    [10, 5],
    [20, 5],
    [30, 50_000],
  ];
  const svg = plot([
    { ...time, title: 'linear', lines: [{ name: 'one', points }], isStepped: true, events: [[5, '1 → 4']] },
    {
      ...time,
      title: 'logarithmic',
      lines: [{ name: 'one', points }],
      logarithmicFrom: 10,
      max: 1_000,
      bands: [{ beginS: 1, endS: 2, text: 'rollout' }],
      dots: [{ atS: 1, text: '<3> failed' }],
      marks: [{ value: 100, text: 'objective' }],
    },
  ]);
  expect(svg.match(/stroke="#0072b2"/g)).toHaveLength(2);
  // Of four points of a line of steps the third changes nothing, nor does the second.
  expect(svg).toMatch(/d="M[\d.]+ [\d.]+H[\d.]+V[\d.]+"/);
  for (const text of ['1 → 4', 'rollout', '&#60;3&#62; failed', 'objective', '1,000']) expect(svg).toContain(text);
  expect(svg).not.toContain('NaN');
});
