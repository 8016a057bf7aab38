/** The first commands on a machine: the order in which `make demo` builds, and errors that name what is missing. */
import { spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const read = (path: string) => readFileSync(join(ROOT, path), 'utf8');
const TIME_LIMIT_MS = 30_000;
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
function run(...[program = '', ...options]: string[]) {
  const path = `${join(folder, 'bin')}:${process.env.PATH}`;
  const env = { ...process.env, PATH: path, HOME: folder, CORELANE_CACHE: join(folder, 'cache') };
  return spawnSync(program, options, { cwd: folder, env, encoding: 'utf8', timeout: TIME_LIMIT_MS });
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
    script(
      'e2e/images.sh',
      `[[ -e packages ]] && state=yes || state=no; echo "images $*, packages: $state" >>${CALLS}`,
    );
    // The test ends where the cluster would begin.
    script('e2e/cluster/cluster.sh', `echo cluster >>${CALLS}; exit 3`);
  });

  test('our images are built after the Node packages are installed', () => {
    // npm ends after something else has been built. Without e2e the test is over, and so is the wait.
    script(
      'bin/make',
      `case "$*" in
        '-q setup') exit 1 ;;
        '-s setup') while [[ ! -e ${CALLS} && -e e2e ]]; do sleep 0.05; done; touch packages ;;
        '-s build') [[ -e packages ]] ;;
      esac`,
    );
    const { status, stderr } = run('bash', 'e2e/demo.sh');
    expect({ status, stderr }).toMatchObject({ status: 3 });
    expect(readFileSync(join(folder, CALLS), 'utf8').split('\n').slice(0, -1)).toEqual([
      'base-images debian node',
      'images operator sidecar storefront, packages: yes',
      'cluster',
    ]);
  });

  test('no image is built where npm fails', () => {
    script('bin/make', `[[ "$*" != *setup ]] || { echo no network; exit 1; }`);
    const { status, stderr } = run('bash', 'e2e/demo.sh');
    expect(status).toBe(1);
    expect(stderr).toMatch(/Installing Node packages \.\.\. FAILED.*no network/s);
    // Base images may be on their way by then.
    expect(readFileSync(join(folder, CALLS), { encoding: 'utf8', flag: 'a+' })).not.toMatch(/^images/m);
  });
});

describe('bash (e2e/cluster/lib.sh)', () => {
  // Bash does not let a script change BASH_VERSINFO.
  const [guard = ''] = /^if \(\(BASH_VERSINFO.*?^fi$/ms.exec(read('e2e/cluster/lib.sh')) ?? [];
  const as = (major: number, minor: number) =>
    run('bash', '-c', `version=(${major} ${minor}); ${guard.replaceAll('BASH_VERSINFO', 'version')}`);

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

describe('Go programs (e2e/cluster/gobuild.sh)', () => {
  /** Runs `text` after gobuild.sh, with a `go` of version `version` that fails with `output`. */
  function go(version: string, output: string, text: string) {
    script(
      'bin/go',
      `case "$*" in
        'env GOVERSION') echo go${version} ;;
        'env GOPROXY') echo https://proxy.example ;;
        *) printf '%s\n' '${output}' >&2; exit 1 ;;
      esac`,
    );
    const cluster = join(ROOT, 'e2e/cluster');
    return run('bash', '-c', `source ${cluster}/lib.sh; source ${cluster}/gobuild.sh; ${text}`);
  }
  const compile = (output: string) => go('99.0', output, 'go_compile KEDA keda "$HOME" "$HOME/out" ./cmd/operator');

  test.each([
    [
      'no proxy answers',
      'go: k8s.io/api@v0.36.3: Get "https://proxy.example/k8s.io": dial tcp: lookup proxy.example: no such host',
      'cannot download modules from GOPROXY=https://proxy.example. Check the network',
    ],
    [
      'the proxy refuses',
      'cmd/main.go:3:8: k8s.io/api@v0.36.3: reading https://proxy.example/k8s.io: 403 Forbidden',
      'set GOPROXY to a module proxy that this machine reaches',
    ],
    [
      'a module wants a newer Go',
      'go: module k8s.io/api@v0.36.3 requires go >= 99.1.2 (running go 99.0; GOTOOLCHAIN=local)',
      'Go 99.0 is too old: requires go >= 99.1.2. Install that version',
    ],
    ['the disk is full', 'write x.part: no space left on device', 'The disk is full.'],
    ['another module came', 'verifying k8s.io/api@v0.36.3: checksum mismatch', 'Do not take the new hash'],
    ['a hash is missing', 'missing go.sum entry for module', 'e2e/cluster/pin-go.sh'],
    ['memory is short', 'k8s.io/api: /usr/go/compile: signal: killed', 'ran out of memory'],
  ])('%s: the step says what failed, where its log is, and what to do', (...[, output, advice]) => {
    const { status, stderr } = compile(output);
    expect(status).toBe(1);
    expect(stderr).toMatch(/^Fetching the Go modules of KEDA \.\.\. FAILED/);
    expect(stderr).toMatch(/the whole log: .*keda-modules\.log/);
    expect(stderr.split('\n').at(-2)).toMatch(/^error: /);
    expect(stderr.split('\n').at(-2)).toContain(advice);
  });

  test('the words of another program give no advice about Go', () => {
    const { stderr } = compile('dial tcp 127.0.0.1:6443: connect: connection refused');
    expect(stderr).toContain('connection refused');
    expect(stderr).not.toContain('error: ');
  });

  test('a Go that is too old is refused before anything is downloaded', () => {
    const { status, stderr } = go('1.24.4', 'not called', 'go_is_there KEDA; echo "$GO_MODULE_DIR"');
    expect(status).toBe(1);
    expect(stderr).toMatch(/^error: cannot compile KEDA: Go 1\.24\.4 at .*bin\/go is too old\. Install Go 1\.\d+/);
  });
});
