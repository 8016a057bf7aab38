/**
 * The order of Jest's test files: the longest first by the last run on this machine ($CORELANE_TEST_TIMES, which
 * test.sh keeps), so that no long file is left for the end, when the other core has nothing to do. New files come
 * first. Jest's own record of times belongs to a checkout's folder, and each run of CI has another one.
 */
import { readFileSync } from 'node:fs';
import { relative } from 'node:path';
import Sequencer from '@jest/test-sequencer';

/** Seconds by path; empty before the first run. */
function lastTimes() {
  try {
    return JSON.parse(readFileSync(process.env.CORELANE_TEST_TIMES ?? '', 'utf8'));
  } catch {
    return {};
  }
}

export default class extends Sequencer {
  sort(tests) {
    const times = lastTimes();
    const seconds = ({ path }) => times[relative('.', path)]?.seconds ?? Number.POSITIVE_INFINITY;
    // Jest's order first: it decides between new files, by their sizes.
    return super.sort(tests).sort((a, b) => (seconds(a) === seconds(b) ? 0 : seconds(b) - seconds(a)));
  }
}
