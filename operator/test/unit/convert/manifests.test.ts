/** Manifests are read as kubectl reads them, and a bad one is refused with its place. */
import { lineOfField, parseManifests, pathSteps, pathText } from '../../../convert/manifests.ts';

const configMap = (data: string) => `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: a }\ndata:\n${data}`;
const dataOf = (data: string) => parseManifests(configMap(data), 'a.yaml')[0]?.value.data;

test.each([
  ['octal numbers', '  a: 0644\n  b: 010\n  c: 0o17\n  d: -0_7', { a: 420, b: 8, c: 15, d: -7 }],
  [
    'other numbers',
    '  a: 0x1F\n  b: 0b11\n  c: 1_000\n  d: 1e3\n  e: .5\n  f: 08\n  g: 0_',
    { a: 31, b: 3, c: 1000, d: 1000, e: 0.5, f: 8, g: 0 },
  ],
  [
    'what only looks like a number',
    '  a: .\n  b: e3\n  c: 1e4000\n  d: 1.2.3\n  e: _1\n  f: 0x',
    { a: '.', b: 'e3', c: '1e4000', d: '1.2.3', e: '_1', f: '0x' },
  ],
  ['yes, on, n and off', '  a: yes\n  b: on\n  c: Off\n  d: n', { a: true, b: true, c: false, d: false }],
  ['what is quoted, or has the tag of text', '  a: "on"\n  b: \'010\'\n  c: !!str no', { a: 'on', b: '010', c: 'no' }],
  ['a key that is a boolean', '  on: x\n  n: z\n  8: y', { true: 'x', false: 'z', 8: true }],
  ['null', '  a: ~\n  b:\n  c: null', { a: null, b: null, c: null }],
  ['a date is text', '  a: 2026-01-01\n  b: !!timestamp 2026-01-01', { a: '2026-01-01', b: '2026-01-01' }],
  ['a time is text', '  a: 12:30:45', { a: '12:30:45' }],
  ['a merge', '  a: &a { b: c }\n  d: { <<: *a, e: f }', { a: { b: 'c' }, d: { b: 'c', e: 'f' } }],
  [
    'a merge over what stands behind it',
    '  a: &a { b: c }\n  d: { <<: *a, b: own }',
    { a: { b: 'c' }, d: { b: 'own' } },
  ],
  ['a merge over what stands before it', '  a: &a { b: c }\n  d: { b: own, <<: *a }', { a: { b: 'c' }, d: { b: 'c' } }],
  [
    'a merge of several',
    '  a: &a { x: 1 }\n  b: &b { x: 2, v: 2 }\n  c: { <<: [*a, *b] }',
    { a: { x: 1 }, b: { x: 2, v: 2 }, c: { x: 1, v: 2 } },
  ],
  ['a quoted << is a key', '  "<<": x', { '<<': 'x' }],
  [
    'a merge within a merge',
    '  a: &a { x: 1 }\n  b: &b { <<: *a, v: { <<: *a } }\n  c: { <<: *b, z: 1 }',
    { a: { x: 1 }, b: { x: 1, v: { x: 1 } }, c: { x: 1, v: { x: 1 }, z: 1 } },
  ],
  ['an anchor of one name three times', '  a: &a x\n  b: &a [&a v, *a]', { a: 'x', b: ['v', 'v'] }],
  [
    'an anchor that is used two hundred times',
    `  a: &a x\n  b: [${'*a, '.repeat(200)}]`,
    { a: 'x', b: Array(200).fill('x') },
  ],
  ['CRLF', '  a: |\r\n    one\r\n    two\r\n  b: c\r\n', { a: 'one\ntwo\n', b: 'c' }],
])('%s', (_what, data, value) => {
  expect(dataOf(data)).toEqual(value);
});

