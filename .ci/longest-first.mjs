/**
 * The order of Jest's test files: the longest first by the last run on this machine ($CORELANE_TEST_TIMES, which
 * test.sh keeps), so that no long file is left for the end, when the other core has nothing to do. New files come
 * first. Jest's own record of times belongs to a checkout's folder, and each run of CI has another one.
 *
 * `--shard=1/2` are the files of the api project that mostly wait (leases, windows, back-offs), `--shard=2/2` those
 * that mostly compute. test.sh runs the former beside the sidecar tests, the latter when these have ended.
 */
import { readFileSync } from 'node:fs';
import { basename, relative } from 'node:path';
import Sequencer from '@jest/test-sequencer';

/** Commands (helm, kubectl, corelane) or requests by the hundred, one after the other without a pause. */
const COMPUTING = [
  'admission-policies.test.ts',
  'admission.test.ts',
  'chart.test.ts',
  'convert.test.ts',
  'examples.test.ts',
  'install.test.ts',
  'look.test.ts',
  'owned-objects.test.ts',
];

/** Seconds by path; empty before the first run. */
function lastTimes() {
  try {
    return JSON.parse(readFileSync(process.env.CORELANE_TEST_TIMES ?? '', 'utf8'));
  } catch {
    return {};
  }
}

export default class extends Sequencer {
  shard(tests, { shardIndex }) {
    return tests.filter(({ path }) => COMPUTING.includes(basename(path)) === (shardIndex === 2));
  }

  sort(tests) {
    const times = lastTimes();
    const seconds = ({ path }) => times[relative('.', path)]?.seconds ?? Number.POSITIVE_INFINITY;
    // Jest's order first: it decides between new files, by their sizes.
    return super.sort(tests).sort((a, b) => (seconds(a) === seconds(b) ? 0 : seconds(b) - seconds(a)));
  }
}
