/** `corelane`, as a user calls it. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const run = promisify(execFile);

interface Outcome {
  code: number;
  stdout: string;
  stderr: string;
}

async function corelane(...args: string[]): Promise<Outcome> {
  try {
    const { stdout, stderr } = await run(process.execPath, [join(root, 'operator/bin/corelane.mjs'), ...args], {
      cwd: root,
      env: { PATH: process.env.PATH },
    });
    return { code: 0, stdout, stderr };
  } catch (error) {
    return error as Outcome;
  }
}

test('lists its commands', async () => {
  const { code, stdout } = await corelane('--help');
  expect(code).toBe(0);
  expect(stdout).toMatch(/^ {2}simulate {2,}\w/m);
  expect(stdout).toMatch(/^ {2}plan {2,}\w/m);
});

test('plan says how many pods', async () => {
  const { code, stdout } = await corelane(...'plan --rps 120 --render 80ms --cv 1 --slo p99=400ms'.split(' '));
  expect(code).toBe(0);
  expect(stdout).toMatch(/^workers +16\npods +4\ncores +16\n/);
});

test('plan says when nothing helps', async () => {
  const { code, stdout } = await corelane(...'plan --rps 120 --render 80ms --cv 1 --slo p99=300ms'.split(' '));
  expect(code).toBe(2);
  expect(stdout).toContain('the p99 of the render alone is 392 ms');
});

test.each([
  [['fly'], 'there is no command "fly"'],
  [['plan'], '--rps, --render and --slo are needed'],
  [['plan', '--rps', 'many', '--render', '80ms', '--slo', 'p99=1s'], '--rps must be a number'],
  [['plan', '--rps', '1', '--render', '80', '--slo', 'p99=1s'], '--render must be a time'],
  [['plan', '--rps', '1', '--render', '80ms', '--slo', '1s'], '--slo must be such as'],
  [['simulate', '--sed', '1'], "Unknown option '--sed'"],
  [['simulate', '-f', 'examples/minimal.yaml'], 'has no "scaling"'],
])('%j is refused with a sentence', async (args, message) => {
  const { code, stderr } = await corelane(...args);
  expect({ code, stderr }).toEqual({ code: 64, stderr: expect.stringContaining(message) });
});
