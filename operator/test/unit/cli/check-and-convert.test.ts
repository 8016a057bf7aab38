/** `corelane convert` and `corelane check`, as a user calls them; what each command says of a cluster that says no. */
import { execFile, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bareEnvironment } from '../../support/bare-environment.ts';

const root = fileURLToPath(new URL('../../../..', import.meta.url));
const golden = (file: string) => join(root, 'operator/test/unit/convert/golden', file);
let folder: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'corelane-'));
});
afterAll(() => rmSync(folder, { recursive: true }));

interface Outcome {
  code: number;
  stdout: string;
  stderr: string;
}

/** Without a container engine on the PATH: what an image of this machine says would be found, too. */
function corelane(
  args: string[],
  { input = '', env = {} }: { input?: string; env?: Record<string, string> } = {},
): Promise<Outcome> {
  const { promise, resolve } = Promise.withResolvers<Outcome>();
  const child = execFile(
    process.execPath,
    [join(root, 'operator/bin/corelane.mjs'), ...args],
    { env: bareEnvironment(folder, env) },
    (error, stdout, stderr) => resolve({ code: Number(error?.code ?? 0), stdout, stderr }),
  );
  // A command that reads no input may have ended by now: its exit code is what counts.
  child.stdin?.on('error', () => {}).end(input);
  return promise;
}

/** A port on which nobody listens. */
async function closedPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

