/** The simulator: repeatable, true to queueing theory, and what the default policy makes of a flash crowd. */

import { compare, type Scenario } from '../../../simulate/compare.ts';
import { EndHeap } from '../../../simulate/heap.ts';
import { erlangC } from '../../../simulate/queueing.ts';
import { Random } from '../../../simulate/random.ts';
import { json, markdown, summaryLine, svg, textTable } from '../../../simulate/report.ts';
import { countFlaps, run } from '../../../simulate/run.ts';
import { fixed } from '../../../simulate/scalers/others.ts';
import { generatedDay, parseTrace, peakBetween, rateAt, steepestRise } from '../../../simulate/trace.ts';
import { type ScalingSpec, scaling } from '../../../src/api/scaling.ts';
import { policyOf } from '../../../src/autoscale/policy.ts';

const model = {
  ...{ workersPerPod: 4, renderMeanS: 0.08, renderCv: 1, startS: 20, warmFactor: 3, warmS: 20, warmCpu: 0.5 },
  ...{ queueLengthPerPod: 100, queueTimeoutS: 10 },
};
const objective = { quantile: 0.99, limitS: 0.5 };

/** Three quarters of an hour around the generated day's flash crowd. */
function flashCrowd(peakRps: number): Scenario {
  const day = generatedDay(peakRps, 1);
  const trace = { ...day, rps: day.rps.slice(13 * 60 + 50, 14 * 60 + 35) };
  const policy = policyOf(scaling.parse({ maxReplicas: 100 }) as ScalingSpec);
  return { trace, model, objective, seed: 1, policy };
}

describe('the default policy in a flash crowd', () => {
  const comparison = compare(flashCrowd(160));
  const { policy, hpa, fixedByRule, results } = comparison;

  test('holds the objective', () => expect(policy.missed).toBeLessThan(0.01));
  test('does not flap', () => expect(policy.flaps).toBe(0));
  test('has the pods that it takes no later than an HPA', () =>
    expect(policy.reachedS).toBeLessThanOrEqual(hpa.reachedS ?? Number.POSITIVE_INFINITY));
  test('costs less than a fixed fleet with the same head-room', () =>
    expect(policy.coreHours / fixedByRule.coreHours).toBeLessThan(0.8));
  test('nobody serves with fewer core-hours than the oracle and misses less', () => {
    const oracle = results.at(-1);
    const better = results.filter(
      ({ coreHours, missed }) => coreHours < (oracle?.coreHours ?? 0) && missed < (oracle?.missed ?? 0),
    );
    expect(better).toEqual([]);
  });

  test('is the same again, to the last digit', () => {
    const scenario = flashCrowd(160);
    const again = compare(scenario);
    expect(json(again, scenario)).toBe(json(comparison, scenario));
    expect(svg(again, scenario)).toBe(svg(comparison, scenario));
    expect(summaryLine(again)).toMatch(/^simulate: core_hours_vs_fixed=\d\.\d\d slo_miss=\d\.\d{4} flaps=0$/);
    expect(textTable(again).split('\n')).toHaveLength(results.length + 1);
    expect(markdown(again, scenario)).toContain('| oracle |');
  });
});

test('another seed is another day', () => {
  expect(generatedDay(100, 2)).not.toEqual(generatedDay(100, 1));
});

test('waits as often as Erlang says, and is as busy as it is offered', () => {
  const trace = { stepS: 60, rps: Array<number>(60).fill(100) };
  // Only waiting makes a request late here: renders are all the same.
  const even = { ...model, renderCv: 0, warmFactor: 1, warmCpu: 0 };
  const limit = { quantile: 0.99, limitS: 0.080001 };
  const { missed, coreHours } = run(fixed('f', 3), { trace, model: even, objective: limit, seed: 3, begin: 3 });
  expect(missed).toBeCloseTo(erlangC(12, 8), 1);
  expect(coreHours).toBeCloseTo(12, 3);
});

test('refuses what waits too long, and counts it as missed', () => {
  const trace = { stepS: 60, rps: Array<number>(10).fill(100) };
  const result = run(fixed('f', 1), { trace, model, objective, seed: 1, begin: 1 });
  // 4 workers render 50 a second: the other half is refused.
  expect(result.refused / result.requests).toBeCloseTo(0.5, 1);
  expect(result.missed).toBeGreaterThan(0.9);
});

test('the heap gives the earliest first', () => {
  const heap = new EndHeap<number>();
  const random = new Random(1);
  const ends = Array.from({ length: 500 }, () => random.fraction());
  for (const [index, end] of ends.entries()) heap.push(end, index);
  const order = ends.map(() => ends[heap.pop()]);
  expect(order).toEqual(ends.toSorted((one, other) => one - other));
});

describe('flaps', () => {
  const trace = { stepS: 60, rps: [...Array<number>(30).fill(100), ...Array<number>(30).fill(150)] };
  const down = (atS: number) => ({ atS, from: 5, to: 4 });
  const up = (atS: number) => ({ atS, from: 4, to: 7 });
  test.each([
    ['down and up within ten minutes', [down(600), up(1100)], 1],
    ['after ten minutes', [down(600), up(1201)], 0],
    ['with other traffic', [down(1700), up(1900)], 0],
    ['up and down is none', [up(600), down(900)], 0],
  ])('%s', (_what, changes, expected) => expect(countFlaps(changes, trace)).toBe(expected));
});

describe('a trace of the user', () => {
  test('with and without times, heading and comments', () => {
    expect(parseTrace('time,rps\n0,5\n30,6\n60,7\n')).toEqual({ stepS: 30, rps: [5, 6, 7] });
    expect(parseTrace('# a day\n5\n6\n')).toEqual({ stepS: 60, rps: [5, 6] });
  });

  test.each([
    ['1\nx\n', /line 2/],
    ['1,2,3\n1,2,3', /line 1/],
    ['1\n-2\n', /line 2/],
    ['1\n', /fewer than two/],
    ['0,1\n60,1\n90,1\n', /evenly/],
    ['', /fewer than two/],
  ])('%j is refused', (text, message) => expect(() => parseTrace(text)).toThrow(message));

  test('the steepest rise of the generated day is its flash crowd', () => {
    const day = generatedDay(160, 1);
    const { atS, rps } = steepestRise(day);
    expect(atS).toBe(14 * 3600);
    expect(rps).toBe(peakBetween(day, 0, 1e9));
    expect(rateAt(day, 1e9)).toBe(day.rps.at(-1));
  });
});
