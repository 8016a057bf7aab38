/** What `corelane run` makes of a file or a folder. `UPDATE_GOLDEN=1` rewrites golden/*.txt. */
import { execFileSync } from 'node:child_process';
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

describe('a file as kubectl reads it', () => {
  const load = (text: string) => loadDocuments(text, { source: 'f' });
  const variables = (text: string) =>
    Object.fromEntries(load(text).worker.env?.map(({ name, value }) => [name, value]) ?? []);
  const service = (container: string) =>
    `{ apiVersion: corelane.dev/v1alpha1, kind: RenderService, metadata: { name: shop }, spec: { template: { spec: { containers: [{ name: worker, image: a, ${container} }] } } } }`;
  const settings = '{ apiVersion: v1, kind: ConfigMap, metadata: { name: c }, data: { A: "on" } }';

  test('Lists, with other kinds beside, and a RenderServiceList of an API server', () => {
    const both = `- ${settings}\n- ${service('envFrom: [{ configMapRef: { name: c } }]')}\n`;
    const other = '- { apiVersion: v1, kind: Namespace, metadata: { name: web } }\n';
    expect(variables(`apiVersion: v1\nkind: List\nitems:\n${other}${both}`)).toEqual({ A: 'on' });
    expect(variables(`kind: List\nitems:\n- kind: List\n  items:\n${both.replaceAll(/^/gm, '  ')}`)).toEqual({
      A: 'on',
    });
    const spec = { template: { spec: { containers: [{ name: 'worker', image: 'a' }] } } };
    const items = [{ metadata: { name: 'shop' }, spec }];
    const list = { apiVersion: 'corelane.dev/v1alpha1', kind: 'RenderServiceList', metadata: {}, items };
    expect(load(JSON.stringify(list)).name).toBe('shop');
  });

  test('merges, and anchors of one document', () => {
    const container = 'env: [&one { name: A, value: "1" }, { <<: *one, name: B }, { name: C, <<: *one }]';
    // With kubectl, too, what is merged wins over what stands before it: the third is A once more.
    expect(variables(service(container))).toEqual({ A: '1', B: '1' });
  });

  test('quotes make text of what looks like something else; a variable without a value is empty', () => {
    const env = `env: [{ name: A, value: "on" }, { name: B, value: '010' }, { name: C, value: 12:30 }, { name: D, value: }]`;
    expect(variables(service(`${env}, args: [., "8", e3]`))).toEqual({ A: 'on', B: '010', C: '12:30', D: '' });
    expect(load(service(`args: [., "8", e3]`)).worker.args).toEqual(['.', '8', 'e3']);
  });

  test('null in a ConfigMap is empty text', () => {
    const file = `${settings.replace('"on"', '')}\n---\n${service('envFrom: [{ configMapRef: { name: c } }]')}`;
    expect(variables(file)).toEqual({ A: '' });
  });

  test('kubelet replaces $(NAME) only where a value stands in the file', () => {
    const env =
      'env: [{ name: A, value: a }, { name: B, value: "$(A)" }, { name: C, valueFrom: { configMapKeyRef: { name: c, key: C } } }]';
    const data = settings.replace('A: "on"', () => 'C: "$(A)", D: "$$(A) $$"');
    const text = `${service(`${env}, envFrom: [{ configMapRef: { name: c } }]`)}\n---\n${data}`;
    const set = [{ name: 'E', value: '$(A) $$' }];
    const { worker } = loadDocuments(text, { source: 'f', env: set });
    expect(containerArguments(worker).filter((one) => /^[A-E]=/.test(one))).toEqual([
      ...['D=$$(A) $$', 'A=a', 'B=a', 'C=$(A)', 'E=$(A) $$'],
    ]);
  });

  test('the name of a variable from a file of bytes', () => {
    const env = [{ name: 'A\0', value: 'x' }];
    expect(() => loadDocuments(service(''), { source: 'f', env })).toThrow('has a byte 0, which no variable can have');
  });

  test('--image wins over the image of the file, which need not have one', () => {
    const without = service('').replace('image: a, ', '');
    for (const text of [without, service(''), service('').replace('image: a', 'image: "{{ image }}"')])
      expect(loadDocuments(text, { source: 'f', image: 'b' }).worker.image).toBe('b');
  });
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

  test('renderservice.yaml need not name an image; what it says of one does not matter', () => {
    write('server.js', '');
    const file = (container: string) =>
      `kind: RenderService\nmetadata: { name: shop }\nspec: { template: { spec: { containers: [{ name: worker${container} }] } } }\n`;
    for (const [container, said] of [
      ['', []],
      [', image: "{{ image }}"', ["image of the worker: the folder's own program runs"]],
    ] as const) {
      write('renderservice.yaml', file(container));
      const { worker, leftOut } = load();
      expect({ image: worker.image, command: worker.command, leftOut }).toEqual({
        image: 'node:24',
        command: ['node', 'server.js'],
        leftOut: said,
      });
    }
  });

  test('renderservice.yaml in UTF-16, as Windows writes it and kubectl reads it', () => {
    write('server.js', '');
    const text =
      '\ufeffkind: RenderService\nmetadata: { name: shop }\nspec: { template: { spec: { containers: [{ name: worker }] } } }\n';
    for (const bytes of [Buffer.from(text), Buffer.from(text, 'utf16le'), Buffer.from(text, 'utf16le').swap16()]) {
      writeFileSync(join(folder, 'renderservice.yaml'), bytes);
      expect(load().name).toBe('shop');
    }
  });

  test('names that YAML takes for booleans', () => {
    write('package.json', { name: 'no', main: 'on' });
    write('on', '');
    expect(load()).toMatchObject({ name: 'no', worker: { command: ['node', 'on'] } });
  });

  test('nothing to start, or a package.json that is none, is said', () => {
    expect(messageOf(load)).toMatch(/^app has nothing to start: a "start" script/);
    write('package.json', '{');
    expect(messageOf(load)).toMatch(/^app\/package\.json cannot be used: /);
  });
});

test('an env file is read as node --env-file reads it', () => {
  const text = [
    '# a comment',
    '',
    'PEM="-----BEGIN KEY-----',
    'a#b=c',
    '-----END KEY-----"',
    'A=x # c',
    'B="y" # c',
    'C="a\\nb"',
    "D='a\\nb'",
    'E=`it\'s "it"`',
    'export F = two words ',
    'G=',
    'H="not closed',
    'I=a$$b $(A)',
    'A=again',
    'no variable',
    '  J=indented\r',
    'K=#',
    'L=last',
    '=nameless',
  ].join('\n');
  const folder = mkdtempSync(join(tmpdir(), 'corelane-env-'));
  try {
    writeFileSync(join(folder, '.env'), text);
    const args = [`--env-file=${join(folder, '.env')}`, '--print', 'JSON.stringify(process.env)'];
    const asNode = JSON.parse(execFileSync(process.execPath, args, { env: {}, encoding: 'utf8' }));
    const own = Object.fromEntries(envOfFile(text).map(({ name, value }) => [name, value]));
    expect(own).toEqual(asNode);
    expect(own).toMatchObject({
      ...{ PEM: '-----BEGIN KEY-----\na#b=c\n-----END KEY-----', A: 'again', B: 'y', C: 'a\nb', D: 'a\\nb' },
      ...{ E: 'it\'s "it"', F: 'two words', G: '', I: 'a$$b $(A)', L: 'last' },
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
});