test('documents, Lists and typed lists; empty documents are none', () => {
  const text = [
    '# only a comment',
    configMap('  a: b'),
    'apiVersion: v1\nkind: List\nitems:\n  - { kind: A, metadata: { name: a } }\n  - kind: List\n    items: [{ kind: B, metadata: { name: b } }]',
    'kind: DeploymentList\nitems: [{ kind: Deployment, metadata: { name: c } }]',
  ].join('\n---\n');
  const found = parseManifests(text, 'a.yaml').map(({ kind, name }) => `${kind}/${name}`);
  expect(found).toEqual(['ConfigMap/a', 'A/a', 'B/b', 'Deployment/c']);
});

test('items of a typed list have its kind; a list may be empty', () => {
  const list = (items: string) => `apiVersion: corelane.dev/v1alpha1\nkind: RenderServiceList\nitems: ${items}`;
  const [item] = parseManifests(list('[{ metadata: { name: a } }]'), 'a.yaml');
  expect(item?.value).toEqual({
    apiVersion: 'corelane.dev/v1alpha1',
    kind: 'RenderService',
    metadata: { name: 'a' },
  });
  for (const items of ['[]', 'null']) expect(parseManifests(list(items), 'a.yaml')).toEqual([]);
});

test('a name that the API server is to complete', () => {
  expect(parseManifests('kind: Job\nmetadata: { generateName: migrate- }\n', 'a.yaml')[0]?.name).toBe('migrate-');
});

test('a separator with a comment, an end of a document, a byte order mark', () => {
  const object = (name: string) => `kind: A\nmetadata: { name: ${name} }\n`;
  const text = `\ufeff--- # first\n${object('a')}...\n---\n# nothing\n---\n${object('b')}`;
  expect(parseManifests(text, 'a.yaml').map(({ name }) => name)).toEqual(['a', 'b']);
});

test('a key cannot change what objects inherit', () => {
  const text = configMap('  __proto__: { x: 1 }\n  a: &a { __proto__: { x: 1 } }\n  b: { <<: *a }');
  const data = parseManifests(text, 'a.yaml')[0]?.value.data as Record<string, Record<string, unknown>>;
  for (const object of [data, data.a, data.b]) {
    expect(Object.getPrototypeOf(object)).toBe(Object.prototype);
    expect(Object.keys(object as object)).toContain('__proto__');
  }
});

test('a map of many keys costs no minutes; a key that is there twice is found among them', () => {
  const keys = Array.from({ length: 100_000 }, (_unused, n) => `  k${n}: 1`).join('\n');
  const text = `kind: ConfigMap\nmetadata: { name: a }\ndata:\n${keys}\n`;
  expect(parseManifests(text, 'a.yaml')).toHaveLength(1);
  expect(() => parseManifests(`${text}  k7: 1\n`, 'a.yaml')).toThrow('Map keys must be unique at line 100004');
});

test('a line of many errors costs no minutes', () => {
  expect(() => parseManifests(`${'!a '.repeat(200_000)}x`, 'a.yaml')).toThrow(
    'a.yaml is no YAML: A node can have at most one tag at line 1, column 4',
  );
});

test('JSON', () => {
  expect(parseManifests('{"kind":"A","metadata":{"name":"a"},"x":[1,null]}', 'a.json')[0]?.value.x).toEqual([1, null]);
  const one = (name: string) => `{\n\t"kind": "A",\n\t"metadata": { "name": "${name}" }\n}`;
  const several = parseManifests(`${one('a')}\r\n\n  ${one('b')}\n${one('c')}\n`, 'a.json');
  expect(several.map(({ name, document, lineOf }) => [name, lineOf(document.contents?.range?.[0] ?? -1)])).toEqual([
    ['a', 1],
    ['b', 6],
    ['c', 10],
  ]);
});

