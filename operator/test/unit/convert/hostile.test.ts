/**
 * Deployments of clusters as they are: a proxy that declares no port, policies of meshes and plug-ins, and what names
 * ports of the old pods. Nothing is opened without an error, and nothing is lost without a word.
 */
import type { Finding } from '../../../check/finding.ts';
import { calicoSelector } from '../../../convert/calico-selectors.ts';
import { type Conversion, convert } from '../../../convert/index.ts';
import { type Manifest, parseManifests } from '../../../convert/manifests.ts';

interface Parts {
  /** More containers, in YAML. */
  beside?: string;
  /** Of the container `desk`. */
  own?: string;
  labels?: string;
  metadata?: string;
  /** Labels and annotations of the pods. */
  ofPods?: string;
  others?: string;
}

function desk({ beside, own = 'ports: [{ containerPort: 3000 }]', labels = '', ...more }: Parts): Conversion {
  const text = `apiVersion: apps/v1
kind: Deployment
metadata: { name: desk${more.metadata ?? ''} }
spec:
  replicas: 2
  selector: { matchLabels: { app: desk } }
  template:
    metadata: { labels: { app: desk${labels} }${more.ofPods ?? ''} }
    spec: { containers: [{ name: desk, image: "desk:1", ${own} }${beside === undefined ? '' : `, { ${beside} }`}] }
---
${more.others ?? ''}`;
  const [deployment, ...rest] = parseManifests(text, 'desk.yaml') as [Manifest, ...Manifest[]];
  return convert(deployment, rest, { name: 'desk-render' });
}

const service = (targetPort: string | number, name = 'desk') =>
  `apiVersion: v1\nkind: Service\nmetadata: { name: ${name} }\nspec: { selector: { app: desk }, ports: [{ port: 80, targetPort: ${targetPort} }] }\n---\n`;

const errorsOf = (findings: Finding[]) =>
  findings.filter(({ code, level }) => code === 'C010' && level === 'error').map(({ object }) => object);

const TOLD = 'args: [--http-address=0.0.0.0:4180, "--upstream=http://127.0.0.1:3000"]';

