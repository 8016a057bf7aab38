/** Properties of every plan, beside its golden content. */
import { readFileSync } from 'node:fs';
import { isInherited, OF_TOOLS, USER_LABELS_MAX } from '../../../src/api/labels.ts';
import { NAME_LENGTH_MAX, WORKERS_PER_POD_MAX } from '../../../src/api/names.ts';
import { parseRenderService, type RenderService } from '../../../src/api/resource.ts';
import { desiredObjects, type PlannedObject } from '../../../src/plan/index.ts';
import { peersKeySecret } from '../../../src/plan/peers-key.ts';

const SIDECAR = { image: 'sidecar:1' };
const ACCESS = { namespace: 'corelane-system', monitoring: [] };

function renderService(spec: object = {}, name = 'shop'): RenderService {
  const parsed = parseRenderService({
    apiVersion: 'corelane.dev/v1alpha1',
    kind: 'RenderService',
    metadata: { name, namespace: 'default', uid: 'UID', generation: 1, resourceVersion: '1' },
    spec: { template: { spec: { containers: [{ name: 'worker', image: 'shop:1' }] } }, ...spec },
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  return parsed.renderService;
}

function plan(spec: object = {}, name?: string): PlannedObject[] {
  return desiredObjects(renderService(spec, name), SIDECAR, ACCESS);
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into objects of every kind
function one(objects: PlannedObject[], kind: string): any {
  return objects.find((object) => object.kind === kind);
}

function hashes(objects: PlannedObject[]): Record<string, string> {
  return Object.fromEntries(
    objects.map(({ kind, metadata }) => [
      // The names of these have their hash in them.
      kind === 'Deployment' || (kind === 'ConfigMap' && !metadata.name.endsWith('-live'))
        ? kind
        : `${kind}/${metadata.name}`,
      metadata.annotations['corelane.dev/applied-hash'] as string,
    ]),
  );
}

/** Kinds whose objects differ between two specs. */
function changed(before: object, after: object): string[] {
  const old = hashes(plan(before));
  return Object.entries(hashes(plan(after)))
    .filter(([name, hash]) => old[name] !== hash)
    .map(([name]) => name);
}

test('the same spec makes the same objects, in whatever order its fields stand', () => {
  // The API server gives the template's maps in an order of its own.
  const container = { name: 'worker', image: 'shop:1' };
  const turned = { image: 'shop:1', name: 'worker' };
  const one = { queue: { maxLength: 5, timeout: '3s' }, template: { spec: { containers: [container] } } };
  const other = { template: { spec: { containers: [turned] } }, queue: { timeout: '3s', maxLength: 5 } };
  expect(hashes(plan(one))).toEqual(hashes(plan(other)));
});

test('only HAProxy mounts the key of the peers, and nothing of a plan depends on it', () => {
  const template = one(plan(), 'Deployment').spec.template.spec;
  const secrets = template.volumes.filter((volume: { secret?: object }) => volume.secret);
  expect(secrets).toEqual([
    { name: 'corelane-peers-key', secret: { secretName: 'shop-peers', optional: true, defaultMode: 0o444 } },
  ]);
  const containers = [...template.initContainers, ...template.containers];
  const mounting = containers.filter(({ volumeMounts = [] }) =>
    volumeMounts.some(({ name }: { name: string }) => name === 'corelane-peers-key'),
  );
  expect(mounting.map(({ name, volumeMounts }) => [name, volumeMounts.at(-2)])).toEqual([
    ['haproxy', { name: 'corelane-peers-key', mountPath: '/etc/corelane-peers', readOnly: true }],
  ]);
  expect(plan().map(({ kind }) => kind)).not.toContain('Secret');
  const [first, second] = ['a', 'b'].map((key) => peersKeySecret(renderService(), key.repeat(44)));
  expect(first?.data).not.toEqual(second?.data);
  expect(first?.metadata).toEqual(second?.metadata);
});

describe('who outlives the drain', () => {
  const command = ['/corelane/wait-for-drain'];
  const containers = [
    { name: 'worker', image: 'shop:1' },
    { name: 'db', image: 'db:1', lifecycle: { postStart: { exec: { command: ['true'] } } } },
    { name: 'own', image: 'own:1', lifecycle: { preStop: { sleep: { seconds: 5 } } } },
  ];
  const initContainers = [{ name: 'collector', image: 'collector:1', restartPolicy: 'Always' }];
  const pod = one(plan({ template: { spec: { containers, initContainers } } }), 'Deployment').spec.template.spec;
  // biome-ignore lint/suspicious/noExplicitAny: as above
  const found = (name: string): any =>
    [...pod.initContainers, ...pod.containers].find((container: { name: string }) => container.name === name);
  const mounts = [
    { name: 'corelane-runtime', mountPath: '/corelane', readOnly: true },
    { name: 'corelane-drain', mountPath: '/corelane-drain', readOnly: true },
  ];

  test.each(['worker-0', 'worker-1'])('%s, by a program and a file, which no network can refuse', (name) => {
    expect(found(name).lifecycle).toEqual({ preStop: { exec: { command } } });
    expect(found(name).volumeMounts).toEqual(expect.arrayContaining(mounts));
  });

  test('a container beside the workers, which keeps its other hook', () => {
    expect(found('db')).toEqual({
      ...containers[1],
      lifecycle: { ...containers[1]?.lifecycle, preStop: { exec: { command } } },
      volumeMounts: mounts,
    });
  });

  test('not one that has a hook of its own; native sidecars do by themselves', () => {
    expect([found('own'), found('collector')]).toEqual([containers[2], ...initContainers]);
  });

  test('only the proxies write the marks, and there is a folder for them', () => {
    const writers = [...pod.initContainers, ...pod.containers].filter(({ volumeMounts = [] }) =>
      volumeMounts.some(({ name, readOnly }: (typeof mounts)[number]) => name === 'corelane-drain' && !readOnly),
    );
    expect(writers.map(({ name }) => name)).toEqual(['haproxy', 'nginx']);
    expect(pod.volumes).toContainEqual({ name: 'corelane-drain', emptyDir: { sizeLimit: '1Mi' } });
  });
});

test('the NetworkPolicy lets the proxies of service meshes in, once each', () => {
  const proxy = {
    name: 'istio-proxy',
    image: 'proxy:1',
    ports: [{ containerPort: 15_090 }, { containerPort: 15_008 }],
  };
  const containers = [{ name: 'worker', image: 'shop:1', ports: [{ containerPort: 3000 }] }, proxy];
  const { ingress } = one(plan({ template: { spec: { containers } } }), 'NetworkPolicy').spec;
  const ports = ingress.map((rule: { ports?: { port: number }[] }) => rule.ports?.map(({ port }) => port));
  expect(ports).toEqual([[9000, 15_008, 4143, 15_090], [9001], [8998, 8999, 15_020, 15_090, 4191], undefined]);
  // kubelet's probes in Istio's ambient mode, and nobody else, get to every port.
  expect(ingress.at(-1)).toEqual({ from: [{ ipBlock: { cidr: '169.254.7.127/32' } }] });
});

test('pods that do not ask each other have no key', () => {
  const alone = plan({ pooling: { enabled: false }, readiness: { shedWhenFull: false } });
  expect(JSON.stringify(alone)).not.toContain('peers-key');
});

test('a plan leaves the spec as it was', () => {
  const input = renderService({
    template: { spec: { containers: [{ name: 'worker', image: 'a', env: [], ports: [] }] } },
  });
  const before = structuredClone(input);
  desiredObjects(input, SIDECAR, ACCESS);
  expect(input).toEqual(before);
});

test.each<[string, object, string[]]>([
  ['replicas change the Deployment', { replicas: 5 }, ['Deployment']],
  ['the port changes the Service', { service: { port: 81 } }, ['Service/shop']],
  ['the budget changes itself', { disruptionBudget: { maxUnavailable: 2 } }, ['PodDisruptionBudget/shop']],
  [
    'who may monitor changes the NetworkPolicy',
    { networkPolicy: { monitoring: [{ podSelector: {} }] } },
    ['NetworkPolicy/shop'],
  ],
  // The pods must be replaced to get the configuration, so the template names it.
  [
    'the wait changes configuration and pods',
    { queue: { timeout: '1s' } },
    ['ConfigMap', 'ConfigMap/shop-live', 'Deployment'],
  ],
  ['a live setting changes the live settings', { queue: { maxLength: 1 } }, ['ConfigMap/shop-live']],
  ['a default written out changes nothing', { queue: { maxLength: 100 }, balance: 'roundrobin' }, []],
])('%s, and nothing else', (_what, spec, expected) => {
  expect(changed({}, spec)).toEqual(expected);
});

test('a Deployment selects the pods of its revision, and another revision is another Deployment', () => {
  const spec = { template: { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'x', image: 'y' }] } } };
  const [first, other] = [plan(), plan(spec)].map((objects) => one(objects, 'Deployment'));
  for (const { metadata, spec: of } of [first, other]) {
    const revision = metadata.labels['corelane.dev/revision'];
    expect(revision).toMatch(/^[0-9a-f]{10}$/);
    expect(metadata.name).toBe(`shop-${revision}`);
    const labels = { 'corelane.dev/renderservice': 'shop', 'corelane.dev/revision': revision };
    expect(of.selector).toEqual({ matchLabels: labels });
    expect(of.template.metadata.labels).toMatchObject({ ...labels, 'corelane.dev/serving': 'true' });
  }
  expect(other.metadata.name).not.toBe(first.metadata.name);
});