test.each<[text: string, message: string]>([
  ['a: b: c', 'a.yaml is no YAML: Nested mappings are not allowed'],
  ['kind: A\nkind: B\n', 'a.yaml is no YAML: Map keys must be unique at line 2'],
  ['image: {{ .Values.image }}', 'a template of Helm? Render it first: helm template'],
  ['- a', 'a.yaml:1 is no Kubernetes object'],
  ['---\n---\na: b', 'a.yaml:3 has no "kind"'],
  ['kind: A', 'a.yaml:1: A has no metadata.name'],
  ['kind: A\nmetadata: { name: on }', 'a.yaml:1: metadata.name of the A must be a string, not true: put it in quotes'],
  ['kind: List\nitems: [{ kind: A, metadata: { name: a } }, text]', 'a.yaml:2 is no Kubernetes object'],
  ['kind: List\nitems: [{ metadata: { name: a } }]', 'a.yaml:2 has no "kind"'],
  ['kind: A\non: 1\n"true": 2', 'a.yaml is no YAML: Map keys must be unique at line 3'],
  ['kind: A\n~: x', 'a.yaml is no YAML: a field without a name at line 2, column 1'],
  ['kind: A\n? [b]\n: x', 'a.yaml is no YAML: a key that is no text at line 2, column 3'],
  ['kind: A\nx: { <<: text }', 'a.yaml cannot be read: the value of << must be a map, or a list of maps'],
  ['kind: A\nx: &x { y: *x }', 'a.yaml is no YAML: &x contains itself at line 2, column 12'],
  ['kind: A\nx: [&x y, &x [*x]]', 'a.yaml is no YAML: &x contains itself at line 2, column 15'],
  ['kind: A\nx: *gone', 'a.yaml is no YAML: there is no &gone before this alias at line 2, column 4'],
  ['kind: A\nx: { <<: *gone }', 'a.yaml is no YAML: there is no &gone before this alias at line 2, column 10'],
  ['---\n'.repeat(10_001), 'a.yaml cannot be read: it has more than 10000 documents'],
  [
    `kind: A\nx: &x y\nz: [${'*x,'.repeat(20_000)}]`,
    'a.yaml cannot be read: it has more than 20000 anchors and aliases',
  ],
  [
    `a: &a [x,x]\n${'bcdefghij'
      .split('')
      .map((key, index) => `${key}: &${key} [${`*${'abcdefghij'[index]},`.repeat(9)}]`)
      .join('\n')}`,
    'a.yaml cannot be read: its aliases stand for more than',
  ],
  [
    `kind: A\nmetadata: { name: a }\nx: &x { ${Array.from({ length: 10_000 }, (_unused, n) => `k${n}: 1`)} }\ny:\n${'  - { <<: *x }\n'.repeat(40)}`,
    'a.yaml cannot be read: its aliases stand for more than 500000 values',
  ],
  ['['.repeat(100_000), 'it is nested too deeply'],
  [`kind: A\nx: ${'y'.repeat(8_000_000)}`, 'a.yaml is larger than 8 MB'],
  [
    `kind: List\nitems:\n${'- { kind: A, metadata: { name: a } }\n'.repeat(2_001)}`,
    'a.yaml has more than 2000 objects',
  ],
])('what is no manifest is refused with its place, number %#', (text, message) => {
  expect(() => parseManifests(text, 'a.yaml')).toThrow(message);
});

test('a path is read as it is written', () => {
  const path = ['spec', 'containers', 0, 'env', 'PORT'];
  expect(pathText(path)).toBe('spec.containers[0].env[PORT]');
  expect(pathSteps(pathText(path))).toEqual(path);
  expect(pathText(['metadata', 'annotations', 'a.b/c'])).toBe('metadata.annotations[a.b/c]');
});

test('a field knows its line, one that is not there that of what is around it', () => {
  const text = 'kind: A\nmetadata:\n  name: a\nspec:\n  list:\n    - name: x\n      v: 1\n    - name: z\n';
  const manifest = parseManifests(`---\n${text}`, 'a.yaml')[0] as ReturnType<typeof parseManifests>[number];
  const line = (path: string) => lineOfField(manifest, pathSteps(path));
  expect(['metadata.name', 'spec.list[0].v', 'spec.list[z].name', 'spec.list[1].gone', 'spec.gone'].map(line)).toEqual([
    4, 8, 9, 9, 5,
  ]);
});
