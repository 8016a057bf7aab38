/** The first hour: what the scripts say while they work, and what the bench reads out of it. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { plot } from '../../operator/plots/index.ts';
import { demoPage, failure } from '../first-hour/report.ts';
import { stepsOf } from '../first-hour/steps.ts';

const LIBRARY = fileURLToPath(new URL('../../e2e/cluster/lib.sh', import.meta.url));

describe('what is left (e2e/cluster/progress.sh)', () => {
  const folder = mkdtempSync(join(tmpdir(), 'corelane-plan-'));
  afterAll(() => rmSync(folder, { recursive: true }));

  /** Runs `script` with a plan of these lines, at second 1000. */
  function bash(plan: string[], script: string, cores = 4): { out: string; err: string } {
    const file = join(folder, 'plan');
    writeFileSync(file, `${['started 940', ...plan].join('\n')}\n`);
    const env = { ...process.env, CORELANE_CACHE: folder, CORELANE_PLAN: file };
    const text = `source '${LIBRARY}'; now() { echo 1000; }; cores() { echo ${cores}; }; ${script}`;
    const { stdout, stderr } = spawnSync('bash', ['-c', text], { env, encoding: 'utf8' });
    return { out: stdout, err: stderr };
  }
  const left = (...plan: string[]) => Number(bash(plan, 'plan_left').out);

  const plan = ['expect first compile 300', 'expect beside fetch 40', 'expect then load 20'];

  test('the longer one of the two that run at a time counts, and what comes after them', () => {
    expect(left(...plan)).toBe(320);
    expect(left(...plan, 'ended compile')).toBe(60);
    expect(left(...plan, 'ended compile', 'ended fetch')).toBe(20);
  });

  test('on two cores they take from each other', () => {
    expect(Number(bash(plan, 'plan_left', 2).out)).toBe(340);
  });

  test('nothing is said before there is a plan', () => {
    expect(bash([], 'say Looking').err).toBe(' 1:00: Looking\n');
  });

  test('a step that has begun is that much nearer to its end, but never done before it says so', () => {
    expect(left(...plan, 'begun compile 950')).toBe(270);
    expect(left(...plan, 'begun compile 100')).toBe(60); // 40 beside it are more than a twentieth of 300
    expect(left('expect then load 20', 'begun load 100')).toBe(1);
  });

  test('a share that is known counts instead of the time', () => {
    expect(left(...plan, 'begun compile 100', 'share compile 4')).toBe(308);
  });

  test('and soon the pace of this machine', () => {
    expect(left(...plan, 'begun compile 800', 'share compile 25')).toBe(620);
  });

  test('what has turned out to be more, or not to be needed', () => {
    expect(left(...plan, 'expect first compile 100')).toBe(120);
    expect(left(...plan, 'ended first', 'ended beside')).toBe(20);
  });

  test('a step tells its time and what is left, and a failure the end of its log', () => {
    const { err } = bash(plan, `step 'Loading' load true; step 'Compiling' compile bash -c 'echo why; exit 3'`);
    expect(err).toMatch(/^ 1:00, about {2}5 min left: Loading \.\.\. done in \d+s$/m);
    expect(err).toMatch(/Compiling \.\.\. FAILED after \d+s\n.*last 30 lines.*\n.* {2}why\n/);
  });
});

describe('the steps of a log', () => {
  test('come from the lines that say "done in"', () => {
    const lines = [
      {
        atS: 5,
        text: ' 0:05, about  7 min left: Compiling 3 programs (a, b, c): 90 packages, about 5 min on 2 cores, once ...',
      },
      { atS: 40, text: ' 0:40, about  6 min left: Making a stand-in for debian (about 20 s), once ... done in 27s' },
      {
        atS: 305,
        text: ' 5:05, about   90 s left: Compiling 3 programs (a, b, c): 90 packages, about 5 min on 2 cores, once ... done in 5m00s',
      },
      { atS: 305, text: ' 5:05: Starting an engine (about 3 s) ... done in 3s' },
      { atS: 306, text: 'Loading images ... cached' },
    ];
    expect(stepsOf(lines)).toEqual([
      { title: 'Compiling 3 programs (a, b, c): 90 packages', fromS: 5, toS: 305 },
      { title: 'Making a stand-in for debian', fromS: 13, toS: 40 },
      { title: 'Starting an engine', fromS: 302, toS: 305 },
    ]);
  });

  test('and from Jest, project by project', () => {
    const lines = [
      { atS: 1, text: 'Running the unit tests' },
      { atS: 41, text: 'Time:        39 s' },
      { atS: 42, text: 'Running the sidecar tests' },
      { atS: 142, text: 'Running the api-beside tests' },
      { atS: 142, text: 'Time:        99 s, estimated 104 s' },
      { atS: 242, text: 'Time:        199 s' },
    ];
    expect(stepsOf(lines)).toEqual([
      { title: 'unit tests', fromS: 2, toS: 41 },
      { title: 'api-beside tests', fromS: 43, toS: 142 },
      { title: 'sidecar tests', fromS: 43, toS: 242 },
    ]);
  });

  test('are drawn where they were', () => {
    const spans = [{ label: 'compile', from: 10, to: 110 }];
    const svg = plot([{ title: 'demo', subtitle: 'seconds', spans }]);
    expect(svg).toContain('compile');
    expect(svg).toContain('100 s');
  });
});

describe('what is written of a command', () => {
  const lines = ['Running the unit tests', '5000 passed, 2 failed', 'make: *** [Makefile:96: test] Error 1', ''].map(
    (text, atS) => ({ atS, text }),
  );

  test('that failed: its exit code, and its own last line instead of that of make', () => {
    expect(failure(2, lines)).toBe('failed with exit code 2: 5000 passed, 2 failed');
    expect(failure(124, [])).toBe('failed with exit code 124');
  });

  test('make demo: its lines as they came, and on which machine', () => {
    const page = demoPage(lines.slice(0, 2), { cores: 2, load: 4.21 });
    expect(page).toContain('2 cores, load average 4.2.');
    expect(page.split('\n').slice(-4)).toEqual(['', 'Running the unit tests', '5000 passed, 2 failed', '']);
  });
});
