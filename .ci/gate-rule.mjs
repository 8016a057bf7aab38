/**
 * Fails if a test of the gate, or a helper that it imports, reads a clock, measures a duration or computes a
 * percentile, because a busy machine could turn it red. Move the test to a *.load.test.ts (docs/testing.md). Prints
 * each line that it found, with the reason.
 */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

/** Tests on something that runs. What computes only (unit) may compute percentiles. */
const TESTS = '{operator/test/api,sidecar/test,e2e/stories,e2e/alerts,e2e/chart}/*.test.ts';
/** Folders of helpers. The product, and `until` of corelane run (operator/local), may read clocks. */
const HELPERS = /^(operator\/test|sidecar\/test|e2e\/(stories|alerts|chart))\//;

/** Helpers that read a clock without a verdict, and why. */
const READ_CLOCKS = {
  'e2e/stories/operator.ts': 'measures for operator.load.test.ts',
  'operator/test/api/failing-rounds.ts': 'waits until no try is left',
  'operator/test/support/eventually.ts': 'the last resort of a wait',
  'sidecar/test/agent.ts': 'measures for agent.load.test.ts',
  'sidecar/test/cache.ts': 'waits until a page is stale',
  'sidecar/test/deadlines.ts': 'waits until a deadline is over',
  'sidecar/test/supervisor-versions.ts': 'a lower bound, which a busy machine cannot miss',
  'sidecar/test/supervisor.ts': 'writes figures',
};

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

/** The tests of the gate, and all helpers that they import, directly or through another one. */
function filesOfTheGate() {
  const files = new Set(globSync(TESTS).filter((file) => !file.endsWith('.load.test.ts')));
  // A Set gives what is added to it meanwhile, too.
  for (const file of files)
    for (const [, path] of readFileSync(file, 'utf8').matchAll(/\bfrom '(\.[^']+\.(?:ts|mjs))'/g)) {
      const helper = join(dirname(file), path);
      if (HELPERS.test(helper) && existsSync(helper)) files.add(helper);
    }
  return [...files].sort();
}

function hits(file) {
  return readFileSync(file, 'utf8')
    .split('\n')
    .flatMap((line, index) => {
      const reasons = RULES.filter(([pattern]) => pattern.test(line)).map(([, reason]) => reason);
      return [...new Set(reasons)].map((reason) => `${file}:${index + 1}: ${reason}: ${line.trim()}`);
    });
}

const found = new Map(filesOfTheGate().map((file) => [file, hits(file)]));
const wrong = [...found].flatMap(([file, lines]) => (READ_CLOCKS[file] ? [] : lines));
const needless = Object.keys(READ_CLOCKS).filter((file) => !found.get(file)?.length);
if (wrong.length > 0) {
  console.log(wrong.join('\n'));
  console.log('Await a condition, or the order of events; or move the test to a *.load.test.ts (docs/testing.md).');
  console.log('A helper that reads a clock without a verdict belongs into READ_CLOCKS of .ci/gate-rule.mjs.');
}
if (needless.length > 0) console.log(`Remove from READ_CLOCKS of .ci/gate-rule.mjs: ${needless.join(', ')}`);
if (wrong.length + needless.length > 0) process.exitCode = 1;
