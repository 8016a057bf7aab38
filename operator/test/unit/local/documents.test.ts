/** What `corelane run` makes of a file or a folder. `UPDATE_GOLDEN=1` rewrites golden/*.txt. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { loadFolder } from '../../../local/app-folder.ts';
import { containerArguments, emptyDirOptions } from '../../../local/container.ts';
import { loadDocuments } from '../../../local/documents.ts';
import { envOfFile } from '../../../local/env.ts';
import { workerContainers } from '../../../src/plan/workers.ts';
import { BAD_INPUT } from './bad-input.ts';

const GOLDEN = new URL('golden/', import.meta.url);

function expectGolden(name: string, text: string): void {
  const file = new URL(name, GOLDEN);
  if (process.env.UPDATE_GOLDEN) writeFileSync(file, text);
  expect(text).toBe(readFileSync(file, 'utf8'));
}

function messageOf(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    return (error as Error).message;
  }
  return 'no error';
}

test('what is refused, and the message', () => {
  const all = Object.entries(BAD_INPUT).map(
    ([what, text]) => `--- ${what}\n${messageOf(() => loadDocuments(text, { source: 'shop.yaml' }))}\n`,
  );
  expectGolden('bad-input.txt', all.join('\n'));
});

test('options for the engine, and a line for each field that has no effect', () => {
  const text = readFileSync(new URL('laptop.yaml', GOLDEN), 'utf8');
  const set = [{ name: 'GREETING', value: 'from the command line' }];
  const { name, spec, worker, leftOut } = loadDocuments(text, { source: 'laptop.yaml', env: set });
  expect([name, spec.workersPerPod]).toEqual(['laptop', 1]);
  const [container] = workerContainers(spec, worker);
  if (!container) throw new Error('no worker');
  const options = [...emptyDirOptions(spec, worker), ...containerArguments(container)]
    .join('\n')
    .replaceAll('--env\n', '--env ');
  expectGolden('laptop.txt', `${options}\n\nleft out:\n${leftOut.join('\n')}\n`);
});

test('a page of a ConfigMap is taken from the file; where it is missing, that is said', () => {
  const load = (key: string) => {
    const template = { spec: { containers: [{ name: 'worker', image: 'shop:1' }] } };
    const spec = { template, fallback: { configMap: { name: 'shell', key } } };
    const service = { kind: 'RenderService', metadata: { name: 'shop' }, spec };
    const map = { kind: 'ConfigMap', metadata: { name: 'shell' }, data: { 'index.html': '<p>' } };
    return loadDocuments([service, map].map((one) => JSON.stringify(one)).join('\n---\n'), { source: 'f' });
  };
  expect(load('index.html')).toMatchObject({ shell: '<p>', leftOut: [] });
  for (const key of ['200.html', 'toString'])
    expect(load(key)).toMatchObject({
      shell: undefined,
      leftOut: [expect.stringContaining(`there is no ConfigMap shell with the key ${key} in the file`)],
    });
});

test('--workers wins over the file, and is checked like it', () => {
  const text = readFileSync(new URL('laptop.yaml', GOLDEN), 'utf8');
  expect(loadDocuments(text, { source: 'f', workers: 3 }).spec.workersPerPod).toBe(3);
  expect(messageOf(() => loadDocuments(text, { source: 'f', workers: 65 }))).toContain('spec.workersPerPod: ');
});

describe('a folder', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'corelane-app-'));
  });
  afterEach(() => rmSync(folder, { recursive: true }));
  const load = () => loadFolder(folder, 'node:24', { source: 'app' });
  const write = (file: string, content: unknown) =>
    writeFileSync(join(folder, file), typeof content === 'string' ? content : JSON.stringify(content));

  test.each([
    ['"start"', { name: '@acme/Web_Shop', scripts: { start: 'node s.js' } }, 'web-shop', ['sh', '-c', 'node s.js']],
    ['"main"', { name: 'shop', main: 'lib.js' }, 'shop', ['node', 'lib.js']],
    ['server.js, where "main" is not there', { name: '42', main: 'gone.js' }, 'app', ['node', 'server.js']],
  ])('%s is what runs', (_what, description, name, command) => {
    write('package.json', description);
    for (const file of ['lib.js', 'server.js']) write(file, '');
    const service = load();
    expect([service.name, service.worker.command]).toEqual([name, command]);
    expect(service.worker).toMatchObject({ image: 'node:24', workingDir: '/app' });
    expect(service.worker.env).toContainEqual({ name: 'NODE_ENV', value: 'production' });
  });

  test('programs of its packages are found, as npm has them', () => {
    write('server.js', '');
    mkdirSync(join(folder, 'node_modules/.bin'), { recursive: true });
    expect(load().worker.env?.find(({ name }) => name === 'PATH')?.value).toMatch(/^\/app\/node_modules\/\.bin:/);
  });

  test('renderservice.yaml is used for all but image and command, and that is said', () => {
    write('server.js', '');
    write('renderservice.yaml', readFileSync(new URL('laptop.yaml', GOLDEN), 'utf8'));
    const service = load();
    expect(service).toMatchObject({ name: 'laptop', spec: { workersPerPod: 1 } });
    expect(service.worker).toMatchObject({ image: 'node:24', command: ['node', 'server.js'], workingDir: '/app' });
    expect(service.worker.args).toBeUndefined();
    expect(service.leftOut).toContain("image of the worker: the folder's own program runs");
  });

  test('nothing to start, or a package.json that is none, is said', () => {
    expect(messageOf(load)).toMatch(/^app has nothing to start: a "start" script/);
    write('package.json', '{');
    expect(messageOf(load)).toMatch(/^app\/package\.json cannot be used: /);
  });
});

test('an env file: comments, quotes, export; what is no variable is named by its line', () => {
  const text = '# a comment\n\nA=1\nexport B = "two words"\nC=\'x=y\'\nD=\n';
  const pairs = envOfFile(text).map(({ name, value }) => [name, value]);
  expect(pairs).toEqual([
    ['A', '1'],
    ['B', 'two words'],
    ['C', 'x=y'],
    ['D', ''],
  ]);
  expect(messageOf(() => envOfFile('A=1\nB'))).toBe('line 2 is not NAME=VALUE');
});
