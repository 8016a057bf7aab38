/** The summary that .ci/run and test.sh print: it counts results, and names those that failed or are missing. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const SUMMARY = fileURLToPath(new URL('summary.mjs', import.meta.url));
/** The results that .ci/run asks for. */
const ALL = ['verify', 'docs', 'unit', 'api-beside', 'sidecar', 'api-after', 'e2e'];

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'corelane-summary-'));
  mkdirSync(join(folder, '.state/results'), { recursive: true });
  for (const name of ALL) write(`${name}.json`, { passed: 2, failed: 0 });
});
afterEach(() => rmSync(folder, { recursive: true }));

function write(file: string, content: unknown): void {
  const text = typeof content === 'string' ? content : JSON.stringify(content);
  writeFileSync(join(folder, '.state/results', file), text);
}

function summary(names = ALL, env: Record<string, string> = {}) {
  const { status, stdout } = spawnSync(process.execPath, [SUMMARY, '', ...names], {
    cwd: folder,
    encoding: 'utf8',
    env: { ...process.env, CORELANE_FAILED: '', CORELANE_MINUTES: '', ...env },
  });
  // The indentation of the first line is a part of what is said.
  return { status, stdout, lines: stdout.trimEnd().split('\n') };
}

const times = (text: string, part: string) => text.split(part).length - 1;

/** As Jest writes it: one test passed, one failed, and the file was looked at for three minutes. */
const JEST = {
  startTime: 0,
  numPassedTests: 1,
  numFailedTests: 1,
  testResults: [
    {
      name: '/clone/sidecar/test/drain.test.ts',
      endTime: 180_000,
      message: '● drain › a pod stops\n\n    expect(received).toBe(expected)',
      assertionResults: [
        { status: 'passed', fullName: 'another', failureMessages: [] },
        { status: 'failed', fullName: 'drain a pod stops', failureMessages: ['  Expected: 1\n    Received: 2\n'] },
      ],
    },
  ],
};

test('all passed: the counts, and nothing else', () => {
  const { status, lines } = summary();
  expect(status).toBe(0);
  expect(lines).toEqual([...ALL.map((name) => `  ${name.padEnd(10)} 2 passed, 0 failed`), '14 passed, 0 failed']);
});

test('a test that failed is listed once, with its message and its indentation, just before the last line', () => {
  write('sidecar.json', JEST);
  write('sidecar.pressure.json', {
    'sidecar/test/drain.test.ts': { seconds: 7, pressurePercent: 40, stealPercent: 2 },
  });
  const { status, stdout, lines } = summary(ALL, {
    CORELANE_FAILED: 'test',
    CORELANE_MINUTES: 'verify 0.9, test 12.3, ',
  });
  expect(status).toBe(1);
  expect(lines.slice(-7)).toEqual([
    '',
    '  FAILED  sidecar: drain.test.ts: drain a pod stops',
    '    while the file ran: CPU pressure 40 %, steal 2 %',
    '      Expected: 1',
    '        Received: 2',
    '',
    '13 passed, 1 failed',
  ]);
  expect(times(stdout, 'a pod stops')).toBe(1);
  expect(lines).toContain('  sidecar    1 passed, 1 failed, 3.0 min');
  expect(lines).toContain('  minutes    verify 0.9, test 12.3');
  expect(lines[0]).toBe('     7 s  sidecar: drain.test.ts  (CPU pressure 40 %, steal 2 %)');
});

test('a file that could not be loaded', () => {
  const [file] = JEST.testResults;
  const message = "  ● Test suite failed to run\n\n    Cannot find module './gone.ts'\n";
  const testResults = [{ ...file, message, assertionResults: [] }];
  write('sidecar.json', { numPassedTests: 0, numFailedTests: 0, numRuntimeErrorTestSuites: 1, testResults });
  const { lines } = summary(ALL, { CORELANE_FAILED: 'test' });
  expect(lines.slice(-4)).toEqual([
    '  FAILED  sidecar: drain.test.ts: outside of its tests',
    "        Cannot find module './gone.ts'",
    '',
    '12 passed, 1 failed',
  ]);
});