test('the Service leads to pods that serve, the budget is about these, and to all where some do not have the label that says so', () => {
  const legacy = { revision: undefined, template: { spec: { containers: [] } }, replicas: 2, annotations: {} };
  const objects = desiredObjects(renderService(), SIDECAR, ACCESS, undefined, { revisions: [legacy], canRest: false });
  const all = { 'corelane.dev/renderservice': 'shop' };
  expect(one(objects, 'Service').spec.selector).toEqual(all);
  expect(one(objects, 'PodDisruptionBudget').spec.selector.matchLabels).toEqual(all);
  const serving = { ...all, 'corelane.dev/serving': 'true' };
  expect(one(plan(), 'Service').spec.selector).toEqual(serving);
  expect(one(plan(), 'PodDisruptionBudget').spec.selector.matchLabels).toEqual(serving);
  // As the version before has made it, or its pods would be replaced.
  const { metadata, spec } = one(objects, 'Deployment');
  expect([metadata.name, Object.keys(metadata.labels)]).toEqual([
    'shop',
    ['app.kubernetes.io/managed-by', 'app.kubernetes.io/instance', 'corelane.dev/renderservice'],
  ]);
  expect(spec).toEqual({
    ...{ replicas: 2, minReadySeconds: 0, progressDeadlineSeconds: 600, revisionHistoryLimit: 2 },
    selector: { matchLabels: all },
    strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: '25%', maxUnavailable: 0 } },
    template: legacy.template,
  });
});

