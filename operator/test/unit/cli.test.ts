/** `corelane`, as a user calls it. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { bareEnvironment } from '../support/bare-environment.ts';

/**
 * Each starts a process, and some load the Kubernetes client: 1 s of CPU, which a busy machine may not have at once.
 */
const root = fileURLToPath(new URL('../../..', import.meta.url));
const run = promisify(execFile);

interface Outcome {
  code: number;
  stdout: string;
  stderr: string;
}

async function corelane(...args: string[]): Promise<Outcome> {
  return await corelaneWith({}, ...args);
}

async function corelaneWith(environment: Record<string, string>, ...args: string[]): Promise<Outcome> {
  try {
    const { stdout, stderr } = await run(process.execPath, [join(root, 'operator/bin/corelane.mjs'), ...args], {
      cwd: root,
      env: bareEnvironment('/nonexistent', { PATH: process.env.PATH, ...environment }),
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

test('plan shows renders that wait one at a time and with Auto, and what a threshold on CPU means then', async () => {
  const args = 'plan --rps 120 --render 30ms --wait 100ms --slo p99=700ms'.split(' ');
  const { code, stdout } = await corelane(...args);
  expect(code).toBe(0);
  expect(stdout).toMatch(/^concurrency +1 +Auto, finds 8\nworkers +20 +8\npods +5 +2\ncores +20 +8\n/);
  expect(stdout).toMatch(/^ {2}at most +23 % +99 %$/m);
  expect(stdout).toContain('"above 20 %" is 87 % of what it can do. Scale by occupancy.');
  const four = await corelane(...args, '--concurrency', 'Auto', '--max', '2');
  expect(four.stdout).toMatch(/^concurrency +Auto, finds 2\nworkers +12\npods +3\n/);
});

test('plan says where a threshold on CPU never comes', async () => {
  const { stdout } = await corelane(
    ...'plan --rps 100 --render 10ms --wait 90ms --slo p99=600ms --concurrency 1'.split(' '),
  );
  expect(stdout).toContain('A worker that is never without work uses 10 % of its core, so "above 20 %" never comes.');
});

test('plan says when nothing helps', async () => {
  const { code, stdout } = await corelane(...'plan --rps 120 --render 80ms --cv 1 --slo p99=300ms'.split(' '));
  expect(code).toBe(2);
  expect(stdout).toContain('the p99 of the render alone is 392 ms');
});

test('plan -f says whether the fleet of a RenderService keeps its objectives', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'corelane-'));
  const file = join(folder, 'shop.yaml');
  const write = (spec: string) =>
    writeFileSync(
      file,
      `{ apiVersion: v1, kind: Namespace, metadata: { name: web } }
---
apiVersion: corelane.dev/v1alpha1
kind: RenderService
metadata: { name: shop, namespace: web }
spec:
  template: { spec: { containers: [{ name: worker, image: "a:1" }] } }
  ${spec}
`,
    );
  const plan = (rps: number, ...more: string[]) =>
    corelane('plan', '-f', file, '--rps', String(rps), '--render', '80ms', ...more);
  const objectives = 'objectives: { availability: 99.9, latency: { p50: 190ms, p99: 500ms } }';
  try {
    write(`${objectives}\n  replicas: 3`);
    const kept = await plan(40);
    expect(kept.code).toBe(0);
    expect(kept.stdout).toMatch(/^workers +6\npods +3\n/);
    expect(kept.stdout).toMatch(
      /\nshop, 3 pods: keeps p50=190ms \(\d+ ms simulated\)\nshop, 3 pods: keeps p99=500ms \(/,
    );
    const late = await plan(70);
    expect(late.code).toBe(2);
    expect(late.stdout).toMatch(
      /\nshop, 3 pods: keeps p50=190ms \(\d+ ms simulated\)\nshop, 3 pods: does not keep p99=500ms, which takes 4 \(\d+ ms simulated\)\n$/,
    );
    expect((await plan(120)).stdout).toContain('does not keep p99=500ms, which takes 6 (its queues grow without end)');
    expect((await plan(120, '--workers', '4')).code).toBe(0);
    expect((await plan(40, '--slo', 'p99=300ms')).stdout).toContain('No number of pods holds p99=300ms');
    write(`${objectives}\n  workersPerPod: 4\n  scaling: { maxReplicas: 3 }`);
    expect((await plan(145)).stdout).toContain('\nshop, 3 pods at most: does not keep p99=500ms, which takes 4 (');
    write('objectives: { availability: 99.9 }');
    expect((await plan(40)).stderr).toContain('shop has no spec.objectives.latency; write it, or give --slo p99=400ms');
    write('objectives: { latency: { p99: 1m } }');
    const { code, stderr } = await plan(40);
    expect({ code, stderr }).toEqual({
      code: 64,
      stderr: expect.stringContaining('spec.objectives.latency.p99: must be a duration'),
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('simulate runs a policy through a trace of the user, and ends with the line for programs', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'corelane-'));
  try {
    writeFileSync(
      join(folder, 'day.csv'),
      `seconds,rps\n${Array.from({ length: 20 }, (_unused, index) => `${index * 60},30`).join('\n')}\n`,
    );
    writeFileSync(join(folder, 'policy.yaml'), 'scaling: { minReplicas: 3, maxReplicas: 9 }\n');
    const auto =
      'spec: { concurrency: Auto, concurrencyRange: { max: 8 }, scaling: { maxReplicas: 9 }, objectives: { latency: { p99: 700ms } } }\n';
    writeFileSync(join(folder, 'auto.yaml'), auto);
    const waiting = ['-f', join(folder, 'auto.yaml'), '--trace', join(folder, 'day.csv'), '--wait', '100ms'];
    const simulated = (await corelane('simulate', ...waiting)).stdout;
    expect(simulated).toContain('concurrency Auto (1 to 8), 4 workers a pod');
    expect(simulated).toMatch(/\b700 ms\b/);
    const args = ['-f', join(folder, 'policy.yaml'), '--trace', join(folder, 'day.csv'), '--out', folder];
    const { code, stdout, stderr } = await corelane('simulate', ...args);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout.trim().split('\n').at(-1)).toMatch(
      /^simulate: core_hours_vs_fixed=\d+\.\d\d slo_miss=0\.\d{4} flaps=0$/,
    );
    expect(readFileSync(join(folder, 'simulate.svg'), 'utf8')).toMatch(/^<svg .*<\/svg>\n$/s);
    expect(JSON.parse(readFileSync(join(folder, 'simulate.json'), 'utf8')).results).toHaveLength(7);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test.each([
  [['fly'], 'there is no command "fly"'],
  [['plan'], '--rps, --render and --slo (or -f) are needed'],
  [['plan', '--rps', '1', '--render', '80ms', '-f', 'examples/minimal.yaml'], 'has no spec.objectives.latency'],
  [['plan', '--rps', '1', '--render', '80ms', '-f', 'nowhere.yaml'], 'there is no file nowhere.yaml'],
  [['plan', '--rps', '1', '--render', '80ms', '-f', 'charts/install.yaml'], 'charts/install.yaml has no RenderService'],
  [['plan', '--rps', 'many', '--render', '80ms', '--slo', 'p99=1s'], '--rps must be a number'],
  [['plan', '--rps', '1', '--render', '80', '--slo', 'p99=1s'], '--render must be a time'],
  [['plan', '--rps', '1', '--render', '80ms', '--slo', '1s'], '--slo must be such as'],
  [['plan', '--rps', '1', '--render', '80ms', '--slo', 'p99=1s', '--wait', '9'], '--wait must be a time'],
  [['plan', '--rps', '1', '--render', '80ms', '--slo', 'p99=1s', '--concurrency', 'many'], '--concurrency must be'],
  [['simulate', '--concurrency', '1.5'], 'concurrency must be a number from 1 to 1000, or Auto'],
  [['simulate', '--concurrency', 'Auto', '--max', '65'], '--max: Too big: expected number to be <=64'],
  [['profile'], 'one name of a RenderService is needed'],
  [['profile', 'shop', '--worker', '64'], '--worker must be a number from 0 to 63'],
  [['simulate', '--sed', '1'], "Unknown option '--sed'"],
  [['simulate', '-f', 'examples/minimal.yaml'], 'has no "scaling"'],
])('%j is refused with a sentence', async (args, message) => {
  const { code, stderr } = await corelane(...args);
  expect({ code, stderr }).toEqual({ code: 64, stderr: expect.stringContaining(message) });
});

test.each([
  [{}, 'there is no kubeconfig: set KUBECONFIG'],
  [{ KUBECONFIG: '/nonexistent/config' }, 'the kubeconfig cannot be read: ENOENT'],
])('profile with the environment %j says what is missing', async (environment, message) => {
  const { code, stderr } = await corelaneWith(environment, 'profile', 'shop');
  expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(message) });
});
