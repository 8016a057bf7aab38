/**
 * No traffic plan opens what was closed, or deletes what has to stay: each plan of each golden file is carried out on
 * a model of a cluster, by the names and containers that a user may choose, too.
 */
import { execFileSync } from 'node:child_process';
import type { Finding } from '../../../check/finding.ts';
import { type Conversion, type ConvertOptions, convert } from '../../../convert/index.ts';
import { type Manifest, parseManifests } from '../../../convert/manifests.ts';
import { violations } from './cluster-model.ts';
import { convertGolden, type GoldenCase, goldenNames } from './golden.ts';

/** What goes wrong in the move of a golden file; nothing where there is no plan, and an error says why. */
function wrong({ manifests, deployment, conversion }: GoldenCase): string[] {
  if (!deployment || !conversion) return [];
  const { text, findings, plan, withheld } = conversion;
  if (text !== undefined) return violations({ manifests, deployment, text, findings, plan });
  const isSaid = plan.length === 0 && withheld !== undefined && findings.some(({ level }) => level === 'error');
  return isSaid ? [] : ['nothing is written, and there is a plan, or no error'];
}

/** Options as users may give them: the name of each object that is there, a new one, and each container. */
function choices({ manifests, deployment }: GoldenCase): ConvertOptions[] {
  const named = manifests.filter(({ kind }) => ['Deployment', 'Service', 'PodDisruptionBudget'].includes(kind));
  const names = [...new Set(named.map(({ name }) => name)), 'of-its-own'];
  const { template } = (deployment as Manifest).value.spec as {
    template: { spec: { containers: { name: string }[] } };
  };
  return [
    {},
    ...names.map((name) => ({ name })),
    ...template.spec.containers.map(({ name: container }) => ({ container })),
  ];
}

const moves = goldenNames()
  .filter((name) => convertGolden(name).deployment !== undefined)
  .map((name) => ({
    name,
    choices: choices(convertGolden(name)).map((options) => ({ options, golden: convertGolden(name, options) })),
  }));

test.each(moves)('$name: nothing is opened, nothing is deleted that has to stay', ({ choices: all }) => {
  expect(all.flatMap(({ options, golden }) => wrong(golden).map((what) => ({ options, what })))).toEqual([]);
});

