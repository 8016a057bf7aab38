/** Properties of every plan, beside its golden content. */
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