test('a Deployment mounts the ConfigMaps of the same plan', () => {
  const objects = plan();
  const volumes: { configMap?: { name: string } }[] = one(objects, 'Deployment').spec.template.spec.volumes;
  const maps = objects.filter(({ kind }) => kind === 'ConfigMap').map(({ metadata }) => metadata.name);
  expect(volumes.flatMap(({ configMap }) => configMap?.name ?? [])).toEqual(maps);
});

test('the longest name makes names that the API server takes', () => {
  for (const { kind, metadata } of plan({}, 'a'.repeat(NAME_LENGTH_MAX))) {
    expect({ kind, length: metadata.name.length <= 63 }).toEqual({ kind, length: true });
    for (const value of Object.values(metadata.labels)) expect(value.length).toBeLessThanOrEqual(63);
  }
});

test('most workers have ports of their own that collide with nothing', () => {
  const { spec } = one(plan({ workersPerPod: WORKERS_PER_POD_MAX }), 'Deployment').spec.template;
  const workers: string[] = spec.containers.map(
    ({ env }: { env: { name: string; value: string }[] }) => env.find(({ name }) => name === 'PORT')?.value,
  );
  const proxies: number[] = spec.initContainers.flatMap(({ ports = [] }: { ports?: { containerPort: number }[] }) =>
    ports.map(({ containerPort }) => containerPort),
  );
  expect(workers).toHaveLength(WORKERS_PER_POD_MAX);
  expect(new Set([...workers.map(Number), ...proxies]).size).toBe(workers.length + proxies.length);
});

