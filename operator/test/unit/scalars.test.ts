/** Durations, sizes and quantities as numbers. The checks of the fields themselves are in api/admission.test.ts. */
import { durationMs, quantityOf, sizeBytes } from '../../src/api/scalars.ts';

test.each([
  ['0s', 0],
  ['250ms', 250],
  ['10s', 10_000],
  ['5m', 300_000],
  ['1h', 3_600_000],
  ['007s', 7_000],
])('%s is a duration of %d ms', (text, expected) => {
  expect(durationMs(text)).toBe(expected);
});

test.each(['', '10', 's', '-1s', '1.5s', '1m30s', '10 s', '1d', '10S', '1234567s', '1s\n', '1e3s'])(
  '%j is no duration',
  (text) => {
    expect(() => durationMs(text)).toThrow(RangeError);
  },
);

test.each([
  ['1Ki', 1024],
  ['64Ki', 65_536],
  ['8Mi', 8 * 2 ** 20],
  ['1Gi', 2 ** 30],
])('%s is a size of %d bytes', (text, expected) => {
  expect(sizeBytes(text)).toBe(expected);
});

test.each(['', '1', '0Ki', '1K', '1M', '1.5Mi', '-1Mi', '1Ti', '1Mi\n', '1 Mi'])('%j is no size', (text) => {
  expect(() => sizeBytes(text)).toThrow(RangeError);
});

test.each([
  ['100m', 0.1],
  ['1', 1],
  ['0.5', 0.5],
  ['.5', 0.5],
  ['1.', 1],
  ['+1', 1],
  ['-1', -1],
  ['1k', 1000],
  ['64Mi', 64 * 2 ** 20],
  ['.5Gi', 2 ** 29],
  ['1Pi', 2 ** 50],
  ['129e6', 129e6],
  ['128974848000m', 128_974_848],
  ['1E3', 1000],
  ['1E', 1e18],
  ['12u', 0.000012],
  ['170123456n', 0.170123456],
  ['9e99', 2 ** 63],
])('%s is a quantity of %d', (text, expected) => {
  expect(quantityOf(text) / expected).toBeCloseTo(1, 9);
});

test.each(['', 'm', '.', '1K', '1mi', '1e', '1e3Mi', '1 ', '1\n', 'x'])('%j is no quantity', (text) => {
  expect(() => quantityOf(text)).toThrow(RangeError);
});
