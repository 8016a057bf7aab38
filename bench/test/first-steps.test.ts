/** The first commands on a machine: the order in which `make demo` builds, and errors that name what is missing. */
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'corelane-first-steps-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** Writes an executable bash script into the folder of the test. */
function script(path: string, text: string): void {
  const file = join(folder, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `#!/bin/bash\n${text}\n`);
  chmodSync(file, 0o755);
}

/** Runs a command in the folder of the test, whose programs come first in PATH. */
function run(command: string[], path = `${join(folder, 'bin')}:${process.env.PATH}`) {
  const [program = '', ...options] = command;
  const env = { ...process.env, PATH: path, HOME: folder, CORELANE_CACHE: join(folder, 'cache') };
  return spawnSync(program, options, { cwd: folder, env, encoding: 'utf8' });
}

describe('make demo, where the engine has the base images already', () => {
  const CALLS = 'calls';

  beforeEach(() => {
    for (const file of ['demo.sh', ...['lib', 'progress', 'gobuild'].map((name) => `cluster/${name}.sh`)])
      cpSync(join(ROOT, 'e2e', file), join(folder, 'e2e', file));
    cpSync(join(ROOT, 'e2e/cluster/versions.env'), join(folder, 'e2e/cluster/versions.env'));
    script('bin/docker', 'exit 0');
    for (const name of ['engine', 'node-image', 'tools']) script(`e2e/cluster/${name}.sh`, 'exit 0');
    script('e2e/cluster/base-images.sh', `echo "base-images $*" >>${CALLS}`);
    script('e2e/images.sh', `[[ -e packages ]] && state=yes || state=no; echo "images $*, packages: $state" >>${CALLS}`);
    // The test ends where the cluster would begin.
    script('e2e/cluster/cluster.sh', `echo cluster >>${CALLS}; exit 3`);
  });

  test('our images are built after the Node packages are installed', () => {
    // npm ends after something else has been built, whichever that is.
    script(
      'bin/make',
      `case "$*" in
        '-q setup') exit 1 ;;
        '-s setup') until [[ -e ${CALLS} ]]; do read -rt 0.05 <> <(:) || true; done; touch packages ;;
        '-s build') [[ -e packages ]] ;;
      esac`,
    );
    const { status, stderr } = run(['bash', 'e2e/demo.sh']);
    expect({ status, stderr }).toMatchObject({ status: 3 });
    expect(readFileSync(join(folder, CALLS), 'utf8').split('\n').slice(0, -1)).toEqual([
      'base-images debian node',
      'images operator sidecar storefront, packages: yes',
      'cluster',
    ]);
  });

  test('no image is built where npm fails', () => {
    script('bin/make', `[[ "$*" != *setup ]] || { echo no network; exit 1; }`);
    const { status, stderr } = run(['bash', 'e2e/demo.sh']);
    expect(status).toBe(1);
    expect(stderr).toMatch(/Installing Node packages \.\.\. FAILED[^]*no network/);
    expect(readFileSync(join(folder, CALLS), { encoding: 'utf8', flag: 'a+' })).not.toContain('images operator');
  });
});

describe('npm and node (.ci/npm-is-there.sh)', () => {
  const check = () => run(['/bin/bash', join(ROOT, '.ci/npm-is-there.sh')], join(folder, 'bin'));
  beforeEach(() => mkdirSync(join(folder, 'bin')));

  test.each([
    ['nothing is installed', [], /node is not installed or not on PATH/],
    ['npm is a package of its own', [['node', 'v20.20.2']], /npm is not installed or not on PATH/],
    ['Node.js is old', [['node', 'v16.20.2']], /node 16\.20\.2 at .*bin\/node is too old; 18 is the oldest that works/],
    ['npm is old', [['node', 'v18.0.0'], ['npm', '6.14.18']], /npm 6\.14\.18 at .*bin\/npm is too old; 8 is/],
    ['node does not start', [['node', 'no such library']], /'node --version' printed no version: no such library/],
  ] as [string, [string, string][], RegExp][])('%s', (...[, programs, message]) => {
    for (const [name, version] of programs) script(`bin/${name}`, `echo ${version}`);
    const { status, stderr } = check();
    expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringMatching(message) });
    expect(stderr).toContain('https://nodejs.org/en/download');
  });

  test('versions that are new enough', () => {
    for (const [name, version] of [['node', 'v18.19.0'], ['npm', '10.8.2']]) script(`bin/${name}`, `echo ${version}`);
    expect(check()).toMatchObject({ status: 0, stderr: '' });
  });
});

describe('bash (e2e/cluster/lib.sh)', () => {
  // Bash does not let a script change BASH_VERSINFO.
  const [guard = ''] = /^if \(\(BASH_VERSINFO.*?^fi$/ms.exec(read('e2e/cluster/lib.sh')) ?? [];
  const as = (major: number, minor: number) =>
    run(['bash', '-c', `version=(${major} ${minor}); ${guard.replaceAll('BASH_VERSINFO', 'version')}`]);

  test.each([
    [3, 2],
    [4, 3],
  ])('%i.%i is too old', (major, minor) => {
    const { status, stderr } = as(major, minor);
    expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringContaining('need bash 4.4 or newer') });
    expect(stderr).toContain('brew install bash');
  });

  test.each([
    [4, 4],
    [5, 0],
  ])('%i.%i is new enough', (major, minor) => {
    expect(as(major, minor)).toMatchObject({ status: 0, stderr: '' });
  });
});