describe('a proxy before the application', () => {
  test.each<[what: string, beside: string, targetPort: number, own?: string]>([
    ['that declares no port', `name: oauth2-proxy, image: "oauth2-proxy:7", ${TOLD}`, 4180],
    ['that declares another port', 'name: edge, image: "envoy:1", ports: [{ containerPort: 9901 }]', 8080],
    ['that is known by its arguments', `name: gate, image: "gate:1", ${TOLD}`, 4180],
    [
      'that is known by variables',
      'name: gate, image: "gate:1", env: [{ name: OAUTH2_PROXY_UPSTREAMS, value: "http://localhost:3000" }]',
      4180,
    ],
    ['that is known by its command', 'name: edge, image: "edge:1", command: [sh, -c, "exec caddy run"]', 8080],
    ['that is a gateway of Istio', 'name: istio-proxy, image: "istio/proxyv2:1", args: [proxy, router]', 8080],
    ['that is Traefik', 'name: traefik, image: "traefik:v3", args: ["--entrypoints.web.address=:8000"]', 8000],
    [
      'whose port the application declares',
      `name: gate, image: "gate:1", ${TOLD}`,
      4180,
      'ports: [{ containerPort: 3000 }, { containerPort: 4180 }]',
    ],
    [
      'before an application that declares none',
      'name: haproxy, image: "haproxy:3"',
      80,
      'env: [{ name: PORT, value: "3000" }]',
    ],
    ['that nobody knows, at a port that nobody declares', 'name: gate, image: "gate:1"', 4180],
    [
      'whose port the application has in its links',
      'name: nginx, image: "nginx:1"',
      80,
      'env: [{ name: PUBLIC_PORT, value: "80" }]',
    ],
    [
      'behind a login',
      'name: oauth2-proxy, image: "oauth2-proxy:7", args: ["--upstream=http://127.0.0.1:8080"] }, { name: nginx, image: "nginx:1"',
      8080,
      'env: [{ name: MODE, value: production }]',
    ],
  ])('%s', (...[_what, beside, targetPort, own]) => {
    const { text, plan, findings } = desk({ beside, own, others: service(targetPort) });
    expect([text, plan, errorsOf(findings)]).toEqual([undefined, [], ['Service/desk']]);
    const wayOut = findings.find(({ level }) => level === 'error')?.wayOut;
    expect(wayOut).toMatch(/^(If \S+ only passes requests on|Declare containerPort)/);
  });

  test('to which a second Service leads', () => {
    const others = service(3000) + service(4180, 'public');
    const { text, findings } = desk({ beside: `name: gate, image: "gate:1", ${TOLD}`, others });
    expect([text, errorsOf(findings)]).toEqual([undefined, ['Service/public']]);
  });

  test('that nobody knows, without a Service', () => {
    const { text } = desk({ beside: 'name: gate, image: "gate:1", args: [--backend, "localhost:3000"]' });
    expect(text).toBeUndefined();
  });

  test.each<[what: string, beside: string, targetPort: number, own?: string]>([
    ['to which nothing leads', `name: gate, image: "gate:1", ${TOLD}`, 3000],
    ['that is the sidecar of a mesh', 'name: istio-proxy, image: "istio/proxyv2:1", args: [proxy, sidecar]', 3000],
    [
      'that is none, and the application is told the port',
      'name: cron, image: "cron:1"',
      4000,
      'ports: [{ name: metrics, containerPort: 9464 }], env: [{ name: PORT, value: "4000" }]',
    ],
    [
      'that is no proxy but calls another host',
      'name: feed, image: "feed:1", env: [{ name: BACKEND_URL, value: "http://api:3000" }]',
      3000,
    ],
    [
      'that is a command for metrics',
      'name: stats, image: "tools:1", command: [/bin/nginx-prometheus-exporter]',
      3000,
      'env: [{ name: MODE, value: production }]',
    ],
    ...['ports: [{ name: metrics, containerPort: 9464 }]', 'env: [{ name: MODE, value: production }]'].map(
      (own): [string, string, number, string] => [
        `that leads to a database, beside ${own},`,
        'name: cloud-sql-proxy, image: "cloud-sql-proxy:2", args: [--health-check, --http-address=0.0.0.0, --port=5432, "a:b:c"]',
        3000,
        own,
      ],
    ),
    ['that exports metrics of the application', `name: app-exporter, image: "exporter:1", ${TOLD}`, 3000],
  ])('%s is in nobody’s way', (...[_what, beside, targetPort, own]) => {
    expect(desk({ beside, own, others: service(targetPort) }).text).toBeDefined();
  });
});

test.each<[selector: string, labels: Record<string, string>, expected: boolean | undefined]>([
  ["app == 'desk'", { app: 'desk' }, true],
  ['app=="desk"', { app: 'chair' }, false],
  ["app != 'desk'", {}, true],
  ["app in { 'desk', 'chair' }", { app: 'chair' }, true],
  ["app not in {'desk'}", {}, true],
  ["app not in {'desk'}", { app: 'desk' }, false],
  ["has(app) && !has(tier) || tier starts with 'we'", { app: 'a', tier: 'web' }, true],
  ["!(app == 'desk') && all()", { app: 'desk' }, false],
  ["app contains 'es' && app ends with 'k'", { app: 'desk' }, true],
  ['', {}, true],
  ['all()', {}, true],
  ["projectcalico.org/namespace == 'shop'", {}, undefined],
  ['global()', {}, undefined],
  ["app == 'desk' &&", {}, undefined],
  ["app constructor 'a'", {}, undefined],
  [`${'!('.repeat(200)}all()${')'.repeat(200)}`, {}, undefined],
  ["app == 'desk", {}, undefined],
])('the selector of Calico %s', (selector, labels, expected) => {
  expect(calicoSelector(selector)?.(labels)).toBe(expected);
});

const policy = (apiVersion: string, kind: string, spec: string) =>
  `apiVersion: ${apiVersion}\nkind: ${kind}\nmetadata: { name: closed }\nspec: ${spec}\n---\n`;
const CALICO = 'projectcalico.org/v3';
const ISTIO = 'security.istio.io/v1';
const LINKERD = 'policy.linkerd.io/v1beta3';
const OLD = 'matchLabels: { app: desk }';
const BOTH = 'matchLabels: { team: shop }';
const NEW = 'matchLabels: { corelane.dev/renderservice: desk-render }';
const CILIUM_OLD =
  '{ endpointSelector: { matchLabels: { "k8s:io.kubernetes.pod.namespace": a, app: desk } }, ingress: [] }';
