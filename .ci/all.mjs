/**
 * `make test-all`: everything there is, one suite after the other, and a table of them. ALL='gate load' tries these
 * two. It takes the most part of a day on 2 cores, so .github/workflows/nightly.yaml gives each suite a machine. Logs
 * and the table (JSON) are in .state/all. Exit code 1 if one fails.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';

/** Suite, and the command of it. */
const SUITES = {
  gate: ['bash', '.ci/run'],
  ...Object.fromEntries(
    ['load', 'frameworks', 'hostile', 'mutants', 'alerts', 'keda', 'tracing', 'dashboards', 'browser'].map((name) => [
      name,
      ['make', '-s', `test-${name}`],
    ]),
  ),
  ...Object.fromEntries(
    'faults fleet drain edge concurrency runtime browser observe operator rollout first-hour'
      .split(' ')
      .map((name) => [`bench-${name}`, ['make', '-s', `bench-${name}`]]),
  ),
  soak: ['make', '-s', 'soak'],
};
const LOGS = '.state/all';

if (process.argv.includes('--list')) {
  console.log(JSON.stringify(Object.keys(SUITES)));
  process.exit();
}
const wanted = (process.env.ALL ?? '').split(/\s+/).filter(Boolean);
const unknown = wanted.filter((name) => !SUITES[name]);
if (unknown.length > 0) {
  console.error(`error: ALL=${unknown.join(' ')}: there are ${Object.keys(SUITES).join(', ')}`);
  process.exit(2);
}
mkdirSync(LOGS, { recursive: true });
const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD']).toString().trim();
const rows = [];
for (const suite of wanted.length > 0 ? wanted : Object.keys(SUITES)) {
  const [command, ...args] = SUITES[suite];
  const log = `${LOGS}/${suite}.log`;
  const output = openSync(log, 'w');
  console.log(`${suite} ... (${log})`);
  const began = performance.now();
  const env = { ...process.env };
  // Targets with variables of these names would take them for theirs.
  for (const name of ['MAKEFLAGS', 'MAKELEVEL', 'MFLAGS', 'ALL']) delete env[name];
  const { status } = spawnSync(command, args, { env, stdio: ['ignore', output, output] });
  const minutes = (performance.now() - began) / 60_000;
  const said = readFileSync(log, 'utf8').trim().split('\n').at(-1) ?? '';
  rows.push({ suite, commit, result: status === 0 ? 'passed' : 'FAILED', minutes: Number(minutes.toFixed(1)), said });
}
writeFileSync(`${LOGS}/all.json`, `${JSON.stringify(rows, null, 2)}\n`);
console.log('\n| suite | commit | result | minutes | last line |\n|---|---|---|---|---|');
for (const row of rows) console.log(`| ${Object.values(row).join(' | ')} |`);
const failed = rows.filter(({ result }) => result !== 'passed').length;
console.log(`\nall: ${rows.length - failed} passed, ${failed} failed`);
process.exitCode = failed > 0 ? 1 : 0;