test('there are plans of both kinds, and moves without a plan', () => {
  const plans = moves.flatMap(({ choices: all }) => all.map(({ golden }) => golden.conversion?.plan.join('\n') ?? ''));
  const count = (pattern: RegExp) => plans.filter((plan) => pattern.test(plan)).length;
  expect(count(/kubectl patch service\/[a-z]/)).toBeGreaterThan(10);
  expect(count(/^# The names are taken/)).toBeGreaterThan(5);
  expect(count(/^$/)).toBeGreaterThan(5);
});

describe('the model sees', () => {
  const made = (name: string) => {
    const golden = convertGolden(name);
    const { manifests, deployment, conversion } = golden as Required<GoldenCase>;
    const { text = '', findings, plan } = conversion;
    return { manifests, deployment, text, findings, plan };
  };
  const apply = 'kubectl apply -f renderservice.yaml';
  const led = (service: string, name: string) =>
    `kubectl patch service/${service} --type json -p '[{"op":"replace","path":"/spec/selector","value":{"corelane.dev/renderservice":"${name}"}},{"op":"replace","path":"/spec/ports/0/targetPort","value":9000}]'`;
  /** Names of RenderServices that are written by hand. */
  const NAMES: Record<string, string> = {
    nuxt: 'nuxt-render',
    'two-entrances': 'mall-render',
    'network-policy': 'desk-render',
  };
  const RENDER_SERVICE = `apiVersion: corelane.dev/v1alpha1
kind: RenderService
metadata: { name: web-render }
spec: { template: { spec: { containers: [{ name: worker, image: a }, { name: oauth2-proxy, image: b }] } } }
`;

  test.each<[what: string, plan: string[], found: RegExp, golden: string, text?: string]>([
    [
      'a login that is passed',
      [apply, led('web', 'web-render')],
      /web:80 leads to web$/m,
      'oauth2-proxy',
      RENDER_SERVICE,
    ],
    ['a new Service past a login', [apply], /web-render:80 leads to web$/m, 'oauth2-proxy', RENDER_SERVICE],
    [
      'Services that are deleted, although the new one has another name',
      ['kubectl delete deployment/ssr service/ssr-debug service/ssr-internal service/ssr', apply],
      /service\/ssr-debug is deleted, although/,
      'debug-service',
    ],
    ['an address that is lost', ['kubectl delete service/nuxt-public'], /nuxt-public is deleted, although/, 'nuxt'],
    [
      'a second way in from outside',
      [apply],
      /mall-render:80 is open to the outside/,
      'two-entrances',
      'service: { type: LoadBalancer }',
    ],
    [
      'a name in DNS that leads to the new pods too early',
      [apply],
      /nuxt-render:80 is announced/,
      'nuxt',
      'service: { annotations: { external-dns.alpha.kubernetes.io/hostname: shop.example.com } }',
    ],
    [
      "a port of Corelane's that a Service leads to by its name, or by its number",
      [apply, led('mall', 'mall-render')],
      /mall:3001 leads to a port of Corelane's.*mall:9102 leads to a port of Corelane's/s,
      'two-entrances',
    ],
    ['a budget of others', ['kubectl delete pdb/front'], /pdb\/front is deleted, although/, 'two-entrances'],
    ['a policy that is lost', [apply], /lets everybody in.*no policy closes/s, 'network-policy', 'workersPerPod: 1'],
    [
      'pods of a revision that is out of service',
      [apply, led('mall', 'mall-render')],
      /mall leads to pods that rest/,
      'two-entrances',
    ],
    ['a write without a way back', [apply, led('mall', 'mall-render')], /mall has no way back/, 'two-entrances'],
    ['a Service that is forgotten', [apply, 'kubectl delete deployment/mall'], /no longer leads/, 'two-entrances'],
    ['a name that is taken', [apply], /the name ssr is taken/, 'debug-service'],
  ])('%s', (...[_what, plan, found, golden, field]) => {
    const planned = made(golden);
    const name = NAMES[golden];
    const one = `apiVersion: corelane.dev/v1alpha1\nkind: RenderService\nmetadata: { name: ${name} }\nspec:\n  ${field}\n  template: { spec: { containers: [{ name: worker, image: a }] } }\n`;
    const text = field === undefined ? planned.text : field.includes('kind:') ? field : one;
    expect(violations({ ...planned, text, plan }).join('\n')).toMatch(found);
  });
});

/** A Deployment with a Service, and what else is given. */
function desk(others: string, options: ConvertOptions = {}): Conversion {
  const text = `apiVersion: apps/v1
kind: Deployment
metadata: { name: desk }
spec:
  replicas: 2
  selector: { matchLabels: { app: desk } }
  template:
    metadata: { labels: { app: desk } }
    spec: { containers: [{ name: desk, image: "desk:1", ports: [{ containerPort: 3000 }] }] }
---
${others}`;
  const [deployment, ...rest] = parseManifests(text, 'desk.yaml') as [Manifest, ...Manifest[]];
  return convert(deployment, rest, { name: 'desk-render', ...options });
}

const said = (findings: Finding[]) =>
  findings.filter(({ code }) => code === 'C010').map(({ level, object, path }) => `${level} ${object} ${path}`);

/** An object with a selector of pods. */
const closer = (apiVersion: string, kind: string, spec: string) =>
  `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata: { name: closed }\nspec: ${spec}\n---\n`;
const NETWORK = 'networking.k8s.io/v1';
const FOR_OLD = '{ matchLabels: { app: desk } }';
const FOR_NEW = '{ matchLabels: { corelane.dev/renderservice: desk-render } }';

test.each<[what: string, others: string, isWritten: boolean, policy?: object]>([
  [
    'a policy of a mesh for the old pods',
    closer('security.istio.io/v1', 'AuthorizationPolicy', `{ selector: ${FOR_OLD} }`),
    false,
  ],
  [
    'a policy of Cilium, which says where a label comes from',
    closer(
      'cilium.io/v2',
      'CiliumNetworkPolicy',
      '{ endpointSelector: { matchLabels: { "k8s:app": desk } }, ingress: [] }',
    ),
    false,
  ],
  [
    'a policy for other pods',
    closer(NETWORK, 'NetworkPolicy', '{ podSelector: { matchLabels: { app: other } } }'),
    true,
  ],
  [
    'a policy for all pods of the namespace',
    closer(NETWORK, 'NetworkPolicy', '{ podSelector: {} }'),
    true,
    { enabled: false },
  ],
  [
    'one for what the old pods send',
    closer(NETWORK, 'NetworkPolicy', `{ podSelector: ${FOR_OLD}, policyTypes: [Egress] }`),
    false,
  ],
  [
    'one for what the old pods send, and one for all',
    closer(NETWORK, 'NetworkPolicy', `{ podSelector: ${FOR_OLD}, policyTypes: [Egress] }`) +
      closer(NETWORK, 'NetworkPolicy', '{ podSelector: {}, policyTypes: [Egress] }'),
    true,
  ],
  [
    'one for who comes in, and for the new pods only one for what they send',
    closer(NETWORK, 'NetworkPolicy', `{ podSelector: ${FOR_OLD} }`) +
      closer(NETWORK, 'NetworkPolicy', `{ podSelector: ${FOR_NEW}, policyTypes: [Egress] }`),
    false,
  ],
  [
    'a policy without a selector, which is for all pods',
    closer(NETWORK, 'NetworkPolicy', '{ policyTypes: [Ingress] }'),
    true,
    { enabled: false },
  ],
  [
    'one for the old pods with an empty list of what it decides on, which is as none',
    closer(NETWORK, 'NetworkPolicy', `{ podSelector: ${FOR_OLD}, policyTypes: [] }`),
    false,
  ],
  [
    'one that selects the old pods by expressions',
    closer(
      NETWORK,
      'NetworkPolicy',
      '{ podSelector: { matchExpressions: [{ key: app, operator: In, values: [desk, chair] }] } }',
    ),
    false,
  ],
  [
    'one that leaves others out by an expression, and so takes the new pods as well',
    closer(
      NETWORK,
      'NetworkPolicy',
      '{ podSelector: { matchExpressions: [{ key: app, operator: NotIn, values: [chair] }] } }',
    ),
    true,
    { enabled: false },
  ],
  [
    'one for the new pods that the operator has made',
    closer(NETWORK, 'NetworkPolicy', `{ podSelector: ${FOR_OLD} }`) +
      closer(NETWORK, 'NetworkPolicy', `{ podSelector: ${FOR_NEW} }`).replace(
        'name: closed',
        'name: made, labels: { app.kubernetes.io/managed-by: corelane }',
      ),
    false,
  ],
])('%s', (...[_what, others, isWritten, policy]) => {
  const { text, plan, findings } = desk(others);
  const isRefused = findings.some(({ code, level }) => code === 'C010' && level === 'error');
  expect({ isWritten: text !== undefined, isPlanned: plan.length > 0, isRefused }).toEqual({
    isWritten,
    isPlanned: isWritten,
    isRefused: !isWritten,
  });
  const [written] = text === undefined ? [] : parseManifests(text, 'renderservice.yaml');
  expect((written?.value.spec as { networkPolicy?: object } | undefined)?.networkPolicy).toEqual(policy);
});

test.each<[what: string, apiVersion: string, kind: string, spec: string]>([
  ['a text about accounts', 'projectcalico.org/v3', 'NetworkPolicy', '{ serviceAccountSelector: "has(team)" }'],
  ['deeper down', 'policy.networking.k8s.io/v1alpha1', 'AdminNetworkPolicy', '{ subject: { pods: {} } }'],
])('a policy whose selector is %s is to be decided about', (_what, apiVersion, kind, spec) => {
  const { text, findings } = desk(closer(apiVersion, kind, spec));
  expect(text).toBeDefined();
  expect(said(findings)).toContain(`decide ${kind}/closed spec`);
});

test('kinds that may not be listed are to be decided about', () => {
  const { findings } = desk('', { unread: ['Ingress', 'NetworkPolicy', 'Service'] });
  const [first] = findings.filter(({ what }) => what.includes('may not list'));
  expect(first).toMatchObject({ code: 'C010', level: 'decide', what: 'you may not list NetworkPolicy, Service' });
});

const service = (name: string, spec: string) =>
  `apiVersion: v1\nkind: Service\nmetadata: { name: ${name} }\nspec: { selector: { app: desk }, ${spec} }\n---\n`;

test.each<[what: string, spec: string, isWritten: boolean]>([
  ['nothing that is lost', 'ports: [{ port: 80, targetPort: 3000 }]', true],
  [
    'policies that a RenderService has, too',
    'ports: [{ port: 80, targetPort: 3000 }], internalTrafficPolicy: Local',
    true,
  ],
  ['a session affinity, which is told', 'ports: [{ port: 80, targetPort: 3000 }], sessionAffinity: ClientIP', true],
  ['no address', 'ports: [{ port: 80, targetPort: 3000 }], clusterIP: None', false],
  ['an address by hand', 'ports: [{ port: 80, targetPort: 3000 }], clusterIP: 10.96.7.7', false],
  ['addresses from outside', 'ports: [{ port: 80, targetPort: 3000 }], externalIPs: [203.0.113.7]', false],
  ['two families', 'ports: [{ port: 80, targetPort: 3000 }], ipFamilyPolicy: RequireDualStack', true],
  ['one family', 'ports: [{ port: 80, targetPort: 3000 }], ipFamilyPolicy: SingleStack', true],
  ['a family that is written', 'ports: [{ port: 80, targetPort: 3000 }], ipFamilies: [IPv6]', true],
  ['a port of the node', 'type: NodePort, ports: [{ port: 80, targetPort: 3000 }]', false],
])('in place of a Service with %s', (_what, spec, isWritten) => {
  const { text, findings } = desk(service('desk', spec), { name: 'desk' });
  expect({ isWritten: text !== undefined, found: said(findings).includes('error Service/desk ') }).toEqual({
    isWritten,
    found: !isWritten,
  });
});

/** A Deployment, or another kind, with pods. */
const workload = (kind: string, labels: string, metadata = '') =>
  `apiVersion: apps/v1\nkind: ${kind}\nmetadata: { name: other ${metadata}}\nspec: { template: { metadata: { labels: ${labels} }, spec: { containers: [{ name: other, image: "other:1" }] } } }\n---\n`;

test.each<[what: string, others: string, isShared: boolean]>([
  ['a second Deployment', workload('Deployment', '{ app: desk, track: canary }'), true],
  ['a StatefulSet', workload('StatefulSet', '{ app: desk }'), true],
  ['a Deployment with other labels', workload('Deployment', '{ app: chair }'), false],
  [
    'a ReplicaSet of the Deployment',
    workload('ReplicaSet', '{ app: desk }', ', ownerReferences: [{ kind: Deployment, name: desk }] '),
    false,
  ],
])('a Service that leads to pods of %s, too', (_what, others, isShared) => {
  const given = service('desk', 'ports: [{ port: 80, targetPort: 3000 }]') + others;
  const beside = desk(given);
  expect(beside.text).toBeDefined();
  const shared = beside.findings.filter(({ what }) => /^it leads to pods of [A-Za-z]+\/other, too$/.test(what));
  expect(shared.map(({ level, object }) => `${level} ${object}`)).toEqual(isShared ? ['decide Service/desk'] : []);
  // In its place it would be deleted, and the others would have none.
  expect(desk(given, { name: 'desk' }).text === undefined).toBe(isShared);
});

test('a headless Service is led to the new pods, and clients that know a port are told of', () => {
  const { plan, findings } = desk(service('desk', 'clusterIP: None, ports: [{ port: 3000 }]'));
  expect(plan.join('\n')).toMatch(/^kubectl patch service\/desk /m);
  expect(said(findings)).toContain('decide Service/desk spec.clusterIP');
});

test('a name in DNS is no Service for pages, whatever it selects', () => {
  const alias = service(
    'alias',
    'type: ExternalName, externalName: shop.example.com, ports: [{ name: http, port: 80 }]',
  );
  const { plan, findings } = desk(alias + service('desk', 'ports: [{ port: 7000, targetPort: 3000 }]'));
  expect(plan.filter((line) => line.startsWith('kubectl patch')).join()).toMatch(/^kubectl patch service\/desk /);
  expect(findings.filter(({ object }) => object.includes('Service/alias')).map(({ code }) => code)).toEqual(['C017']);
});

test('a port that is taken out of a second Service is told', () => {
  const more = service('more', 'ports: [{ name: pages, port: 80, targetPort: 3000 }, { name: debug, port: 9229 }]');
  const { plan, findings } = desk(service('desk', 'ports: [{ name: http, port: 80, targetPort: 3000 }]') + more);
  expect(plan.join('\n')).toMatch(/^kubectl patch service\/more .*"op":"remove","path":"\/spec\/ports\/1"/m);
  const told = findings.filter(({ object, code }) => object === 'Service/more' && code === 'C004');
  expect(told.map(({ level, path }) => `${level} ${path}`)).toEqual(['decide spec.ports[1]']);
});

/** The arguments that a shell gives to the kubectl of a command. */
function words(command: string): string[] {
  const script = `kubectl() { printf '%s\\0' "$@"; }\n${command}`;
  return execFileSync('/bin/sh', ['-c', script], { encoding: 'utf8', env: {} }).split('\0').slice(0, -1);
}

test('whatever an object is called, it is one word of a command, and no line of a comment is a command', () => {
  const name = `a'b"; $(false) \`false\` && exit 3 # \\\nc`;
  const budget = `apiVersion: policy/v1\nkind: PodDisruptionBudget\nmetadata: { name: ${JSON.stringify(name)} }\nspec: { maxUnavailable: 1, selector: { matchLabels: { app: desk } } }\n---\n`;
  const selected = `ports: [{ port: 80, targetPort: 3000, name: ${JSON.stringify(name)} }]`;
  const { plan } = desk(service(JSON.stringify(name), selected) + budget, { namespace: name });
  const commands = plan.filter((line) => !line.startsWith('#')).map((line) => words(line));
  expect(commands.map(([verb]) => verb)).toEqual(['apply', 'wait', 'port-forward', 'patch', 'delete']);
  for (const command of commands) expect(command[command.indexOf('-n') + 1]).toBe(name);
  expect(commands.flat()).toEqual(expect.arrayContaining([`service/${name}`, `pdb/${name}`]));
  expect(plan.filter((line) => line.startsWith('#') && /[\n\r]/.test(line))).toEqual([]);
});

test('the Service that an Ingress leads to is the one for pages, wherever it stands', () => {
  const ingress = `apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: { name: desk }
spec: { defaultBackend: { service: { name: last, port: { number: 7000 } } } }
`;
  const others = service('first', 'ports: [{ name: http, port: 80, targetPort: 9229 }]');
  const { text } = desk(others + service('last', 'ports: [{ port: 7000, targetPort: 3000 }]') + ingress);
  expect(text).toContain('port: 7000');
});

test.each<[what: string, hook: string, level: string]>([
  ['sleeps', 'preStop: { exec: { command: [sleep, "15"] } }', 'info'],
  ['sleeps by a shell', 'preStop: { exec: { command: [/bin/sh, -c, "sleep 15"] } }', 'info'],
  ['sleeps by the kubelet', 'preStop: { sleep: { seconds: 15 } }', 'info'],
  ['does something, and sleeps', 'preStop: { exec: { command: [sh, -c, "rm /tmp/ready; sleep 15"] } }', 'decide'],
  ['asks the program', 'preStop: { httpGet: { path: /leave, port: 3000 } }', 'decide'],
  ['is run at the start', 'postStart: { exec: { command: [node, register.mjs] } }', 'decide'],
  ['is another signal', 'stopSignal: SIGUSR2', 'decide'],
  ['is the usual signal', 'stopSignal: SIGTERM', 'info'],
])('a hook that %s', (_what, hook, level) => {
  const text = `apiVersion: apps/v1
kind: Deployment
metadata: { name: desk }
spec:
  selector: { matchLabels: { app: desk } }
  template:
    metadata: { labels: { app: desk } }
    spec: { containers: [{ name: desk, image: "desk:1", lifecycle: { ${hook} } }] }
`;
  const { findings } = convert(parseManifests(text, 'desk.yaml')[0] as Manifest, [], { name: 'desk-render' });
  const [found] = findings.filter(({ path }) => path.includes('.lifecycle'));
  const name = hook.split(':')[0];
  expect(found).toMatchObject({ code: 'C001', level, path: `spec.template.spec.containers[0].lifecycle.${name}` });
});
