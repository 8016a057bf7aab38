/**
 * Adds up the results of `make verify` and of Jest projects: node summary.mjs PREFIX NAME...
 * A missing result counts as a failure: a run that died must not look like one that passed.
 */
import { readFileSync } from 'node:fs';

const [prefix = '', ...names] = process.argv.slice(2);

/** @param {string} name of a file in .state/results without its ending */
function counts(name) {
  try {
    const result = JSON.parse(readFileSync(`.state/results/${name}.json`, 'utf8'));
    const failedSuites = result.numRuntimeErrorTestSuites ?? 0;
    return {
      passed: result.passed ?? result.numPassedTests,
      failed: (result.failed ?? result.numFailedTests) + failedSuites,
    };
  } catch {
    return { passed: 0, failed: 1 };
  }
}

const results = names.map((name) => ({ name, ...counts(name) }));
const total = (key) => results.reduce((sum, result) => sum + result[key], 0);
if (results.length > 1) {
  for (const { name, passed, failed } of results)
    console.log(`  ${name.padEnd(10)} ${passed} passed, ${failed} failed`);
}
console.log(`${prefix}${total('passed')} passed, ${total('failed')} failed`);
process.exitCode = total('failed') > 0 || total('passed') === 0 ? 1 : 0;