test.each([
  ['4s', '60s', '10s', '30s', '5m', 104],
  ['500ms', '1s', '100ms', '900ms', '5m', 17],
  ['0s', '2h', '10s', '30s', '5m', 7210],
  ['0s', undefined, '10s', '30s', '5m', 320],
  ['0s', undefined, '60s', '30s', '5m', 370],
  // Renders may take up to a minute without other pods.
  ['0s', undefined, '10s', '30s', '1s', 80],
  ['0s', undefined, '60s', '30s', '1s', 130],
  ['0s', undefined, '10s', '5s', '1s', 70],
])(
  'a pod has time for a drain of %s and %s, waits of %s, renders of %s and handlers of %s',
  (delay, timeout, wait, render, handler, expected) => {
    const spec = { drain: { delay, timeout }, queue: { timeout: wait }, timeouts: { render, handler } };
    expect(one(plan(spec), 'Deployment').spec.template.spec.terminationGracePeriodSeconds).toBe(expected);
  },
);

test("what Corelane adds has an empty folder where the token of the pod's account would be", () => {
  const containers = [
    { name: 'worker', image: 'a' },
    { name: 'other', image: 'b' },
  ];
  const spec = { template: { spec: { serviceAccountName: 'powerful', containers } } };
  const pod = one(plan(spec), 'Deployment').spec.template.spec;
  const at = (container: { volumeMounts?: { mountPath: string }[] }) =>
    container.volumeMounts?.find(({ mountPath }) => mountPath === '/var/run/secrets/kubernetes.io/serviceaccount');
  const mount = { name: 'corelane-no-token', mountPath: expect.any(String), readOnly: true };
  expect(pod.initContainers.map(at)).toEqual([mount, mount, mount]);
  expect(pod.containers.map(at)).toEqual([undefined, undefined, undefined, undefined, undefined]);
  expect(pod.volumes).toContainEqual({ name: 'corelane-no-token', emptyDir: { sizeLimit: '1Mi' } });
});