test('convert writes the YAML to standard output and all else to standard error', async () => {
  const { code, stdout, stderr } = await corelane([
    'convert',
    '-f',
    golden('npm-start.in.yaml'),
    '--name',
    'blog-render',
  ]);
  // The line with the options is a comment of the user's here.
  const written = stdout.replace(/^# corelane convert .*\n/, '');
  expect({ code, written }).toEqual({ code: 0, written: readFileSync(golden('npm-start.out.yaml'), 'utf8') });
  expect(stderr).toMatch(
    /^C001 info {4}\S+npm-start\.in\.yaml:\d+ spec\.template\.spec\.containers\[0\]\.ports: removed/m,
  );
  expect(stderr).toMatch(/kubectl patch service\/SERVICE/);
  expect(stderr.trim().split('\n').at(-1)).toBe('convert: 4 infos (docs/check.md has the codes)');
});

test('convert reads standard input, and what it writes can be checked', async () => {
  const input = readFileSync(golden('list.in.yaml'), 'utf8');
  const args = ['convert', '-f', '-', 'deployment/front', '--name', 'front-render', '-n', 'shop'];
  const converted = await corelane(args, { input });
  expect(converted).toMatchObject({ code: 0, stderr: expect.stringContaining('stdin:17 ') });
  const checked = await corelane(['check', '-f', '-', '--node-cpu', '4'], { input: converted.stdout });
  expect(checked).toMatchObject({
    code: 0,
    stderr: '',
    stdout: expect.stringMatching(/^RenderService\/front-render \(stdin\)\n {2}ok {7}C001/),
  });
});

test.each([
  ['something is to be decided', ['small-cpu'], 2],
  ['only infos', ['npm-start', '--name', 'x'], 0],
  ['a warning', ['left-over', '--name', 'x'], 0],
  ['a warning with --strict', ['left-over', '--name', 'x', '--strict'], 2],
  ['a kind that cannot be converted', ['stateful-set'], 2],
  ['what the API server would refuse', ['reserved-port'], 2],
])('convert with %s', async (_what, [name, ...args], code) => {
  expect((await corelane(['convert', '-f', golden(`${name}.in.yaml`), ...args])).code).toBe(code);
});

test('what would be refused is not written', async () => {
  const { stdout, stderr } = await corelane(['convert', '-f', golden('reserved-port.in.yaml')]);
  expect(stdout).toBe('');
  expect(stderr).toContain('Nothing is written: the API server would refuse it.');
});

test('what would lead past a login is not written, and has no plan', async () => {
  const { code, stdout, stderr } = await corelane([
    'convert',
    '-f',
    golden('oauth2-proxy.in.yaml'),
    '--name',
    'web-render',
  ]);
  expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
  expect(stderr).toMatch(
    /^C010 error {3}\S+oauth2-proxy\.in\.yaml:\d+ Service\/web spec\.ports\[0\]: port 80 leads to/m,
  );
  expect(stderr).toContain('Nothing is written: it would open what is closed, or delete what has to stay.');
  expect(stderr).not.toMatch(/kubectl (apply|patch|delete)/);
});

test('findings as JSON', async () => {
  const convert = await corelane(['convert', '-f', golden('small-cpu.in.yaml'), '-o', 'json', '--name', 'x']);
  const { written, findings, plan } = JSON.parse(convert.stderr);
  expect({ written, plan }).toEqual({
    written: true,
    plan: expect.arrayContaining([expect.stringMatching(/^kubectl apply/)]),
  });
  expect(findings).toContainEqual({
    code: 'C015',
    level: 'warning',
    object: 'Deployment/storefront',
    path: 'spec.scaling',
    place: expect.stringMatching(/small-cpu\.in\.yaml:\d+$/),
    what: '20 % of 0.25 CPU is 50m',
    why: expect.any(String),
    wayOut: expect.any(String),
  });
  const check = await corelane(['check', '-f', golden('small-cpu.in.yaml'), '-o', 'json']);
  expect(JSON.parse(check.stdout)).toMatchObject([{ object: 'Deployment/storefront', findings: expect.any(Array) }]);
});

test('an image of this machine tells what it sets and starts', async () => {
  const bin = mkdtempSync(join(folder, 'bin-'));
  const config = {
    Env: ['NODE_VERSION=16.20.0', 'NODE_OPTIONS=--trace-gc'],
    Cmd: ['pm2-runtime', '-i', 'max', 'a.js'],
  };
  const docker = `#!${process.execPath}\nconsole.log(process.argv.at(-1) === 'app:1' ? '${JSON.stringify(config)}' : '?')\n`;
  writeFileSync(join(bin, 'docker'), docker, { mode: 0o755 });
  const file = join(folder, 'image.yaml');
  const text = readFileSync(join(root, 'examples/minimal.yaml'), 'utf8');
  writeFileSync(file, text.replace('corelane.local/storefront:dev', 'app:1'));
  const { stdout } = await corelane(['check', '-f', file, '-o', 'json'], { env: { PATH: bin } });
  const [{ findings }] = JSON.parse(stdout);
  const found = findings.map(({ code, level }: { code: string; level: string }) => `${code} ${level}`);
  expect(found).toEqual(expect.arrayContaining(['C005 error', 'C006 decide', 'C013 error']));
});

/** A Deployment as nobody would be given it by an API server. */
const hostile = (name: string, namespace: string) => `apiVersion: apps/v1
kind: Deployment
metadata: { name: ${JSON.stringify(name)}, namespace: ${JSON.stringify(namespace)} }
spec:
  selector: { matchLabels: { app: shop } }
  template:
    metadata: { labels: { app: shop } }
    spec: { containers: [{ name: ${JSON.stringify(name)}, image: ${JSON.stringify(name)} }] }
---
apiVersion: v1
kind: Service
metadata: { name: ${JSON.stringify(name)}, namespace: ${JSON.stringify(namespace)} }
spec: { selector: { app: shop }, ports: [{ port: 80 }] }
---
apiVersion: apps/v1
kind: StatefulSet
metadata: { name: ${JSON.stringify(name)} }
spec: {}
`;

test('names in a file move no cursor, set no title and turn no line around', async () => {
  const acting = '\u001b]0;title\u0007\u001b[2J\u009b2J\u202egnp';
  const file = join(folder, 'acting.yaml');
  writeFileSync(file, hostile(acting, acting));
  const only = join(folder, 'acting-set.yaml');
  writeFileSync(only, hostile(acting, acting).split('---\n').at(-1) ?? '');
  for (const args of [
    ['check', '-f', file],
    ['convert', '-f', file, '--name', 'shop-render'],
    ['check', '-f', file, '-o', 'json'],
    ['check', '-f', only, '-o', 'json'],
    ['convert', '-f', file, '--name', 'shop-render', '-o', 'json'],
    ['check', '-f', only],
    ['convert', '-f', only],
    ['convert', '-f', file, acting],
    ['check', '-f', join(folder, `no${acting}file`)],
  ]) {
    const { code, stdout, stderr } = await corelane(args);
    // What convert writes to standard output is a file: the values stay what they are.
    const said = args[0] === 'convert' ? stderr : stdout + stderr;
    expect(said).toContain('title');
    expect({ args, code, acting: /(?!\n)[\p{Cc}\u202e]/u.exec(said)?.[0] }).toMatchObject({ acting: undefined });
  }
});

test('the commands of the traffic plan run nothing but kubectl, whatever the objects are called', async () => {
  const mark = join(folder, 'injected');
  const file = join(folder, 'names.yaml');
  const name = `a'; touch ${mark}; b$(touch ${mark})\`touch ${mark}\` "c`;
  writeFileSync(file, hostile(name, name));
  const { stderr } = await corelane(['convert', '-f', file, '--name', 'shop-render', '-o', 'json']);
  const { plan } = JSON.parse(stderr);
  expect(plan.join('\n')).toContain(`touch ${mark}`);
  const script = ['set -eu', 'kubectl() { echo "kubectl $1"; }', ...plan].join('\n');
  expect(execFileSync('sh', ['-c', script], { encoding: 'utf8' })).toContain('kubectl delete\n');
  expect(existsSync(mark)).toBe(false);
});

test('fields that every object of JavaScript has are fields like others', async () => {
  const names = ['__proto__', 'constructor', 'toString', 'hasOwnProperty'];
  const fields = names.map((name) => `  ${name}: { replicas: 9 }\n`).join('');
  const file = join(folder, 'fields.yaml');
  writeFileSync(file, hostile('shop', 'shop').replace('\nspec:\n', `\nspec:\n${fields}`));
  const { code, stderr } = await corelane(['convert', '-f', file, '--name', 'shop-render', '-o', 'json']);
  const found = JSON.parse(stderr).findings.filter(({ level }: { level: string }) => level === 'warning');
  expect(code).toBe(2);
  expect(found.map(({ level, path }: { level: string; path: string }) => `${level} ${path}`)).toEqual(
    names.map((name) => `warning spec.${name}`),
  );
});

test('a file without an end is refused', async () => {
  for (const args of [
    ['check', '-f', '/dev/zero'],
    ['convert', '-f', '/dev/zero'],
  ])
    expect(await corelane(args)).toMatchObject({ code: 64, stderr: 'corelane: /dev/zero is larger than 8 MB\n' });
});

test('a file with many images starts no more than some processes', async () => {
  const bin = mkdtempSync(join(folder, 'bin-'));
  const asked = join(folder, 'asked');
  writeFileSync(join(bin, 'docker'), `#!/bin/sh\necho "$5" >>${asked}\nexit 1\n`, { mode: 0o755 });
  const file = join(folder, 'images.yaml');
  const containers = Array.from({ length: 1_000 }, (_unused, index) => `{ name: c${index}, image: "app:${index}" }`);
  const text = hostile('shop', 'shop').replace(/containers: \[.*\]/, `containers: [${containers.join(', ')}]`);
  writeFileSync(file, text.replace('image: "app:0"', 'image: "--format=x"'));
  await corelane(['check', '-f', file], { env: { PATH: bin } });
  const images = readFileSync(asked, 'utf8').trim().split('\n');
  expect(images).toHaveLength(99);
  expect(images.filter((image) => !/^app:\d+$/.test(image))).toEqual([]);
});

test('check is a checklist that fits a terminal', async () => {
  const file = join(folder, 'shop.yaml');
  const text = readFileSync(join(root, 'examples/scaling.yaml'), 'utf8');
  writeFileSync(file, text.replace('cpu: "1"', 'cpu: 100m').replace('workersPerPod: 1', 'workersPerPod: 64'));
  const { code, stdout } = await corelane(['check', '-f', file, '--node-cpu', '4']);
  expect(code).toBe(2);
  const lines = stdout.split('\n');
  expect(lines.filter((line) => line.length > 100 && !line.includes(folder))).toEqual([]);
  expect(stdout).toMatch(/^ {2}error {4}C003 {2}the pod fits a node$/m);
  expect(stdout).toMatch(/^ {2}warning {2}C015 {2}percent of a small request$/m);
  expect(stdout).toMatch(
    /^ {2}skipped {2}C014 {2}LimitRanges take the pods and leave the proxies alone\n +give the LimitRange/m,
  );
  expect(lines.at(-2)).toMatch(/^check: 1 error, 1 warning, \d infos, \d could not be looked at \(docs/);
});

test.each([
  ['error', 0],
  ['decide', 0],
  ['warning', 2],
  ['Info', 2],
])('--failure-threshold %s', async (threshold, code) => {
  const file = join(folder, 'limit.yaml');
  const text = readFileSync(join(root, 'examples/storefront.yaml'), 'utf8');
  writeFileSync(file, text.replace('memory: 512Mi', 'memory: 512Mi, cpu: 500m'));
  expect((await corelane(['check', '-f', file, '--failure-threshold', threshold])).code).toBe(code);
});

test.each<[args: string[], message: string]>([
  [['convert'], '-f FILE or deployment/NAME is needed'],
  [['convert', '-f', '/nonexistent.yaml'], 'there is no file /nonexistent.yaml'],
  [['convert', '-f', '/'], '-f takes files, no folders'],
  [['convert', '-f', 'README.md'], 'README.md is no YAML'],
  [['convert', '-f', 'examples/minimal.yaml'], 'no Deployment in examples/minimal.yaml'],
  [['convert', '-f', golden('list.in.yaml')], 'there are 2 Deployments; name one of: deployment/back deployment/front'],
  [
    ['convert', '-f', golden('list.in.yaml'), 'deployment/side'],
    'there is no Deployment side; there are deployment/back',
  ],
  [
    ['convert', '-f', golden('sidecars.in.yaml'), '--container', 'x'],
    'has no container x; it has istio-proxy, cart, cloud',
  ],
  [['convert', 'pod/a'], '"pod/a" must be deployment/NAME'],
  [['convert', '-f', 'a', '--workers-per-pod', '0'], '--workers-per-pod must be a number from 1 to 64'],
  [
    ['check', '-f', 'a', '--failure-threshold', 'bad'],
    '--failure-threshold must be one of info, warning, decide, error',
  ],
  [['check', '-f', golden('kustomize.in.yaml'), 'rsvc/a'], 'no RenderService or Deployment a in'],
  [['check', '-f', 'examples/minimal.yaml', '-o', 'yaml'], '-o must be json'],
  [['check', '--server'], '--server is about files: give them with -f'],
  [['check', '-f', 'examples/minimal.yaml', '--node-cpu', 'many'], '--node-cpu must be a number'],
])('%j is refused with a sentence', async (args, message) => {
  const files = args.map((arg) => (arg.startsWith('examples/') || arg === 'README.md' ? join(root, arg) : arg));
  const { code, stdout, stderr } = await corelane(files);
  expect({ code, stdout, stderr: stderr.replaceAll(root, '') }).toEqual({
    code: 64,
    stdout: '',
    stderr: expect.stringContaining(message),
  });
});

/** A kubeconfig for an API server. */
function kubeconfig(server: string): { KUBECONFIG: string } {
  const file = join(folder, 'kubeconfig');
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'a', cluster: { server, 'insecure-skip-tls-verify': true } }],
    contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
    users: [{ name: 'a', user: {} }],
    'current-context': 'a',
  };
  writeFileSync(file, JSON.stringify(config));
  return { KUBECONFIG: file };
}

