/**
 * Writes docs/benchmarks/load.{json,md}: what the load tests have measured (operator/test/support/figure.ts), and each
 * file with its seconds and how busy the machine was. node load-figures.mjs NAME... with the names of results. Files in
 * folders that were not run keep the figures of the run before.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { basename, relative } from 'node:path';

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
const folderOf = (path) => path.split('/')[0];
const before = existsSync(`${PAGE}.json`)
  ? JSON.parse(readFileSync(`${PAGE}.json`, 'utf8'))
  : { files: [], figures: [] };
const files = [];
const measured = [];
for (const name of process.argv.slice(2)) {
  const busy = read(`${name}.pressure`);
  for (const { name: file, assertionResults } of read(name).testResults) {
    const path = relative('.', file);
    const count = (wanted) => assertionResults.filter(({ status }) => status === wanted).length;
    files.push({ file: path, commit, passed: count('passed'), failed: count('failed'), ...busy[path] });
  }
  measured.push(...figures(name));
}
const ran = new Set(files.map(({ file }) => folderOf(file)));
const kept = before.files.filter(({ file }) => !ran.has(folderOf(file)) && existsSync(file));
const keptNames = new Set(kept.map(({ file }) => basename(file)));
files.push(...kept);
measured.push(...before.figures.filter(({ file }) => keptNames.has(file)));
files.sort((a, b) => a.file.localeCompare(b.file));
measured.sort((a, b) => a.file.localeCompare(b.file));
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
  '',
];
writeFileSync(`${PAGE}.md`, page.join('\n'));