test('a check of make verify', () => {
  write('verify.json', { passed: 11, failed: 2 });
  write('verify.1.failure', 'types (tsc)\nCorrect the types in these lines.\na.ts(1,2): error TS2322\n');
  write('verify.2.failure', 'shell scripts parse\nCorrect the syntax.\n');
  const { stdout, lines } = summary(ALL, { CORELANE_FAILED: 'verify' });
  expect(lines.slice(-9)).toEqual([
    '',
    '  FAILED  verify: types (tsc)',
    '    Correct the types in these lines.',
    '    a.ts(1,2): error TS2322',
    '',
    '  FAILED  verify: shell scripts parse',
    '    Correct the syntax.',
    '',
    '23 passed, 2 failed',
  ]);
  expect(stdout).not.toContain('make verify');
});

test('a target without a result: the end of its log', () => {
  rmSync(join(folder, '.state/results/docs.json'));
  write('docs.log', `${'line\n'.repeat(100)}Page /a.html links to /b.html: there is no such page or file.\n\n`);
  const { stdout, lines } = summary(ALL, { CORELANE_FAILED: 'docs' });
  expect(lines).toContain('  FAILED  make docs');
  expect(lines.slice(-3)).toEqual([
    '    Page /a.html links to /b.html: there is no such page or file.',
    '',
    '12 passed, 1 failed',
  ]);
  expect(times(stdout, 'line\n')).toBe(29);
});

test('make test that ends before its tests is named once, and each missing result counts', () => {
  for (const name of ['unit', 'api-beside', 'sidecar', 'api-after'])
    rmSync(join(folder, `.state/results/${name}.json`));
  write('test.log', 'error: no container engine answers\n');
  const { stdout, lines } = summary(ALL, { CORELANE_FAILED: 'test' });
  expect(times(stdout, '  FAILED  ')).toBe(1);
  expect(lines.slice(-4)).toEqual([
    '  FAILED  make test',
    '    error: no container engine answers',
    '',
    '6 passed, 4 failed',
  ]);
});

test('beside a test that failed, what ended without a result is named, too', () => {
  write('sidecar.json', JEST);
  rmSync(join(folder, '.state/results/api-beside.json'));
  write('api-beside.log', `${'line\n'.repeat(100)}heap out of memory\n`);
  rmSync(join(folder, '.state/results/api-after.json'));
  const { stdout, lines } = summary(ALL, { CORELANE_FAILED: 'test' });
  expect(times(stdout, '  FAILED  ')).toBe(3);
  expect(lines.slice(-5)).toEqual([
    '    heap out of memory',
    '',
    '  FAILED  api-after: it ended without a result',
    '',
    '9 passed, 3 failed',
  ]);
});

test('a target that fails although all its tests passed counts as one failure', () => {
  const { status, lines } = summary(ALL, { CORELANE_FAILED: 'e2e' });
  expect(status).toBe(1);
  expect(lines).toContain('  FAILED  make e2e');
  expect(lines.at(-1)).toBe('14 passed, 1 failed');
});

test('of many failures each has its name and the first lines', () => {
  const failures = Array.from({ length: 30 }, (_unused, n) => n + 1);
  write('verify.json', { passed: 0, failed: failures.length });
  for (const n of failures) write(`verify.${n}.failure`, `check ${n}\n${'said\n'.repeat(40)}`);
  const { stdout } = summary();
  expect(times(stdout, '  FAILED  ')).toBe(30);
  expect(times(stdout, '    said\n')).toBe(90);
});

test('a missing result of one name fails', () => {
  const { status, lines } = summary(['gone']);
  expect(status).toBe(1);
  expect(lines).toEqual(['0 passed, 1 failed']);
});
