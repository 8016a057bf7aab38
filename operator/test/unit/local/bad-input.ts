/** Files that `corelane run` refuses, and what it says: golden/bad-input.txt. */

const service = (spec: string, name = 'shop') =>
  `apiVersion: corelane.dev/v1alpha1\nkind: RenderService\nmetadata: { name: ${name} }\nspec:\n${spec}`;
const template = (container: string) => `  template: { spec: { containers: [{ name: worker, ${container} }] } }\n`;

export const BAD_INPUT: Record<string, string> = {
  empty: '',
  'no YAML': 'kind: RenderService\n  metadata: {',
  'a tab': 'kind: RenderService\nmetadata:\n\tname: shop\n',
  'another kind':
    'kind: List\nitems: [{ kind: Deployment, metadata: { name: shop } }]\n---\n# nothing\n---\nkind: Job\nmetadata: { name: a }\n',
  'no object': `${service(template('image: a'))}---\njust text\n`,
  two: `${service(template('image: a'))}---\n${service(template('image: b'), 'other')}`,
  'no name': 'kind: RenderService\nspec: {}\n',
  'a name that YAML takes for a boolean': service(template('image: a'), 'on'),
  'labels and annotations without quotes': service(template('image: a')).replace(
    'name: shop',
    'name: shop, labels: { track: on }, annotations: { build: 010 }',
  ),
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
  'a byte 0 in a variable': service(template('image: a, env: [{ name: V, value: "secret\\0" }]')),
  'a key that every object has': service(
    template('image: a, env: [{ name: V, valueFrom: { configMapKeyRef: { name: c, key: constructor } } }]'),
  ).concat('---\nkind: ConfigMap\nmetadata: { name: c }\ndata: { a: b }\n'),
  'an env that is a number': service(template('image: a, env: [{ name: V, value: 8 }]')),
  'variables that YAML 1.1 takes for something else': service(
    template(
      'image: a, env: [{ name: "N", value: on }, { name: y, value: 010 }, { name: A, value: Off }, { name: B, value: .inf }]',
    ),
  ),
  'an image and arguments that are numbers and booleans': service(template('image: 1.10, args: [serve, yes, 0o17]')),
  'an env of another container': service(
    '  template: { spec: { containers: [{ name: worker, image: a }, { name: log, image: b, env: [{ name: A, value: no }] }] } }\n',
  ),
  'labels of the pods without quotes': service(
    '  template: { metadata: { labels: { a: yes }, annotations: { b: 0x10 } }, spec: { containers: [{ name: worker, image: a }] } }\n',
  ),
  'a choice that YAML takes for a boolean': service(
    `${template('image: a')}  rollout: { stickiness: { cookie: Off } }\n`,
  ),
  'a ConfigMap without quotes': `${service(template('image: a'))}---\nkind: ConfigMap\nmetadata: { name: c }\ndata: { A: on, B: 1_000 }\n`,
  'an env that is no list': service(template('image: a, env: { N: "8" }')),
  'no ConfigMap': service(
    template('image: a, env: [{ name: V, valueFrom: { configMapKeyRef: { name: c, key: k } } }]'),
  ),
  'no Secret to take all of': service(template('image: a, envFrom: [{ secretRef: { name: s } }]')),
  'aliases without end': `a: &a [x, x, x, x, x, x, x, x, x]
b: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a]
c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b]
d: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c]
e: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d]
f: [*e, *e, *e, *e, *e, *e, *e, *e, *e]
`,
};
