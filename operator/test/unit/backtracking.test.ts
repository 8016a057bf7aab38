/**
 * Long texts of strangers are read once. An expression that looks through them anew from each place takes minutes for
 * some hundred kilobytes, in which the operator, or the command line, does nothing else.
 */
import { runInNewContext } from 'node:vm';
import { hasSeveralProcesses } from '../../check/processes.ts';
import { harmless } from '../../cli/run/screen.ts';
import { parseManifests } from '../../convert/manifests.ts';
import { quantityOf } from '../../src/api/scalars.ts';
import { isSubset } from '../../src/kube/subset.ts';

/** Each takes some milliseconds; one that backtracks takes longer than this by orders of magnitude. */
const LIMIT_MS = 5_000;
const LONG = 200_000;

const pm2 = (...args: string[]) => hasSeveralProcesses({ name: 'worker', command: ['pm2', ...args] });
const yaml = (text: string) =>
  parseManifests(`kind: A\nmetadata: { name: a }\nx: "${text}"\ny:\n- 1\n`, 'a.yaml')[0]?.hasFlatLists;

test.each<[what: string, work: () => unknown, found: unknown]>([
  ['a quantity of many digits', () => quantityOf('1'.repeat(LONG)), 2 ** 63],
  ['nearly such a quantity', () => isSubset({ limits: `${'1'.repeat(LONG)}x` }, { limits: '1' }), false],
  ['a quantity with a dot', () => isSubset({ limits: `1.${'1'.repeat(LONG)}x` }, { limits: '1' }), false],
  ['a file with many colons and hashes', () => yaml(':#'.repeat(LONG)), true],
  ['a file with many blanks', () => yaml(`: ${' '.repeat(LONG)}x`), true],
  ['arguments of PM2', () => pm2('a'.repeat(LONG)), false],
  ['names of PM2', () => pm2('pm2'.repeat(LONG)), false],
  ['escapes', () => harmless('\u001b['.repeat(LONG)), ''],
  ['numbers in an escape', () => harmless(`\u001b[${'1;'.repeat(LONG)}`).length > 0, true],
])('%s', (_what, work, found) => {
  expect(runInNewContext('work()', { work }, { timeout: LIMIT_MS })).toEqual(found);
});
