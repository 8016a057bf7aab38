/** Files that `corelane run` refuses, and what it says: golden/bad-input.txt. */

const service = (spec: string, name = 'shop') =>
  `apiVersion: corelane.dev/v1alpha1\nkind: RenderService\nmetadata: { name: ${name} }\nspec:\n${spec}`;
const template = (container: string) => `  template: { spec: { containers: [{ name: worker, ${container} }] } }\n`;

export const BAD_INPUT: Record<string, string> = {
  empty: '',
  'no YAML': 'kind: RenderService\n  metadata: {',
  'a tab': 'kind: RenderService\nmetadata:\n\tname: shop\n',
  'another kind': 'apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: shop }\n---\njust text\n---\n- a list\n',
  two: `${service(template('image: a'))}---\n${service(template('image: b'), 'other')}`,
  'no name': 'kind: RenderService\nspec: {}\n',
  'a bad name': service(template('image: a'), 'Shop_1'),
  'no template': service('  workersPerPod: 2\n'),
  'unknown field': service(`${template('image: a')}  workersPerPods: 2\n`),
  'too many workers': service(`${template('image: a')}  workersPerPod: 65\n`),
  'a rule between fields': service(`${template('image: a')}  watchdog: { stallTimeout: 120s }\n`),
  'no image': service(template('command: [node]')),
  'an image that is an option': service(template('image: "--volume=/:/host"')),
  'a folder in memory with options': service(
    template('image: a, volumeMounts: [{ name: d, mountPath: "/d:exec,size=99g" }]'),
  ),
  'a byte 0 in a variable': service(template('image: a, env: [{ name: N, value: "secret\\0" }]')),
  'a key that every object has': service(
    template('image: a, env: [{ name: N, valueFrom: { configMapKeyRef: { name: c, key: constructor } } }]'),
  ).concat('---\nkind: ConfigMap\nmetadata: { name: c }\ndata: { a: b }\n'),
  'an env that is a number': service(template('image: a, env: [{ name: N, value: 8 }]')),
  'an env that is no list': service(template('image: a, env: { N: "8" }')),
  'no ConfigMap': service(
    template('image: a, env: [{ name: N, valueFrom: { configMapKeyRef: { name: c, key: k } } }]'),
  ),
  'no Secret to take all of': service(template('image: a, envFrom: [{ secretRef: { name: s } }]')),
  'aliases without end': `a: &a [x, x, x, x, x, x, x, x, x]
b: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a]
c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b]
d: [*c, *c, *c, *c, *c, *c, *c, *c, *c]
`,
};
