/**
 * Adds up results: node summary.mjs PREFIX NAME... A missing result counts as a failure: a run that died must not look
 * like one that passed. Before the last line stand the files that took longest, the counts, and what failed with the
 * beginning of what it said: CI shows only the end of a long log.
 *
 * A result is .state/results/NAME.json, of Jest or { passed, failed }; of the latter NAME.1.failure says what failed
 * first: a line with its name, and its output. .ci/run names the targets that failed in $CORELANE_FAILED. Where no
 * result of such a target says why, the end of its log does (.state/results/TARGET.log).
 */
import { readFileSync } from 'node:fs';
import { stripVTControlCharacters } from 'node:util';

const [prefix = '', ...names] = process.argv.slice(2);

const SLOWEST = 10;
/** Of one failure, and of all: more are not read, and CI shows only the last 80 lines of a log. */
const LINES_OF_A_FAILURE = 30;
const LINES_OF_ALL = 60;
const LINES_MIN = 3;
/** Jest's heading in the messages of a file. */
const OUTSIDE = '● Test suite failed to run';
/** The targets of .ci/run, and the results of each. */
const TARGETS = {
  verify: ['verify'],
  docs: ['docs'],
  test: ['unit', 'api-beside', 'sidecar', 'api-after'],
  e2e: ['e2e'],
};

const read = (file) => readFileSync(`.state/results/${file}`, 'utf8');

/** @returns undefined where there is none, or only a part of it */
function json(name) {
  try {
    return JSON.parse(read(`${name}.json`));
  } catch {
    return undefined;
  }
}

/** Lines without colours and without empty ones at either end. The indentation stays. */
const linesOf = (text) =>
  stripVTControlCharacters(text)
    .replace(/^\s*\n/, '')
    .trimEnd()
    .split('\n');

/** @returns "CPU pressure 40 %, steal 2 %", or nothing where it is not known */
const busy = ({ pressurePercent, stealPercent } = {}) =>
  typeof pressurePercent === 'number' ? `CPU pressure ${pressurePercent} %, steal ${stealPercent} %` : '';

/** By path: what pressure.mjs has written of a project, each test file's seconds and how busy the machine was. */
const pressure = (name) => json(`${name}.pressure`) ?? {};

const times = (name) =>
  Object.entries(pressure(name)).map(([path, known]) => ({ ...known, file: path.split('/').at(-1), name }));

/** What failed in the test files of a Jest project. */
function failedTests(name, testResults) {
  return testResults.flatMap(({ name: path, message, assertionResults }) => {
    const file = path.split('/').at(-1);
    const failed = assertionResults.filter(({ status }) => status === 'failed');
    const said = failed.map(({ fullName, failureMessages }) => [fullName, failureMessages.join('\n')]);
    // What failed outside of its tests: it could not be loaded, or an `afterAll` has thrown.
    const outside = stripVTControlCharacters(message).split(OUTSIDE).at(1);
    if (outside !== undefined) said.push(['outside of its tests', outside]);
    const known = Object.entries(pressure(name)).find(([relative]) => path.endsWith(relative))?.[1];
    return said.map(([test, text]) => ({ what: `${name}: ${file}: ${test}`, lines: linesOf(text), busy: busy(known) }));
  });
}

/** What failed by the results of this name. */
function failures(name) {
  const result = json(name);
  if (result?.testResults) return failedTests(name, result.testResults);
  return Array.from({ length: result?.failed ?? 0 }, (_unused, index) => {
    const [what, ...lines] = linesOf(read(`${name}.${index + 1}.failure`));
    return { what: `${name}: ${what}`, lines };
  });
}

/** A failure that no result tells: the end of the log says why. */
function untold(what, log) {
  try {
    return { what, lines: linesOf(read(log)), isLog: true };
  } catch {
    return { what, lines: [] };
  }
}

function counts(name) {
  const result = json(name);
  if (!result) return { passed: 0, failed: 1 };
  return {
    passed: result.passed ?? result.numPassedTests,
    failed: (result.failed ?? result.numFailedTests) + (result.numRuntimeErrorTestSuites ?? 0),
  };
}

/** How long the tests of a project took, without what is set up for them. */
function minutes(name) {
  const { startTime, testResults = [] } = json(name) ?? {};
  const end = Math.max(...testResults.map(({ endTime }) => endTime));
  return startTime !== undefined && Number.isFinite(end) ? `, ${((end - startTime) / 60_000).toFixed(1)} min` : '';
}

const results = names.map((name) => ({ name, ...counts(name) }));
const failed = names.flatMap(failures);
for (const target of (process.env.CORELANE_FAILED ?? '').split(' ').filter(Boolean)) {
  const own = results.filter(({ name }) => TARGETS[target]?.includes(name));
  if (own.some(({ name }) => failures(name).length > 0)) {
    const missing = own.filter(({ name }) => !json(name));
    failed.push(...missing.map(({ name }) => untold(`${name}: it ended without a result`, `${name}.log`)));
    continue;
  }
  failed.push(untold(`make ${target}`, `${target}.log`));
  // It failed beside its tests, which all passed.
  if (own.every((result) => result.failed === 0)) results.push({ name: `make ${target}`, passed: 0, failed: 1 });
}
const total = (key) => results.reduce((sum, result) => sum + result[key], 0);
if (results.length > 1) {
  const slowest = names.flatMap(times).sort((a, b) => b.seconds - a.seconds);
  for (const { seconds, file, name, ...known } of slowest.slice(0, SLOWEST))
    console.log(`  ${String(Math.round(seconds)).padStart(4)} s  ${name}: ${file}  (${busy(known)})`);
  for (const { name, ...count } of results)
    console.log(`  ${name.padEnd(10)} ${count.passed} passed, ${count.failed} failed${minutes(name)}`);
  // How long each part took, from .ci/run.
  const { CORELANE_MINUTES: parts } = process.env;
  if (parts) console.log(`  minutes    ${parts.replace(/, $/, '')}`);
  const each = Math.max(LINES_MIN, Math.min(LINES_OF_A_FAILURE, Math.floor(LINES_OF_ALL / failed.length)));
  for (const { what, lines, busy, isLog } of failed) {
    console.log(`\n  FAILED  ${what}`);
    if (busy) console.log(`    while the file ran: ${busy}`);
    for (const line of isLog ? lines.slice(-each) : lines.slice(0, each)) console.log(`    ${line}`.trimEnd());
  }
  if (failed.length > 0) console.log('');
}
console.log(`${prefix}${total('passed')} passed, ${total('failed')} failed`);
process.exitCode = total('failed') > 0 || total('passed') === 0 ? 1 : 0;
