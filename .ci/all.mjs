/**
 * `make test-all`: everything there is, one suite after the other, and a table of them. It takes the most part of a day
 * on 2 cores, so .github/workflows/nightly.yaml gives each suite a machine, and ALL='gate load' runs these two: the
 * table keeps what the others said last, and at which commit. Logs and the table (JSON) are in .state/all. Exit code 1
 * if one of those that ran fails.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';

/** Suite, and the command of it. */
const SUITES = {
  gate: ['bash', '.ci/run'],
  ...Object.fromEntries(
    ['load', 'frameworks', 'hostile', 'mutants', 'alerts', 'keda', 'argocd', 'tracing', 'dashboards', 'browser'].map(
      (name) => [name, ['make', '-s', `test-${name}`]],
    ),
  ),
  ...Object.fromEntries(
    'faults fleet drain edge concurrency runtime browser observe operator rollout first-hour'
      .split(' ')
      .map((name) => [`bench-${name}`, ['make', '-s', `bench-${name}`]]),
  ),
  soak: ['make', '-s', 'soak'],
};
const LOGS = '.state/all';
const TABLE = `${LOGS}/all.json`;

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
const running = wanted.length > 0 ? wanted : Object.keys(SUITES);
const known = new Map(
  (existsSync(TABLE) ? JSON.parse(readFileSync(TABLE, 'utf8')) : []).map((row) => [row.suite, row]),
);
for (const suite of running) {
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
  const result = status === 0 ? 'passed' : 'FAILED';
  known.set(suite, { suite, commit, result, minutes: Number(minutes.toFixed(1)), said });
  writeFileSync(TABLE, `${JSON.stringify([...known.values()], null, 2)}\n`);
}
console.log('\n| suite | commit | result | minutes | last line |\n|---|---|---|---|---|');
for (const suite of Object.keys(SUITES)) {
  const row = known.get(suite) ?? { suite, commit: '-', result: 'not run', minutes: '-', said: '' };
  console.log(`| ${Object.values(row).join(' | ')} |`);
}
const failed = running.filter((suite) => known.get(suite).result !== 'passed').length;
console.log(
  `\nall: ${running.length - failed} passed, ${failed} failed, ${Object.keys(SUITES).length - running.length} not run`,
);
process.exitCode = failed > 0 ? 1 : 0;
