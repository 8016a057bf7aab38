/**
 * Adds up the results of `make verify` and of Jest projects: node summary.mjs PREFIX NAME...
 * A missing result counts as a failure: a run that died must not look like one that passed. The files that took longest
 * are named: where a run has become slow, it says why. What failed is said once more: whoever keeps only the end of a
 * long log still reads it.
 */
import { readFileSync } from 'node:fs';
import { stripVTControlCharacters } from 'node:util';

const [prefix = '', ...names] = process.argv.slice(2);

const SLOWEST = 10;
const LINES_OF_A_FAILURE = 30;

/** @param {string} name of a file in .state/results without its ending */
const resultOf = (name) => JSON.parse(readFileSync(`.state/results/${name}.json`, 'utf8'));

/** Seconds of each test file of a project. */
function times(name) {
  try {
    const { testResults = [] } = resultOf(name);
    return testResults.map(({ name: file, startTime, endTime }) => {
      return { seconds: Math.round((endTime - startTime) / 1000), file: file.split('/').at(-1), name };
    });
  } catch {
    return [];
  }
}

/** What failed in a project, with the beginning of what it said. */
function failures(name) {
  try {
    const { testResults = [] } = resultOf(name);
    return testResults.flatMap(({ name: file, message, assertionResults }) => {
      const failed = assertionResults.filter(({ status }) => status === 'failed');
      const said = failed.map(({ fullName, failureMessages }) => ({
        test: fullName,
        text: failureMessages.join('\n'),
      }));
      // A file that could not be loaded has no test that failed.
      if (said.length === 0 && message !== '' && assertionResults.length === 0)
        said.push({ test: 'the file', text: message });
      return said.map((failure) => ({ ...failure, file: file.split('/').at(-1), name }));
    });
  } catch {
    return [];
  }
}

function counts(name) {
  try {
    const result = resultOf(name);
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
  const slowest = names.flatMap(times).sort((a, b) => b.seconds - a.seconds);
  for (const { seconds, file, name } of slowest.slice(0, SLOWEST))
    console.log(`  ${String(seconds).padStart(4)} s  ${name}: ${file}`);
  for (const { name, file, test, text } of names.flatMap(failures)) {
    console.log(`\n  FAILED  ${name}: ${file}: ${test}`);
    const lines = stripVTControlCharacters(text).split('\n').slice(0, LINES_OF_A_FAILURE);
    for (const line of lines) console.log(`    ${line}`.trimEnd());
  }
  for (const { name, passed, failed } of results)
    console.log(`  ${name.padEnd(10)} ${passed} passed, ${failed} failed`);
}
console.log(`${prefix}${total('passed')} passed, ${total('failed')} failed`);
process.exitCode = total('failed') > 0 || total('passed') === 0 ? 1 : 0;
