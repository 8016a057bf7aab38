/** Manifests are read as kubectl reads them, and a bad one is refused with its place. */
import { lineOfField, parseManifests, pathSteps, pathText } from '../../../convert/manifests.ts';

const configMap = (data: string) => `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: a }\ndata:\n${data}`;
const dataOf = (data: string) => parseManifests(configMap(data), 'a.yaml')[0]?.value.data;

test.each([
  ['an octal number', '  a: 0644', { a: 420 }],
  ['yes, on and off', '  a: yes\n  b: on\n  c: Off', { a: true, b: true, c: false }],
  ['y and n are text', '  y: y\n  n: n', { y: 'y', n: 'n' }],
  ['a date is text', '  a: 2026-01-01', { a: '2026-01-01' }],
  ['a time is text', '  a: 12:30:45', { a: '12:30:45' }],
  ['a merge', '  a: &a { b: c }\n  d: { <<: *a, e: f }', { a: { b: 'c' }, d: { b: 'c', e: 'f' } }],
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
});

test.each<[text: string, message: string]>([
  ['a: b: c', 'a.yaml is no YAML: Nested mappings are not allowed'],
  ['kind: A\nkind: B\n', 'a.yaml is no YAML: Map keys must be unique at line 2'],
  ['image: {{ .Values.image }}', 'a template of Helm? Render it first: helm template'],
  ['- a', 'a.yaml:1 is no Kubernetes object'],
  ['---\n---\na: b', 'a.yaml:3 has no "kind"'],
  ['kind: A', 'a.yaml:1: A has no metadata.name'],
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
  ['['.repeat(100_000), 'a.yaml'],
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
  const text = 'kind: A\nmetadata:\n  name: a\nspec:\n  list:\n    - name: x\n      y: 1\n    - name: z\n';
  const manifest = parseManifests(`---\n${text}`, 'a.yaml')[0] as ReturnType<typeof parseManifests>[number];
  const line = (path: string) => lineOfField(manifest, pathSteps(path));
  expect(['metadata.name', 'spec.list[0].y', 'spec.list[z].name', 'spec.list[1].gone', 'spec.gone'].map(line)).toEqual([
    4, 8, 9, 9, 5,
  ]);
});
