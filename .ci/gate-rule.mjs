/**
 * Fails if a test of the gate reads a clock, measures a duration or computes a percentile, because a busy machine could
 * turn it red. Move the test to a *.load.test.ts (docs/testing.md). Prints each line that it found, with the reason.
 */
import { globSync, readFileSync } from 'node:fs';

/** Tests on something that runs. What computes only (unit) may compute percentiles. */
const TESTS = '{operator/test/api,sidecar/test,e2e/stories,e2e/alerts,e2e/chart}/*.test.ts';

const RULES = [
  [/\bperformance\.now\(/, 'it measures a duration'],
  [/\bprocess\.hrtime\b/, 'it measures a duration'],
  [/\belapsedMs\b/, 'it looks at how long an answer took'],
  [
    /\bDate\.now\(\)\s*[-<>]|[-<>]=?\s*Date\.now\(\)|expect\(\s*Date\.now\(\)|Than(OrEqual)?\(\s*Date\.now\(\)/,
    'it compares the time of day',
  ],
  [/\b(percentile|quantile)\w*\s*\(/i, 'it computes a percentile'],
  [
    /\bexpect\([^)]*(\bp(50|9\d+)\b|\b[rR]ate\b|[pP]erSecond|[rR]atio\b|[sS]hare\b)[^)]*\)\.[^)]*Than/,
    'its verdict is a rate or a share',
  ],
];

const found = globSync(TESTS)
  .filter((file) => !file.endsWith('.load.test.ts'))
  .sort()
  .flatMap((file) =>
    readFileSync(file, 'utf8')
      .split('\n')
      .flatMap((line, index) => {
        const reasons = RULES.filter(([pattern]) => pattern.test(line)).map(([, reason]) => reason);
        return [...new Set(reasons)].map((reason) => `${file}:${index + 1}: ${reason}: ${line.trim()}`);
      }),
  );
if (found.length > 0) {
  console.log(found.join('\n'));
  console.log('Await a condition, or the order of events; or move the test to a *.load.test.ts (docs/testing.md)');
  process.exitCode = 1;
}
