/**
 * `make test-repeat`: runs test files, or the gate, again and again, and says how often each was green. A test enters
 * the gate after 20 green runs beside a loop that burns a core (docs/testing.md).
 *   FILE='sidecar/test/drain.test.ts ...' N=20 BURN=1   these files (or patterns), of one project, in this checkout
 *   GATE=1 N=5 BURN=1                                   .ci/run, each time in a clean clone of HEAD
 * BURN is the number of loops. Logs are in .state/repeat. Exit code 1 unless all runs were green.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { globSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';

const { FILE = '', GATE, N = '20', BURN = '0' } = process.env;
const LOGS = '.state/repeat';
const USAGE = "make test-repeat FILE='sidecar/test/drain.test.ts' N=20 BURN=1, or GATE=1 N=5 BURN=1";
/** The first that fits. */
const PROJECTS = [
  [/^operator\/.*\.load\.test\.ts$/, 'load-operator'],
  [/^sidecar\/.*\.load\.test\.ts$/, 'load-sidecar'],
  [/^e2e\/.*\.load\.test\.ts$/, 'load-e2e'],
  [/^e2e\/stories\//, 'e2e'],
  [/^(operator\/test\/api|e2e\/chart)\//, 'api'],
  [/^(sidecar\/test\/[^/]+\.test\.ts$|e2e\/alerts\/)/, 'sidecar'],
  [/\.test\.(ts|mjs)$/, 'unit'],
];

function fail(message) {
  console.error(`error: ${message}`);
  process.exit(2);
}

/** Runs a command with its output in a log; gives its seconds and whether it ended with 0. */
async function logged(log, command, args, options = {}) {
  const output = openSync(log, 'w');
  const began = performance.now();
  const [code] = await once(spawn(command, args, { stdio: ['ignore', output, output], ...options }), 'close');
  return { isGreen: code === 0, seconds: (performance.now() - began) / 1000 };
}

/** Reads the last run: for each test file, whether all its tests passed, and how busy the machine was. */
function filesOf(project) {
  const read = (name) => JSON.parse(readFileSync(`.state/results/${name}.json`, 'utf8'));
  try {
    const busy = read(`${project}.pressure`);
    return read(project).testResults.map(({ name, status }) => {
      const path = relative('.', name);
      return { path, isGreen: status === 'passed', ...busy[path] };
    });
  } catch {
    return [];
  }
}

const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const range = (values) => `${Math.round(Math.min(...values))} to ${Math.round(Math.max(...values))}`;

/** @returns {Promise<number>} green runs */
async function repeatFiles(files) {
  const projects = new Set(files.map((file) => PROJECTS.find(([pattern]) => pattern.test(file))?.[1]));
  const [project] = projects;
  if (projects.size !== 1 || !project) fail(`FILE needs test files of one project: ${files.join(' ')}. ${USAGE}`);
  const runs = new Map(files.map((file) => [file, []]));
  let green = 0;
  for (let run = 1; run <= times; run += 1) {
    const patterns = files.flatMap((file) => ['--testPathPatterns', `/${file.replaceAll('.', '\\.')}$`]);
    const { isGreen, seconds } = await logged(`${LOGS}/${run}.log`, '.ci/test.sh', [project, '--', ...patterns]);
    if (isGreen) green += 1;
    const ended = filesOf(project);
    for (const file of files) runs.get(file).push(ended.find(({ path }) => path === file) ?? { isGreen: false });
    console.log(
      `run ${run} of ${times}: ${isGreen ? 'green' : 'RED'} after ${Math.round(seconds)} s (${LOGS}/${run}.log)`,
    );
  }
  console.log('\n| file | green | seconds | CPU pressure |\n|---|---|---|---|');
  for (const [file, all] of runs) {
    const known = all.filter(({ seconds }) => seconds !== undefined);
    const figures = known.length
      ? `${range(known.map(({ seconds }) => seconds))} | ${Math.round(mean(known.map((one) => one.pressurePercent)))} %`
      : '- | -';
    console.log(`| ${file} | ${all.filter(({ isGreen }) => isGreen).length} of ${all.length} | ${figures} |`);
  }
  console.log(`\nrepeat: green=${green} of=${times}`);
  return green;
}

/** @returns {Promise<number>} green runs */
async function repeatGate() {
  const commit = execFileSync('git', ['rev-parse', 'HEAD']).toString().trim();
  const minutes = [];
  const rows = [];
  let green = 0;
  for (let run = 1; run <= times; run += 1) {
    const folder = mkdtempSync(join(tmpdir(), 'corelane-gate-'));
    execFileSync('git', ['clone', '-q', '--no-hardlinks', '.', `${folder}/project`]);
    execFileSync('git', ['-C', `${folder}/project`, 'checkout', '-q', '-B', 'main', commit]);
    const log = `${LOGS}/gate-${run}.log`;
    const env = { ...process.env, CI: 'true' };
    for (const name of ['MAKEFLAGS', 'MAKELEVEL', 'MFLAGS']) delete env[name];
    const { isGreen, seconds } = await logged(log, 'bash', ['.ci/run'], { cwd: `${folder}/project`, env });
    rmSync(folder, { recursive: true, force: true });
    if (isGreen) green += 1;
    minutes.push(seconds / 60);
    const said = readFileSync(log, 'utf8').trim().split('\n');
    const failed = said.filter((line) => /^ {2}FAILED {2}/.test(line)).map((line) => line.trim());
    rows.push(`| ${run} | ${isGreen ? 'green' : 'RED'} | ${(seconds / 60).toFixed(1)} | ${said.at(-1)} |`);
    console.log(`run ${run} of ${times}: ${isGreen ? 'green' : 'RED'} after ${(seconds / 60).toFixed(1)} min (${log})`);
    for (const line of new Set(failed)) console.log(`  ${line}`);
  }
  console.log(
    `\n| run of ${commit.slice(0, 7)} | result | minutes | last line |\n|---|---|---|---|\n${rows.join('\n')}`,
  );
  console.log(`\ngate: green=${green} of=${times} minutes=${mean(minutes).toFixed(1)}`);
  return green;
}

const times = Number(N);
if (!Number.isInteger(times) || times < 1) fail(`N=${N}: it is a number of runs. ${USAGE}`);
// The load tests are not meant by *.test.ts.
const wanted = FILE.split(/\s+/).filter(Boolean);
const files = globSync(wanted).filter((file) => wanted.includes(file) || !file.endsWith('.load.test.ts'));
if (!GATE && files.length === 0) fail(`nothing to repeat. ${USAGE}`);
mkdirSync(LOGS, { recursive: true });
const burners = Array.from({ length: Number(BURN) }, () =>
  spawn(process.execPath, ['-e', 'for(;;);'], { stdio: 'ignore' }),
);
process.on('exit', () => {
  for (const burner of burners) burner.kill('SIGKILL');
});
process.on('SIGINT', () => process.exit(130));
process.on('SIGTERM', () => process.exit(143));
const green = await (GATE ? repeatGate() : repeatFiles(files));
process.exit(green === times ? 0 : 1);
