/** The npm package of the command line, as somebody has it who has no clone: packed, installed, called. */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const root = fileURLToPath(new URL('../../../..', import.meta.url));
const json = (path: string) => JSON.parse(readFileSync(path, 'utf8'));
const folder = mkdtempSync(join(tmpdir(), 'corelane-package-'));
const home = join(folder, 'home');
const installed = join(home, 'node_modules/corelane');
/** Of Node.js alone, and nothing of the clone. */
const env = { PATH: process.env.PATH, HOME: home };

async function run(command: string, args: string[], cwd = home) {
  try {
    return { code: 0, ...(await promisify(execFile)(command, args, { cwd, env })) };
  } catch (error) {
    return error as { code: number; stdout: string; stderr: string };
  }
}

const corelane = (...args: string[]) => run(process.execPath, [join(home, 'node_modules/.bin/corelane'), ...args]);

beforeAll(async () => {
  mkdirSync(home);
  writeFileSync(join(home, 'package.json'), '{}');
  const quiet = ['--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'];
  for (const [command, args] of [
    [process.execPath, [join(root, 'operator/gen/package.ts'), join(folder, 'package')]],
    ['npm', ['pack', join(folder, 'package'), '--pack-destination', folder, ...quiet]],
    // Nothing is fetched: all that it needs is in it.
    [
      'npm',
      ['install', '--offline', ...quiet, join(folder, `corelane-${json(join(root, 'package.json')).version}.tgz`)],
    ],
  ] as const) {
    const { code, stderr } = await run(command, [...args]);
    if (code !== 0) throw new Error(`${command} ${args.join(' ')}: ${stderr}`);
  }
});
afterAll(() => rmSync(folder, { recursive: true }));

test('installs nothing else', () => {
  expect(readdirSync(join(home, 'node_modules')).filter((name) => !name.startsWith('.'))).toEqual(['corelane']);
});

test('says its version, and lists its commands', async () => {
  expect(await corelane('--version')).toMatchObject({
    code: 0,
    stdout: `${json(join(root, 'package.json')).version}\n`,
  });
  expect((await corelane('--help')).stdout).toMatch(/^ {2}plan {2,}\w/m);
});

test('plans', async () => {
  const { code, stdout } = await corelane(...'plan --rps 120 --render 80ms --cv 1 --slo p99=400ms'.split(' '));
  expect(code).toBe(0);
  expect(stdout).toMatch(/^workers +16\npods +4\n/);
});

test('simulates', async () => {
  const minutes = Array.from({ length: 20 }, (_unused, index) => `${index * 60},30`);
  writeFileSync(join(home, 'day.csv'), `seconds,rps\n${minutes.join('\n')}\n`);
  writeFileSync(join(home, 'policy.yaml'), 'scaling: { minReplicas: 3, maxReplicas: 9 }\n');
  const { code, stdout } = await corelane(...'simulate -f policy.yaml --trace day.csv --out .'.split(' '));
  expect(code).toBe(0);
  expect(stdout.trim().split('\n').at(-1)).toMatch(/^simulate: core_hours_vs_fixed=/);
});

test('without a cluster, profile says that there is none', async () => {
  const { code, stderr } = await corelane('profile', 'storefront');
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: 'corelane: there is no kubeconfig: set KUBECONFIG, or make ~/.kube/config\n',
  });
});

test('has the page of the dashboard, made of our source and of libraries that are listed', async () => {
  const page = readFileSync(join(installed, 'operator/cli/page.js'), 'utf8');
  expect(page).toContain('EventSource');
  expect(readFileSync(join(installed, 'operator/cli/page.css'), 'utf8')).toContain('prefers-color-scheme');
  const { components } = json(join(installed, 'bundle.cdx.json')) as { components: { name: string }[] };
  expect(components.map(({ name }) => name)).toEqual(expect.arrayContaining(['preact', 'uplot']));
  // Nothing that it would need, and that is not there.
  expect(components.map(({ name }) => name)).not.toContain('esbuild');
});

test('without a cluster, dashboard says that there is none', async () => {
  expect(await corelane('dashboard', 'storefront')).toMatchObject({
    code: 1,
    stderr: 'corelane: there is no kubeconfig: set KUBECONFIG, or make ~/.kube/config\n',
  });
});

test('is a plugin of kubectl by its second name', async () => {
  const plugin = join(home, 'node_modules/.bin/kubectl-corelane');
  expect((await run(process.execPath, [plugin, '--version'])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
});

test.each(['20.20.2', '22.18.0', '18.19.1'])('on Node.js %s says what it needs, and how to get it', async (version) => {
  const old = `data:text/javascript,Object.defineProperty(process.versions,'node',{value:'${version}'})`;
  const { code, stderr } = await run(process.execPath, [
    '--import',
    old,
    join(installed, 'operator/bin/corelane.mjs'),
    'plan',
  ]);
  expect(code).toBe(1);
  expect(stderr).toMatch(new RegExp(`^corelane: needs Node.js 22.19 or newer, this is ${version}. .*npx -p node@24 `));
});

test('has what the image of the proxies is built of, and no test', () => {
  const dockerfile = readFileSync(join(installed, 'Dockerfile'), 'utf8');
  const copied = [...dockerfile.matchAll(/^COPY (sidecar\/\S+) /gm)].map(([, path]) => path as string);
  expect(copied.length).toBeGreaterThan(5);
  expect(copied.filter((path) => !existsSync(join(installed, path)))).toEqual([]);
  expect(existsSync(join(installed, '.dockerignore'))).toBe(true);
  expect(existsSync(join(installed, 'sidecar/test'))).toBe(false);
});

test('passes on the licences of all packages that are in the bundle', () => {
  const text = readFileSync(join(installed, 'THIRD-PARTY-LICENSES'), 'utf8');
  const { components } = json(join(installed, 'bundle.cdx.json')) as {
    components: { name: string; version: string }[];
  };
  expect(components.map(({ name }) => name)).toEqual(expect.arrayContaining(['client-node', 'yaml', 'zod']));
  expect(components.filter(({ name, version }) => !text.includes(`${name} ${version}\n`))).toEqual([]);
});
