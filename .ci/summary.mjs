/**
 * Adds up the results of `make verify` and of Jest projects: node summary.mjs PREFIX NAME...
 * A missing result counts as a failure: a run that died must not look like one that passed. The files that took longest
 * are named: where a run has become slow, it says why. What failed is said once more, and its names behind that:
 * whoever keeps only the end of a long log still reads it.
 */
import { readFileSync } from 'node:fs';
import { stripVTControlCharacters } from 'node:util';

const [prefix = '', ...names] = process.argv.slice(2);

const SLOWEST = 10;
const LINES_OF_A_FAILURE = 30;
/** Jest's heading in the messages of a file. */
const OUTSIDE = '● Test suite failed to run';

/** @param {string} name of a file in .state/results without its ending */
const resultOf = (name) => JSON.parse(readFileSync(`.state/results/${name}.json`, 'utf8'));

/** What pressure.mjs has written of a project: by path, each test file's seconds and how busy the machine was. */
function pressure(name) {
  try {
    return resultOf(`${name}.pressure`);
  } catch {
    return {};
  }
}

/** @returns ", CPU pressure 40 %, steal 2 %", or nothing where it is not known */
const busy = ({ pressurePercent, stealPercent } = {}) =>
  typeof pressurePercent === 'number' ? `CPU pressure ${pressurePercent} %, steal ${stealPercent} %` : '';

/** Seconds of each test file of a project, and how busy the machine was meanwhile. */
const times = (name) =>
  Object.entries(pressure(name)).map(([path, known]) => ({ ...known, file: path.split('/').at(-1), name }));

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
      // What failed outside of its tests: it could not be loaded, or an `afterAll` has thrown.
      const outside = stripVTControlCharacters(message).split(OUTSIDE).at(1);
      if (outside !== undefined) said.push({ test: 'outside of its tests', text: outside.trim() });
      const known = Object.entries(pressure(name)).find(([path]) => file.endsWith(path))?.[1];
      return said.map((failure) => ({ ...failure, file: file.split('/').at(-1), name, busy: busy(known) }));
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
  for (const { seconds, file, name, ...known } of slowest.slice(0, SLOWEST))
    console.log(`  ${String(Math.round(seconds)).padStart(4)} s  ${name}: ${file}  (${busy(known)})`);
  const failed = names.flatMap(failures);
  for (const { name, file, test, text, busy } of failed) {
    console.log(`\n  FAILED  ${name}: ${file}: ${test}`);
    if (busy) console.log(`    while the file ran: ${busy}`);
    const lines = stripVTControlCharacters(text).split('\n').slice(0, LINES_OF_A_FAILURE);
    for (const line of lines) console.log(`    ${line}`.trimEnd());
  }
  console.log('');
  for (const { name, file, test } of failed) console.log(`  FAILED  ${name}: ${file}: ${test}`);
  for (const { name, ...count } of results)
    console.log(`  ${name.padEnd(10)} ${count.passed} passed, ${count.failed} failed`);
  // How long each part took, from .ci/run.
  const { CORELANE_MINUTES: minutes } = process.env;
  if (minutes) console.log(`  minutes    ${minutes.replace(/, $/, '')}`);
}
console.log(`${prefix}${total('passed')} passed, ${total('failed')} failed`);
process.exitCode = total('failed') > 0 || total('passed') === 0 ? 1 : 0;