const CALICO_RULES = (rules: string) => `{ selector: team == 'shop', types: [Ingress, Egress], ${rules} }`;
const SERVICES = (action: string, ...names: string[]) =>
  `{ action: ${action}, targetRefs: [${names.map((name) => `{ kind: Service, name: ${name} }`).join(', ')}] }`;
const DENIED = (selector: string, port: number) =>
  `{ selector: { ${selector} }, action: DENY, rules: [{ to: [{ operation: { ports: ["${port}"] } }] }] }`;

/** `refused`: nothing is written; `decide`: it is told; `kept`: nothing is to be done. */
test.each<[what: string, policies: string, expected: 'refused' | 'decide' | 'kept']>([
  ['Calico, by the old labels', policy(CALICO, 'NetworkPolicy', "{ selector: app == 'desk' }"), 'refused'],
  [
    'Calico, by the old labels and by the new ones',
    policy(CALICO, 'NetworkPolicy', "{ selector: app == 'desk' }") +
      policy(CALICO, 'GlobalNetworkPolicy', "{ selector: corelane.dev/renderservice == 'desk-render' }"),
    'kept',
  ],
  [
    'Calico, denied beside one for all',
    policy(CALICO, 'NetworkPolicy', "{ selector: app == 'desk', ingress: [{ action: Deny }] }") +
      policy(CALICO, 'NetworkPolicy', '{ selector: all(), ingress: [{ action: Allow }] }'),
    'refused',
  ],
  [
    'Calico, an old port denied to old and new pods',
    policy(
      CALICO,
      'NetworkPolicy',
      "{ selector: team == 'shop', ingress: [{ action: Deny, destination: { ports: [3000] } }] }",
    ),
    'refused',
  ],
  [
    'Calico, a range with an old port denied to old and new pods',
    policy(CALICO, 'NetworkPolicy', CALICO_RULES("ingress: [{ action: Deny, destination: { ports: ['2000:4000'] } }]")),
    'refused',
  ],
  [
    'Calico, all else denied to old and new pods',
    policy(
      CALICO,
      'NetworkPolicy',
      CALICO_RULES('ingress: [{ action: Allow, destination: { ports: [3000] } }, { action: Deny }]'),
    ),
    'kept',
  ],
  [
    'Calico, an old port of clients denied, and what pods call',
    policy(
      CALICO,
      'NetworkPolicy',
      CALICO_RULES('ingress: [{ action: Deny, source: { ports: [3000] } }], egress: [{ action: Deny }]'),
    ),
    'kept',
  ],
  ['Calico, a draft', policy(CALICO, 'StagedNetworkPolicy', "{ selector: app == 'desk' }"), 'kept'],
  ['Calico, by namespaces', policy(CALICO, 'GlobalNetworkPolicy', "{ namespaceSelector: team == 'shop' }"), 'decide'],
  [
    'Cilium, with the namespace among the labels',
    policy('cilium.io/v2', 'CiliumClusterwideNetworkPolicy', CILIUM_OLD),
    'refused',
  ],
  [
    'Cilium, as one of several',
    `apiVersion: cilium.io/v2\nkind: CiliumNetworkPolicy\nmetadata: { name: closed }\nspecs: [{ endpointSelector: { ${OLD} }, ingress: [] }]\n---\n`,
    'refused',
  ],
  [
    'Cilium, beside one for all pods of another namespace',
    policy('cilium.io/v2', 'CiliumNetworkPolicy', `{ endpointSelector: { ${OLD} }, ingress: [] }`) +
      policy(
        'cilium.io/v2',
        'CiliumClusterwideNetworkPolicy',
        '{ endpointSelector: { matchLabels: { "k8s:io.kubernetes.pod.namespace": other } }, ingress: [] }',
      ),
    'refused',
  ],
  [
    'Cilium, a range with an old port denied to both',
    policy(
      'cilium.io/v2',
      'CiliumNetworkPolicy',
      `{ endpointSelector: { ${BOTH} }, ingressDeny: [{ toPorts: [{ ports: [{ port: "2000", endPort: 4000 }] }] }] }`,
    ),
    'refused',
  ],
  ['Istio, by the old labels', policy(ISTIO, 'AuthorizationPolicy', `{ selector: { ${OLD} } }`), 'refused'],
  [
    'Istio, denied beside an allowance for all',
    policy(ISTIO, 'AuthorizationPolicy', DENIED(OLD, 3000)) + policy(ISTIO, 'AuthorizationPolicy', '{ rules: [{}] }'),
    'refused',
  ],
  ['Istio, an old port denied to both', policy(ISTIO, 'AuthorizationPolicy', DENIED(BOTH, 3000)), 'refused'],
  [
    'Istio, an old port denied to both, by a condition',
    policy(
      ISTIO,
      'AuthorizationPolicy',
      `{ selector: { ${BOTH} }, action: DENY, rules: [{ when: [{ key: destination.port, values: ["3000"] }] }] }`,
    ),
    'refused',
  ],
  [
    'Istio, an old port denied to both, and port 9000 by another one',
    policy(ISTIO, 'AuthorizationPolicy', DENIED(BOTH, 3000)) + policy(ISTIO, 'AuthorizationPolicy', DENIED(NEW, 9000)),
    'kept',
  ],
  [
    'Istio, in its root namespace',
    policy(ISTIO, 'AuthorizationPolicy', `{ selector: { ${OLD} }, action: DENY }`).replace(
      'name: closed',
      'name: closed, namespace: istio-system',
    ),
    'refused',
  ],
  ['Istio, port 9000 denied to both', policy(ISTIO, 'AuthorizationPolicy', DENIED(BOTH, 9000)), 'kept'],
  [
    'Istio, an old port allowed for all, which closes port 9000',
    policy(ISTIO, 'AuthorizationPolicy', '{ rules: [{ to: [{ operation: { ports: ["3000"] } }] }] }'),
    'decide',
  ],
  [
    'Istio, mutual TLS of the old pods',
    policy(ISTIO, 'PeerAuthentication', `{ selector: { ${OLD} }, mtls: { mode: STRICT } }`),
    'refused',
  ],
  [
    'Istio, mutual TLS of the old pods and of the namespace',
    policy(ISTIO, 'PeerAuthentication', `{ selector: { ${OLD} }, mtls: { mode: STRICT } }`) +
      policy(ISTIO, 'PeerAuthentication', '{ mtls: { mode: STRICT } }'),
    'kept',
  ],
  [
    'Istio, mutual TLS of an old port',
    policy(ISTIO, 'PeerAuthentication', `{ selector: { ${BOTH} }, portLevelMtls: { 3000: { mode: STRICT } } }`),
    'refused',
  ],
  [
    'Istio, no mutual TLS of the old pods',
    policy(ISTIO, 'PeerAuthentication', `{ selector: { ${OLD} }, mtls: { mode: PERMISSIVE } }`),
    'kept',
  ],
  ['Istio, tokens of the old pods', policy(ISTIO, 'RequestAuthentication', `{ selector: { ${OLD} } }`), 'refused'],
  [
    'Istio, for the old Service at a waypoint',
    policy(ISTIO, 'AuthorizationPolicy', SERVICES('ALLOW', 'desk')),
    'refused',
  ],
  [
    'Istio, for both Services at a waypoint',
    policy(ISTIO, 'AuthorizationPolicy', SERVICES('ALLOW', 'desk', 'desk-render')),
    'kept',
  ],
  [
    'Istio, denied for the old Service at a waypoint, and allowed for both',
    policy(ISTIO, 'AuthorizationPolicy', SERVICES('DENY', 'desk')) +
      policy(ISTIO, 'AuthorizationPolicy', SERVICES('ALLOW', 'desk', 'desk-render')),
    'refused',
  ],
  [
    'Istio, logged for the old Service at a waypoint',
    policy(ISTIO, 'AuthorizationPolicy', SERVICES('AUDIT', 'desk')),
    'kept',
  ],
  ['Linkerd, by the old labels', policy(LINKERD, 'Server', `{ podSelector: { ${OLD} }, port: 3000 }`), 'refused'],
  ['Linkerd, an old port of both', policy(LINKERD, 'Server', `{ podSelector: { ${BOTH} }, port: 3000 }`), 'refused'],
  [
    'Linkerd, by the old labels and by the new ones',
    policy(LINKERD, 'Server', `{ podSelector: { ${OLD} }, port: 3000 }`) +
      policy(LINKERD, 'Server', `{ podSelector: { ${NEW} }, port: 9000 }`),
    'kept',
  ],
  [
    'Linkerd, by the old labels, and another port by the new ones',
    policy(LINKERD, 'Server', `{ podSelector: { ${OLD} }, port: 3000 }`) +
      policy(LINKERD, 'Server', `{ podSelector: { ${NEW} }, port: 9464 }`),
    'refused',
  ],
  [
    'Linkerd, an old port of both, and port 9000 by another one',
    policy(LINKERD, 'Server', `{ podSelector: { ${BOTH} }, port: 3000 }`) +
      policy(LINKERD, 'Server', `{ podSelector: { ${BOTH} }, port: http }`),
    'kept',
  ],
  ['Kuma, by names', policy('kuma.io/v1alpha1', 'MeshTrafficPermission', '{ from: [] }'), 'decide'],
])('a policy of %s', (_what, policies, expected) => {
  const parts = { metadata: ', namespace: shop', labels: ', team: shop' };
  const { text, findings } = desk({ ...parts, others: service(3000) + policies });
  const about = findings.filter(({ code, object }) => code === 'C010' && object.endsWith('/closed'));
  const isTold = about.some(({ level, what }) => level === 'decide' && !what.startsWith('networkPolicy.enabled'));
  const found = text === undefined ? 'refused' : isTold ? 'decide' : 'kept';
  expect(found).toBe(expected);
  expect(about.filter(({ level }) => level === 'error').every(({ wayOut }) => wayOut !== '')).toBe(true);
});

