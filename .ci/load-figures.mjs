/**
 * Writes docs/benchmarks/load.{json,md}: what the load tests have measured (operator/test/support/figure.ts), and each
 * file with its seconds and how busy the machine was. node load-figures.mjs NAME... with the names of results. Files
 * that were not run keep the figures of the run before; load tests that no run has measured yet are listed as such.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { relative } from 'node:path';

const RESULTS = '.state/results';
const PAGE = 'docs/benchmarks/load';

const read = (name) => JSON.parse(readFileSync(`${RESULTS}/${name}.json`, 'utf8'));
const figures = (name) => {
  const file = `${RESULTS}/${name}.figures`;
  if (!existsSync(file)) return [];
  const lines = readFileSync(file, 'utf8').trim().split('\n');
  return lines.filter(Boolean).map((line) => JSON.parse(line));
};

const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD']).toString().trim();
const before = existsSync(`${PAGE}.json`)
  ? JSON.parse(readFileSync(`${PAGE}.json`, 'utf8'))
  : { files: [], figures: [] };
const files = [];
const measured = [];
for (const name of process.argv.slice(2)) {
  // Nothing where the run died before its first test.
  if (!existsSync(`${RESULTS}/${name}.json`)) continue;
  const busy = read(`${name}.pressure`);
  for (const { name: file, assertionResults } of read(name).testResults) {
    const path = relative('.', file);
    const count = (wanted) => assertionResults.filter(({ status }) => status === wanted).length;
    files.push({ file: path, commit, passed: count('passed'), failed: count('failed'), ...busy[path] });
  }
  measured.push(...figures(name));
}
const ran = new Set(files.map(({ file }) => file));
const isKept = ({ file }) => !ran.has(file) && existsSync(file);
files.push(...before.files.filter(isKept));
measured.push(...before.figures.filter(isKept));
const known = new Set(files.map(({ file }) => file));
const unmeasured = globSync('{operator,sidecar,e2e}/**/*.load.test.ts').filter((file) => !known.has(file));
for (const list of [files, measured]) list.sort((a, b) => a.file.localeCompare(b.file));
writeFileSync(`${PAGE}.json`, `${JSON.stringify({ cores: cpus().length, figures: measured, files }, null, 2)}\n`);
const page = [
  '# Load tests',
  '',
  `Measured by \`make test-load\` on ${cpus().length} cores, one file at a time. These tests depend on rates, times or free cores, so they`,
  'are not part of `make test` ([how the gate is kept deterministic](../testing.md#the-gate-and-the-load-tests)).',
  '',
  '## Figures',
  '',
  '| file | what | measured | wanted |',
  '|---|---|---|---|',
  ...measured.map(({ file, what, value, unit, wanted }) => `| ${file} | ${what} | ${value} ${unit} | ${wanted} |`),
  '',
  '## Files',
  '',
  'CPU pressure is the share of the time in which some process waited for a core.',
  '',
  '| file | commit | passed | failed | seconds | CPU pressure | steal |',
  '|---|---|---|---|---|---|---|',
  ...files.map(
    ({ file, commit, passed, failed, seconds, pressurePercent, stealPercent }) =>
      `| ${file} | ${commit} | ${passed} | ${failed} | ${Math.round(seconds)} | ${pressurePercent} % | ${stealPercent} % |`,
  ),
  ...unmeasured.sort().map((file) => `| ${file} | not run yet | | | | | |`),
  '',
];
writeFileSync(`${PAGE}.md`, page.join('\n'));
