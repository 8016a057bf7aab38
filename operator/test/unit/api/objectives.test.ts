/** Objectives as numbers. */
import { objectivesOf } from '../../../src/api/objectives.ts';
import { type ObjectivesSpec, objectives } from '../../../src/api/spec/objectives.ts';

const weights = (limit: string) =>
  objectivesOf({ latency: { p99: limit } }).latency[0]?.weights.map(({ leS, weight }) => [leS, weight]);

test('a percentage is the share that one would write', () => {
  const ratio = (availability: number) => objectivesOf({ availability }).availability;
  expect([50, 99, 99.9, 99.95, 99.995, 99.999].map(ratio)).toEqual([0.5, 0.99, 0.999, 0.9995, 0.99995, 0.99999]);
});

test('a time is that of its quantile, whatever the order in the file', () => {
  const { latency } = objectivesOf({ latency: { p99: '2s', p50: '100ms', p90: undefined } });
  const facts = latency.map(({ name, quantile, limitS }) => [name, quantile, limitS]);
  expect(new Map(facts.map(([name, ...rest]) => [name, rest]))).toEqual(
    new Map([
      ['p50', [0.5, 0.1]],
      ['p99', [0.99, 2]],
    ]),
  );
});

test.each<[string, [number, number][]]>([
  ['25ms', [[0.025, 1]]],
  ['500ms', [[0.5, 1]]],
  ['30s', [[30, 1]]],
  [
    '400ms',
    [
      [0.25, 0.4],
      [0.5, 0.6],
    ],
  ],
  [
    '3s',
    [
      [2.5, 0.8],
      [5, 0.2],
    ],
  ],
  ['5ms', [[0.025, 0.2]]],
])('%s counts these buckets', (limit, expected) => {
  expect(weights(limit)).toEqual(expected);
});

test('the share of a time between two buckets is what histogram_quantile makes of it', () => {
  // 100 requests, 90 up to 250 ms and 100 up to 500 ms: the p96 is 250 ms + 250 ms * 6 / 10.
  const counts = new Map([
    [0.25, 90],
    [0.5, 100],
  ]);
  const { latency } = objectivesOf({ latency: { p95: '400ms' } });
  const within = latency[0]?.weights.reduce((sum, { leS, weight }) => sum + weight * (counts.get(leS) ?? 0), 0);
  expect(within).toBeCloseTo(96, 9);
});

test('every time that the schema lets through, from the first bucket on, has buckets whose weights are one', () => {
  for (const text of ['25ms', '27ms', '99ms', '251ms', '1001ms', '9999ms', '29s', '30000ms']) {
    const { latency = {} } = objectives.parse({ latency: { p50: text } }) as ObjectivesSpec;
    const sum = (objectivesOf({ latency }).latency[0]?.weights ?? []).reduce((total, { weight }) => total + weight, 0);
    expect([text, sum]).toEqual([text, expect.closeTo(1, 9)]);
  }
});

test('no objectives are none', () => {
  expect([objectivesOf(undefined), objectivesOf({}), objectivesOf({ latency: {} })]).toEqual(
    Array(3).fill({ latency: [] }),
  );
});