const saidAt = (findings: Finding[], path: RegExp) =>
  findings.filter((one) => path.test(one.path)).map(({ level, what }) => `${level}: ${what}`);

describe('what names a port of the old application', () => {
  test.each<[annotation: string, value: string, said: string[], written: string]>([
    ['config.linkerd.io/skip-inbound-ports', '3000,9229', ['info: 3000,9229 is now 9000,9229'], '9000,9229'],
    ['traffic.sidecar.istio.io/excludeInboundPorts', '3000', ['info: 3000 is now 9000'], '9000'],
    ['config.linkerd.io/skip-outbound-ports', '3000', [], '3000'],
    ['prometheus.io/port', '3000', ['decide: it names port 3000 of the old application'], '3000'],
    ['prometheus.io/port', '9464', [], '9464'],
  ])('in an annotation: %s: %s', (key, value, said, written) => {
    const ofPods = `, annotations: { ${key}: "${value}" }`;
    const { text = '', findings } = desk({ ofPods, others: service(3000) });
    expect(saidAt(findings, /annotations\[/)).toEqual(said);
    expect(text).toContain(`${key}: "${written}"`);
  });

  test('in a probe and an argument of another container', () => {
    const probe = 'readinessProbe: { tcpSocket: { port: 3000 } }';
    const beside = `name: feed, image: "feed:1", args: [--target, "localhost:3000"], ${probe}`;
    const { findings } = desk({ beside, others: service(3000) });
    expect(saidAt(findings, /containers\[1\]/)).toEqual(
      expect.arrayContaining([
        'decide: container feed is told port 3000 of the old application',
        'decide: container feed is judged by port 3000 of the old application',
      ]),
    );
  });

  test.each<[what: string, labels: string, isTold: boolean]>([
    ['of the Service', '{ app: desk }', true],
    ['of another one', '{ app: chair }', false],
  ])('in a ServiceMonitor %s', (_what, labels, isTold) => {
    const labelled = service(3000).replace('name: desk }', 'name: desk, labels: { app: desk } }');
    const monitor = `apiVersion: monitoring.coreos.com/v1\nkind: ServiceMonitor\nmetadata: { name: m }\nspec: { selector: { matchLabels: ${labels} }, endpoints: [{ port: web }] }\n`;
    const { findings } = desk({ others: `${labelled}${monitor}` });
    expect(findings.some(({ object, level }) => object === 'ServiceMonitor/m' && level === 'decide')).toBe(isTold);
  });
});

test.each<[annotation: string, way: RegExp]>([
  ['downscaler/uptime', /kubectl scale renderservice/],
  ['downscaler/exclude', /kubectl scale renderservice/],
  ['reloader.stakater.com/auto', /annotations of spec\.template/],
  ['keel.sh/policy', /image updater/],
])('an annotation by which a program finds Deployments is told: %s', (key, way) => {
  const { text, findings } = desk({ metadata: `, annotations: { ${key}: a }`, others: service(3000) });
  expect(text).toBeDefined();
  expect(text).not.toMatch(/annotations/);
  const found = findings.find(({ path }) => path.includes(key));
  expect(found).toMatchObject({ code: 'C016', level: 'decide', wayOut: expect.stringMatching(way) });
});