/** A user who may list Services and Servers of Linkerd, in a cluster with an old Linkerd, Cilium, and nothing else. */
test('convert reads policies of an old mesh, and misses no right to list what is not there', async () => {
  const group = (name: string, ...versions: string[]) => ({ name, versions: versions.map((version) => ({ version })) });
  const labels = { app: 'shop' };
  const template = { metadata: { labels }, spec: { containers: [{ name: 'shop', image: 'shop:1' }] } };
  const answers: Record<string, object> = {
    '/apis': {
      groups: [group('apps', 'v1'), group('policy.linkerd.io', 'v1beta3', 'v1beta1'), group('cilium.io', 'v2')],
    },
    '/apis/apps/v1/namespaces/default/deployments/shop': {
      metadata: { name: 'shop' },
      spec: { selector: { matchLabels: labels }, template },
    },
    '/api/v1/namespaces/default/services': { items: [] },
    '/apis/policy.linkerd.io/v1beta1/namespaces/default/servers': {
      items: [{ metadata: { name: 'closed' }, spec: { podSelector: { matchLabels: labels }, port: 3000 } }],
    },
  };
  const server = http.createServer(({ url = '' }, response) => {
    const path = url.replace(/\?.*/, '');
    const status = answers[path] ? 200 : path.includes('v1beta3') ? 404 : 403;
    response.writeHead(status).end(JSON.stringify(answers[path] ?? { kind: 'Status', message: 'no' }));
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  try {
    const { port } = server.address() as AddressInfo;
    const { stderr } = await corelane(['convert', 'deployment/shop'], { env: kubeconfig(`http://127.0.0.1:${port}`) });
    expect(stderr).toContain('no Server selects the new ones');
    expect(stderr).toContain('you may not list CiliumNetworkPolicy');
  } finally {
    server.closeAllConnections();
    server.close();
  }
});

describe.each([
  ['check', [], 'renderservices of namespace default cannot be listed'],
  ['convert', ['deployment/shop'], 'Deployment default/shop cannot be read'],
  ['profile', ['shop'], 'pods of namespace default cannot be listed'],
  ['cache', ['purge', 'shop'], 'pods of namespace default cannot be listed'],
])('%s', (name, args, sentence) => {
  const said = async (env: Record<string, string>) => {
    const { code, stdout, stderr } = await corelane([name, ...args], { env });
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    return stderr;
  };

  test('without a cluster says so', async () => {
    expect(await said({})).toBe('corelane: there is no kubeconfig: set KUBECONFIG, or make ~/.kube/config\n');
    const away = await said(kubeconfig(`https://127.0.0.1:${await closedPort()}`));
    expect(away).toContain(`corelane: ${sentence}: `);
    expect(away).toContain('ECONNREFUSED');
  });

  test.each([
    [403, '{"kind":"Status","message":"no, says RBAC","reason":"Forbidden"}', '403 no, says RBAC'],
    [502, '<p>a proxy in between</p>', '502 <p>a proxy in between</p>'],
  ])("of a cluster that refuses says the cluster's own words: %i", async (status, body, words) => {
    const server = http.createServer((_request, response) => response.writeHead(status).end(body));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    try {
      const { port } = server.address() as AddressInfo;
      expect(await said(kubeconfig(`http://127.0.0.1:${port}`))).toBe(`corelane: ${sentence}: ${words}\n`);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });
});