/** Pod template of a plan for one worker, with more fields of its pod, of its container and of its metadata. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into objects of every kind
function template(pod: object = {}, worker: object = {}, metadata: object = {}, spec: object = {}): any {
  const containers = [{ name: 'worker', image: 'shop:1', ...worker }];
  const planned = plan({ ...spec, template: { metadata, spec: { containers, ...pod } } });
  return one(planned, 'Deployment').spec.template;
}

test('pods have the account that the template names, and else that of the namespace, with its token', () => {
  for (const fields of [{}, { serviceAccountName: '' }, { serviceAccountName: '', serviceAccount: '' }]) {
    expect(template(fields).spec.serviceAccountName).toBe('default');
    for (const field of ['serviceAccount', 'automountServiceAccountToken'])
      expect(template(fields).spec).not.toHaveProperty(field);
  }
  for (const fields of [
    { serviceAccountName: 'own' },
    { serviceAccount: 'own' },
    { serviceAccountName: 'own', serviceAccount: 'other' },
  ]) {
    expect(template(fields).spec.serviceAccountName).toBe('own');
    expect(template(fields).spec).not.toHaveProperty('serviceAccount');
  }
  expect(template({ automountServiceAccountToken: false }).spec.automountServiceAccountToken).toBe(false);
  expect(plan().map(({ kind }) => kind)).not.toContain('ServiceAccount');
});

const OURS = { runAsUser: 10_001, runAsGroup: 10_001 };
test.each<[string, object, object, object]>([
  ['that of the image, or what the namespace assigns', {}, {}, {}],
  ["the pod's", { securityContext: { runAsUser: 1_000_920_000 } }, {}, { runAsUser: 1_000_920_000 }],
  [
    "the pod's, with its group",
    { securityContext: { runAsUser: 7, runAsGroup: 0 } },
    {},
    { runAsUser: 7, runAsGroup: 0 },
  ],
  ["the worker's, which a policy has let in", {}, { runAsUser: 1000 }, { runAsUser: 1000 }],
  [
    "the worker's before the pod's",
    { securityContext: { runAsUser: 7, runAsGroup: 8 } },
    { runAsUser: 1000 },
    { runAsUser: 1000, runAsGroup: 8 },
  ],
  ['never root', {}, { runAsUser: 0, runAsGroup: 0 }, OURS],
  ['never root of the pod', { securityContext: { runAsUser: 0, runAsNonRoot: false } }, {}, OURS],
  [
    'never that of workers that see the processes of the proxies',
    { shareProcessNamespace: true, securityContext: { runAsUser: 1000 } },
    {},
    OURS,
  ],
  ['likewise', { shareProcessNamespace: true }, { runAsUser: 1000 }, OURS],
  ['never that of workers that see the processes of the node', { hostPID: true }, { runAsUser: 1000 }, OURS],
  ['what a namespace assigns to these, too', { shareProcessNamespace: true }, {}, {}],
  ['no more by null than without it', { securityContext: { runAsUser: null } }, { runAsGroup: null }, {}],
])('the user of the proxies: %s', (_what, pod, securityContext, expected) => {
  const { initContainers } = template(pod, { securityContext }).spec;
  const confined = {
    allowPrivilegeEscalation: false,
    capabilities: { drop: ['ALL'] },
    readOnlyRootFilesystem: true,
    runAsNonRoot: true,
    seccompProfile: { type: 'RuntimeDefault' },
  };
  // nginx may read the sockets of HAProxy because both are of one user.
  expect(initContainers.map((container: { securityContext: object }) => container.securityContext)).toEqual(
    Array(3).fill({ ...confined, ...expected }),
  );
});

test('the cluster autoscaler may remove a node for all that our volumes have in them, and for what the user says', () => {
  const key = 'cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes';
  const volumes = [
    { name: 'uploads', emptyDir: {} },
    { name: 'scratch', emptyDir: {} },
  ];
  const spec = { assets: [{ path: '/static/', from: '/app/static' }], cache: { enabled: true } };
  for (const more of [{}, spec]) {
    const { metadata, spec: pod } = template({ volumes }, {}, {}, more);
    const local = pod.volumes.filter((volume: { emptyDir?: object }) => volume.emptyDir);
    const names = local.map(({ name }: { name: string }) => name);
    expect(names.slice(0, 2)).toEqual(['uploads', 'scratch']);
    expect(metadata.annotations[key].split(',')).toEqual(names.slice(2));
    expect(names).toHaveLength(more === spec ? 9 : 7);
  }
  const said = template({ volumes }, {}, { annotations: { [key]: 'scratch' } }).metadata.annotations[key];
  expect(said).toMatch(/^scratch,corelane-runtime,corelane-run,/);
});

test('Services of the namespace set no variables in the workers, unless the template says so', () => {
  expect(template().spec.enableServiceLinks).toBe(false);
  expect(template({ enableServiceLinks: null }).spec.enableServiceLinks).toBe(false);
  expect(template({ enableServiceLinks: true }).spec.enableServiceLinks).toBe(true);
});

describe('labels of the RenderService', () => {
  const labelled = (labels: Record<string, string>, spec: object = {}): PlannedObject[] => {
    const input = renderService(spec);
    return desiredObjects({ ...input, metadata: { ...input.metadata, labels } }, SIDECAR, ACCESS);
  };
  const OWN = {
    'app.kubernetes.io/managed-by': 'corelane',
    'app.kubernetes.io/instance': 'shop',
    'corelane.dev/renderservice': 'shop',
  };

  test('are on all of its objects, but for those that are ours, and those by which a tool finds what it has made', () => {
    const theirs = {
      team: 'web',
      'example.com/cost-center': '42',
      'notkubernetes.io/a': 'b',
      'app.kubernetes.io/name': 'storefront',
    };
    const taken = {
      'app.kubernetes.io/managed-by': 'Helm',
      'app.kubernetes.io/instance': 'release',
      'corelane.dev/renderservice': 'another',
      'corelane.dev/revision': '0123456789',
      'corelane.dev/anything': 'x',
      'applyset.kubernetes.io/part-of': 'applyset-v1',
      'kubernetes.io/cluster-service': 'true',
      'service.k8s.io/x': 'y',
      'argocd.argoproj.io/instance': 'app',
      'kapp.k14s.io/app': '1',
      'objectset.rio.cattle.io/hash': '1',
      'kustomize.toolkit.fluxcd.io/name': 'shop',
      'helm.sh/chart': 'shop-1.2.3',
    };
    const input = renderService();
    const resource = { ...input, metadata: { ...input.metadata, labels: { ...theirs, ...taken } } };
    const objects = [...labelled({ ...theirs, ...taken }), peersKeySecret(resource, 'key')];
    for (const { kind, metadata } of objects) {
      const { 'corelane.dev/revision': revision, ...labels } = metadata.labels;
      expect({ kind, labels }).toEqual({ kind, labels: { ...theirs, ...OWN } });
      expect(revision).toEqual(kind === 'Deployment' ? expect.not.stringContaining('0123456789') : undefined);
    }
  });

  test("are those to which the chart's policy wants a right, but for some that mean nothing to controllers", () => {
    const policy = new URL('../../../../charts/corelane/templates/admission-policies.yaml', import.meta.url);
    const [, pattern = ''] = /k\.matches\('(\^[^']+)'\)/.exec(readFileSync(policy, 'utf8')) ?? [];
    const prefixes = [
      ...OF_TOOLS,
      ...['kubernetes.io', 'applyset.kubernetes.io', 'k8s.io', 'x.k8s.io', 'corelane.dev', 'notkubernetes.io'],
      ...['example.com', 'multicluster.linkerd.io', 'kubernetes.io.example.com', 'xhelm.sh', 'argoproj.io'],
    ];
    for (const prefix of prefixes)
      expect([prefix, new RegExp(pattern).test(`${prefix}/a`)]).toEqual([prefix, !isInherited(`${prefix}/a`)]);
    expect(new RegExp(pattern).test('app.kubernetes.io/part-of')).toBe(true);
  });

  test('change no selector, no revision and nothing of the pods', () => {
    const specOf = (objects: PlannedObject[]) => objects.map(({ kind, metadata, spec }) => [kind, metadata.name, spec]);
    expect(specOf(labelled({ team: 'web' }))).toEqual(specOf(plan()));
    expect(specOf(labelled({ team: 'another' }))).toEqual(specOf(plan()));
  });

  test('come after those that the spec has for one object', () => {
    const service = { labels: { team: 'edge' } };
    const objects = labelled({ team: 'web' }, { service });
    const teams = objects.map(({ kind, metadata }) => [`${kind}/${metadata.name}`, metadata.labels.team]);
    expect(Object.fromEntries(teams)).toMatchObject({ 'Service/shop': 'edge', 'Service/shop-peers': 'web' });
  });

  test('have a bound', () => {
    const many = (count: number) =>
      parseRenderService({
        apiVersion: 'corelane.dev/v1alpha1',
        kind: 'RenderService',
        metadata: {
          ...renderService().metadata,
          labels: Object.fromEntries(Array.from({ length: count }, (_unused, index) => [`label-${index}`, 'x'])),
        },
        spec: renderService().spec,
      });
    expect(many(USER_LABELS_MAX).ok).toBe(true);
    expect(many(USER_LABELS_MAX + 1)).toEqual({
      ok: false,
      errors: [
        { path: 'metadata.labels', message: expect.stringMatching(/^has 65 labels; .* 64 are the most: remove/) },
      ],
    });
  });
});

describe('resources follow the worker, from whom the namespace wants the same', () => {
  interface Container {
    name: string;
    resources: { requests?: Record<string, string>; limits?: Record<string, string> };
  }
  /** Resources of the containers that Corelane adds, for a worker with these resources. */
  const added = (resources: object | undefined, spec: object = {}) => {
    const worker = { name: 'worker', image: 'a', ...(resources && { resources }) };
    const made = plan({ ...spec, assets: [{ path: '/a/', from: 'a' }], template: { spec: { containers: [worker] } } });
    const containers: Container[] = one(made, 'Deployment').spec.template.spec.initContainers;
    return Object.fromEntries(containers.map(({ name, resources: of }) => [name, of]));
  };
  const cpuLimits = (limit: string, spec: object = {}) => {
    const { haproxy, nginx } = added({ limits: { cpu: limit } }, spec);
    return [haproxy?.limits?.cpu, nginx?.limits?.cpu];
  };

  test('init containers have those of one worker, which cost a pod nothing, but no devices', () => {
    const requests = { cpu: '500m', memory: '1Gi', 'ephemeral-storage': '1Gi' };
    const limits = { cpu: '1', memory: '1Gi' };
    const made = added({
      requests: { ...requests, 'example.com/gpu': '1' },
      limits: { ...limits, 'example.com/gpu': '1' },
    });
    expect([made['corelane-runtime'], made['corelane-assets']]).toEqual([
      { requests, limits },
      { requests, limits },
    ]);
    const alone = { requests: { cpu: '1' } };
    expect([added(undefined)['corelane-runtime'], added({})['corelane-assets']]).toEqual([alone, alone]);
  });

  test('proxies have no CPU limit where the worker has none', () => {
    for (const resources of [
      undefined,
      { requests: { cpu: '1' }, limits: { memory: '1Gi' } },
      { limits: { cpu: '0' } },
    ]) {
      const { haproxy, nginx } = added(resources);
      expect([haproxy?.limits, nginx?.limits]).toEqual([
        { memory: '256Mi' },
        { memory: '512Mi', 'ephemeral-storage': '16Gi' },
      ]);
    }
  });

  test('and where it has one, that, but no more than a thread can use, and no less than they ask for', () => {
    expect(cpuLimits('4')).toEqual(['1', '1']);
    expect(cpuLimits('500m')).toEqual(['500m', '500m']);
    expect(cpuLimits('20m')).toEqual(['50m', '50m']);
    expect(cpuLimits('500m', { sidecar: { nginx: { cpu: '2' } } })).toEqual(['500m', '2']);
  });

  test('or what the resource says', () => {
    const sidecar = { nginx: { cpuLimit: '200m' }, haproxy: { cpuLimit: '2' } };
    expect(cpuLimits('4', { sidecar })).toEqual(['2', '200m']);
    const { haproxy } = added(undefined, { sidecar });
    expect(haproxy?.limits?.cpu).toBe('2');
  });
});
