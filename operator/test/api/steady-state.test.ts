/**
 * A cluster at rest stays at rest: what the API server makes of an applied object (defaults, normal forms, dropped
 * empty values) must not look like a change, or every resync would write to every object for ever.
 */
import type { Server } from 'node:http';
import type { Json } from '../support/api-client.ts';
import { eventually, settled } from '../support/eventually.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import { asTold, TOLD } from '../support/told.ts';
import { podTemplate, sharedServer, World } from '../support/world.ts';
import { addressPods, serveAt, settingsOf } from './live-settings.ts';

let world: World;

const worker = { name: 'worker', image: 'corelane.test/app:1' };
const withWorker = (fields: object) => ({ template: podTemplate(fields) });
const withPod = (fields: object) => ({ template: podTemplate({}, fields) });
const withSecond = (fields: object) => withPod({ containers: [worker, { name: 'second', image: 'x:1', ...fields }] });

/** Specs that the API server does not store as they are written. */
const SPECS: Record<string, object> = {
  plain: {},
  'cpu-in-milli': withWorker({
    resources: { requests: { cpu: '1000m', memory: '1024Mi' }, limits: { memory: '2048Mi' } },
  }),
  'cpu-as-number': withWorker({ resources: { requests: { cpu: 2 }, limits: { cpu: '2.0', memory: '1000000Ki' } } }),
  'odd-quantities': withWorker({ resources: { requests: { cpu: '1.5', memory: '1e9', 'ephemeral-storage': '.5Gi' } } }),
  'empty-strings': withWorker({ env: [{ name: 'EMPTY', value: '' }], workingDir: '', command: [], args: [''] }),
  'empty-values': withPod({ nodeSelector: {}, tolerations: [], securityContext: {}, hostAliases: [], affinity: {} }),
  nulls: withPod({ nodeSelector: null, affinity: null, tolerations: null }),
  'false-and-zero': withPod({
    hostIPC: false,
    hostPID: false,
    shareProcessNamespace: false,
    securityContext: { runAsUser: 0 },
  }),
  'no-protocol': withSecond({ ports: [{ containerPort: 3100 }, { containerPort: 3100, protocol: 'UDP' }] }),
  'probes-by-name': withSecond({
    ports: [{ name: 'web', containerPort: 3100 }],
    readinessProbe: { httpGet: { port: 'web' } },
    livenessProbe: { httpGet: { port: 3100, path: '/live' }, periodSeconds: 10 },
    startupProbe: { exec: { command: ['true'] } },
  }),
  'env-from': withWorker({
    env: [
      { name: 'POD', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
      { name: 'CPU', valueFrom: { resourceFieldRef: { resource: 'requests.cpu', divisor: '1' } } },
      { name: 'MEMORY', valueFrom: { resourceFieldRef: { containerName: 'nginx', resource: 'limits.memory' } } },
      { name: 'SECRET', valueFrom: { secretKeyRef: { name: 's', key: 'k', optional: true } } },
    ],
    envFrom: [{ configMapRef: { name: 'more', optional: true } }, { prefix: 'P_', secretRef: { name: 'more' } }],
  }),
  'projected-volume': {
    template: podTemplate(
      { volumeMounts: [{ name: 'all', mountPath: '/all' }] },
      {
        volumes: [
          {
            name: 'all',
            projected: {
              sources: [
                { serviceAccountToken: { path: 'token' } },
                { configMap: { name: 'a', items: [{ key: 'k', path: 'p' }] } },
                { downwardAPI: { items: [{ path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } }] } },
              ],
            },
          },
          { name: 'scratch', emptyDir: { medium: 'Memory', sizeLimit: '1024Mi' } },
          { name: 'secret', secret: { secretName: 's' } },
          {
            name: 'claim',
            ephemeral: {
              volumeClaimTemplate: {
                spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1024Mi' } } },
              },
            },
          },
        ],
      },
    ),
  },
  'own-spread': withPod({
    topologySpreadConstraints: [
      {
        maxSkew: 1,
        topologyKey: 'zone',
        whenUnsatisfiable: 'DoNotSchedule',
        labelSelector: { matchLabels: { a: 'b' } },
      },
    ],
  }),
  'affinity-and-tolerations': withPod({
    affinity: {
      podAntiAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: [
          { weight: 1, podAffinityTerm: { topologyKey: 'kubernetes.io/hostname', labelSelector: {} } },
        ],
      },
    },
    tolerations: [
      { key: 'spot', operator: 'Exists' },
      { operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 0 },
    ],
  }),
  security: {
    template: podTemplate(
      { securityContext: { allowPrivilegeEscalation: false, runAsUser: 0, capabilities: { drop: ['ALL'], add: [] } } },
      { securityContext: { runAsNonRoot: false, fsGroup: 0, supplementalGroups: [] }, enableServiceLinks: false },
    ),
  },
  'init-containers': withPod({
    initContainers: [
      { name: 'first', image: 'x:1', command: ['true'] },
      { name: 'proxy', image: 'x', restartPolicy: 'Always', ports: [{ containerPort: 1 }] },
    ],
  }),
  'account-and-secrets': withPod({
    serviceAccountName: 'mine',
    imagePullSecrets: [{ name: 'pull' }],
    priorityClassName: '',
  }),
  'account-by-its-old-name': withPod({ serviceAccount: 'mine' }),
  'made-by-kubectl': {
    template: { ...podTemplate({ resources: {} }), metadata: { creationTimestamp: null, labels: {} } },
  },
  'node-port': { service: { type: 'NodePort', annotations: {} } },
  'load-balancer': { service: { type: 'LoadBalancer', port: 443, annotations: { 'example.com/a': '' } } },
  'load-balancer-in-full': {
    service: {
      type: 'LoadBalancer',
      appProtocol: 'http',
      labels: { 'app.kubernetes.io/part-of': 'shop', empty: '' },
      externalTrafficPolicy: 'Local',
      internalTrafficPolicy: 'Local',
      trafficDistribution: 'PreferClose',
      loadBalancerClass: 'example.com/nlb',
      loadBalancerSourceRanges: ['10.0.0.0/8', '192.0.2.0/24'],
    },
  },
  'one-family-of-addresses': { service: { ipFamilyPolicy: 'SingleStack', ipFamilies: ['IPv4'] } },
  'both-where-there-are-two': { service: { ipFamilyPolicy: 'PreferDualStack' } },
  'service-links': withPod({ enableServiceLinks: true, automountServiceAccountToken: false }),
  'other-numbers': {
    replicas: 0,
    rollout: { rolling: { maxSurge: '0%', maxUnavailable: 1, minReadySeconds: 0 } },
    disruptionBudget: { maxUnavailable: '0%' },
    sidecar: { nginx: { cpu: '1000m', memory: '1024Mi', memoryLimit: '1Gi' } },
  },
  mirrored: {},
  throttled: {},
};
const MIRROR = 'mirror.corelane.test/app:1';
const NGINX = '/spec/template/spec/initContainers/2/resources/limits';
/** What a policy of the cluster makes of the Deployments of a service: values by their place. */
const MUTATIONS: Record<string, Record<string, string>> = {
  mirrored: { '/spec/template/spec/containers/0/image': MIRROR, '/spec/template/spec/containers/1/image': MIRROR },
  throttled: { [`${NGINX}/cpu`]: '50m', [`${NGINX}/memory`]: '64Mi' },
};
const NAMES = Object.keys(SPECS);
const NAMES_WITH_PODS = NAMES.filter((name) => (SPECS[name] as { replicas?: number }).replicas !== 0);

const POLICIES = '/apis/admissionregistration.k8s.io/v1/mutatingadmission';

/** Makes a policy that changes the Deployments of this service. */
async function mutate(service: string, values: Record<string, string>): Promise<void> {
  const name = `${world.namespace}-${service}`;
  const patches = Object.entries(values).map(
    ([path, value]) => `JSONPatch{op: "add", path: "${path}", value: "${value}"}`,
  );
  const deployments = { apiGroups: ['apps'], apiVersions: ['v1'], resources: ['deployments'] };
  await world.admin.post(`${POLICIES}policies`, {
    metadata: { name },
    spec: {
      reinvocationPolicy: 'Never',
      matchConstraints: {
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': world.namespace } },
        objectSelector: { matchLabels: { 'corelane.dev/renderservice': service } },
        resourceRules: [{ ...deployments, operations: ['CREATE', 'UPDATE'] }],
      },
      mutations: [{ patchType: 'JSONPatch', jsonPatch: { expression: `[${patches.join(', ')}]` } }],
    },
  });
  await world.admin.post(`${POLICIES}policybindings`, { metadata: { name }, spec: { policyName: name } });
}

/** Values at these places of a Deployment. */
function valuesAt(deployment: Json, places: string[]): unknown[] {
  return places.map((place) =>
    place
      .slice(1)
      .split('/')
      .reduce((value, key) => value?.[key], deployment),
  );
}

/** What the API server would make of a new Deployment of this service, at these places. */
async function admitted(service: string, places: string[]): Promise<unknown[]> {
  const container = (name: string) => ({
    name,
    image: 'corelane.test/app:1',
    resources: { limits: { memory: '1Gi' } },
  });
  const labels = { 'corelane.dev/renderservice': service };
  const spec = {
    containers: ['worker-0', 'worker-1'].map(container),
    initContainers: ['first', 'second', 'third'].map(container),
  };
  const made = await world.admin.post(`${world.path('Deployment')}?dryRun=All`, {
    metadata: { name: `probe-${service}`, labels },
    spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
  });
  return valuesAt(made, places);
}

beforeAll(async () => {
  world = await World.create(sharedServer(), 'steady-state');
  for (const [service, values] of Object.entries(MUTATIONS)) {
    await mutate(service, values);
    await eventually('the policy is in force', async () =>
      expect(await admitted(service, Object.keys(values))).toEqual(Object.values(values)),
    );
  }
});

afterAll(async () => {
  await OperatorProcess.killAll();
  for (const service of Object.keys(MUTATIONS)) await unmutate(service);
});

async function unmutate(service: string): Promise<void> {
  for (const kind of ['policybindings', 'policies']) {
    const path = `${POLICIES}${kind}/${world.namespace}-${service}`;
    if (await world.admin.find(path)) await world.admin.delete(path);
  }
}

/**
 * Calls that write, besides those for the Lease. The Lease is renewed by PUT; an object is repaired by PUT only
 * together with a PATCH, so leaving PUT out misses nothing. Whether there is a Secret with the peers' key the operator
 * learns by creating one: the answer 409 is no write.
 */
async function writes(operator: OperatorProcess): Promise<number> {
  return await operator.sum(
    'corelane_operator_api_request_duration_seconds_count',
    ({ method, code }) => method === 'PATCH' || method === 'DELETE' || (method === 'POST' && code !== '409'),
  );
}

/** How often the operator has learned that there is a Secret. */
async function secretsThere(operator: OperatorProcess): Promise<number> {
  return await operator.sum(
    'corelane_operator_api_request_duration_seconds_count',
    ({ method, code }) => method === 'POST' && code === '409',
  );
}

/** Resource versions of all that the operator writes, except of the RenderServices, which the tests touch. */
async function ownedVersions(): Promise<Record<string, string>> {
  const all = Object.entries(await world.resourceVersions());
  return Object.fromEntries(all.filter(([name]) => !name.startsWith('RenderService/')));
}

/** Waits until the operator has looked at everything at least once more than `before` and has nothing to do. */
async function untilLookedAtAll(operator: OperatorProcess, before: number): Promise<void> {
  await eventually('the operator has looked at everything', async () => {
    const { done, depth } = await operator.work();
    expect(done).toBeGreaterThanOrEqual(before + NAMES.length);
    expect(depth).toBe(0);
  });
}

let operator: OperatorProcess;
let atRest: Record<string, string>;

test('everything that an API server changes about an object is applied once', async () => {
  operator = await world.startOperator('operator-0');
  for (const name of NAMES) await world.createRenderService(name, SPECS[name]);
  for (const name of NAMES) await world.untilApplied(name);
  await settled('all objects', () => world.resourceVersions());
  atRest = await ownedVersions();
  // Per RenderService: two ConfigMaps, two Services, budget, NetworkPolicy, Deployment.
  expect(Object.keys(atRest)).toHaveLength(NAMES.length * 7);
  const deployment = await world.deployment('account-by-its-old-name');
  expect(deployment.spec.template.spec.serviceAccountName).toBe('mine');
  const rewritten = (await operator.metrics()).filter(
    ({ name, labels }) =>
      name === 'corelane_operator_writes_total' && / (changed|edited|foreign-fields)$/.test(labels.what ?? ''),
  );
  expect(rewritten).toEqual([]);
});

test('a look at everything writes nothing, and asks for no Secret', async () => {
  // For pods that have come since it is asked once more, within ten seconds; on a busy machine some seconds later.
  const asked = await settled('the questions for Secrets', () => secretsThere(operator), { forMs: 20_000 });
  expect(asked).toBeGreaterThanOrEqual(NAMES_WITH_PODS.length);
  const written = await writes(operator);
  const { done } = await operator.work();
  for (const name of NAMES) {
    // An annotation is no change of the spec, but an event: the operator looks at all that the resource owns.
    await world.admin.patch(world.path('RenderService', name), { metadata: { annotations: { touched: 'yes' } } });
  }
  await untilLookedAtAll(operator, done);
  expect(await writes(operator)).toBe(written);
  expect(await secretsThere(operator)).toBe(asked);
  expect(await ownedVersions()).toEqual(atRest);
});

test('a restart of the operator writes nothing', async () => {
  expect(await operator.stop()).toBe(0);
  const before = await world.resourceVersions();
  operator = await world.startOperator('operator-1');
  await untilLookedAtAll(operator, 0);
  expect(await writes(operator)).toBe(0);
  // This process cannot look what is there.
  expect(await secretsThere(operator)).toBeGreaterThanOrEqual(NAMES.length);
  expect(await world.resourceVersions()).toEqual(before);
});

test('a real change afterwards writes to the one object that it is about', async () => {
  const before = await world.resourceVersions();
  await world.patchSpec('plain', { service: { port: 81 } });
  await eventually('the Service has the port', async () => {
    expect((await world.get('Service', 'plain')).spec.ports[0].port).toBe(81);
  });
  const after = await settled('all objects', () => world.resourceVersions());
  const changed = Object.keys(after).filter((name) => after[name] !== before[name]);
  expect(changed.sort()).toEqual(['RenderService/plain', 'Service/plain']);
});

describe('an object that mutating admission changes', () => {
  /** Values of the Deployment of a service where its policy changes them. */
  async function valuesOf(service: string): Promise<unknown[]> {
    return valuesAt(await world.deployment(service), Object.keys(MUTATIONS[service] ?? {}));
  }

  test.each([
    ['mirrored', 'True', 'Mutated', asTold(TOLD.mutated)],
    ['throttled', 'False', 'MutationHurts', asTold(TOLD.mutationHurts)],
  ])('stays so, and is told: %s', async (service, status, reason, told) => {
    expect(await valuesOf(service)).toEqual(Object.values(MUTATIONS[service] ?? {}));
    const message = expect.stringMatching(told);
    expect(await world.condition(service, 'ObjectsInSync')).toMatchObject({ status, reason, message });
    expect(await world.condition('plain', 'ObjectsInSync')).toBeUndefined();
  });

  test('is told in one Event where it hurts, by both processes together', async () => {
    const warnings = async (service: string) =>
      (await world.events(service)).filter(({ type }) => type === 'Warning').map(({ reason }) => reason);
    await eventually('the Event is there', async () => expect(await warnings('throttled')).toEqual(['MutationHurts']));
    expect(await warnings('mirrored')).toEqual([]);
  });

  test('becomes what admission makes of it again when somebody writes into it, by one repair', async () => {
    const repairs = () => operator.sum('corelane_operator_writes_total', ({ what }) => what === 'Deployment edited');
    const before = await repairs();
    const { metadata } = await world.deployment('mirrored');
    await world.kubectl.run('scale', `deployment/${metadata.name}`, '--replicas=7');
    await eventually('it is told', async () => {
      const { reason, message } = await world.condition('mirrored', 'ObjectsInSync');
      expect([reason, message]).toEqual([
        'TakenBack',
        `Deployment "${metadata.name}": "kubectl" has scaled it from 2 to 7; use kubectl scale renderservice mirrored --replicas=7 instead. Corelane has restored what the RenderService asks for`,
      ]);
    });
    await settled('all objects', () => world.resourceVersions());
    expect([await valuesOf('mirrored'), (await world.deployment('mirrored')).spec.replicas]).toEqual([
      [MIRROR, MIRROR],
      2,
    ]);
    expect((await repairs()) - before).toBe(1);
  });

  test('becomes what the plan asks for once the policy is gone and its note is taken away', async () => {
    await unmutate('mirrored');
    const places = Object.keys(MUTATIONS.mirrored ?? {});
    const plain = ['corelane.test/app:1', 'corelane.test/app:1'];
    await eventually('it is in force no more', async () => expect(await admitted('mirrored', places)).toEqual(plain));
    expect(await valuesOf('mirrored')).toEqual([MIRROR, MIRROR]);
    const { metadata } = await world.deployment('mirrored');
    await world.kubectl.run('annotate', `deployment/${metadata.name}`, 'corelane.dev/admitted-hash-');
    await eventually('it is as planned', async () => expect(await valuesOf('mirrored')).toEqual(plain));
    expect((await world.deployment('mirrored')).metadata.annotations).not.toHaveProperty([
      'corelane.dev/admitted-hash',
    ]);
  });
});

describe('a restart where the operator measures', () => {
  const ADDRESS = '127.54.7.1';
  /** Longer than the test takes: until they are full, what was told stays. */
  const thresholds = { scaleUp: { window: '30m' }, scaleDown: { window: '30m' } };
  const spec = {
    replicas: 1,
    scaling: { minReplicas: 1, maxReplicas: 4, occupancy: thresholds },
    objectives: { availability: 99.9, latency: { p99: '500ms' } },
  };
  const counts = `corelane_requests_total{code="2xx",reason=""} 999
corelane_requests_total{code="5xx",reason="queue-full"} 1
corelane_request_duration_seconds_bucket{le="0.5"} 980
corelane_request_duration_seconds_bucket{le="+Inf"} 1000
corelane_request_duration_seconds_count 1000
`;
  let pod: Server;
  let serial: string | undefined;

  beforeAll(async () => {
    pod = await serveAt(ADDRESS, (url) => {
      if (url === '/live') return `serial=${serial}\n`;
      if (url === '/corelane/metrics') return counts;
      if (!url.startsWith('/metrics?')) return undefined;
      return ['worker-0', 'worker-1']
        .map((name) => `haproxy_server_status{proxy="workers",server="${name}",state="UP"} 1\n`)
        .join('');
    });
  });

  afterAll(async () => {
    await OperatorProcess.killAll();
    pod.closeAllConnections();
    pod.close();
  });

  const statusOf = async () => (await world.get('RenderService', 'measured')).status;
  const samples = () => operator.sum('corelane_operator_pod_samples_total');

  test('leaves what the process before has told of scaling and objectives', async () => {
    await world.createRenderService('measured', spec);
    await world.untilApplied('measured');
    ({ serial } = await settingsOf(world, 'measured'));
    await addressPods(world, 'measured', [ADDRESS]);
    await eventually('all is told that can be', async () => {
      expect((await world.condition('measured', 'LiveSettingsApplied'))?.status).toBe('True');
      expect(await world.condition('measured', 'ScalingActive')).toBeDefined();
      expect((await statusOf()).queue).toBeDefined();
    });
    await settled('its status', statusOf);
    expect(await operator.stop()).toBe(0);

    // As a process that has looked for long enough leaves it.
    const { metadata, status } = await world.get('RenderService', 'measured');
    const measuring = { status: 'True', reason: 'Measuring', message: 'decides on busy slots' };
    const conditions = status.conditions.map((one: Json) =>
      one.type === 'ScalingActive' ? { ...one, ...measuring, observedGeneration: metadata.generation } : one,
    );
    await world.admin.patch(`${world.path('RenderService', 'measured')}/status`, {
      status: {
        conditions,
        scaling: { utilizationPercent: 40 },
        objectives: { seconds: 300, requests: 12_000, availabilityPercent: 99.95, latencyPercent: { p99: 99.5 } },
      },
    });
    const before = await world.get('RenderService', 'measured');

    operator = await world.startOperator('operator-2');
    // Its own counts say something after two rounds, its own readings after the first one.
    await eventually('it has asked the pod four times', async () => expect(await samples()).toBeGreaterThanOrEqual(4));
    expect(await world.get('RenderService', 'measured')).toEqual(before);
    const { done } = await operator.work();
    const touched = { metadata: { annotations: { touched: 'yes' } } };
    const { metadata: last } = await world.admin.patch(world.path('RenderService', 'measured'), touched);
    await eventually('it has looked at it', async () => {
      const { done: now, depth } = await operator.work();
      expect([now > done, depth]).toEqual([true, 0]);
    });
    const after = await world.get('RenderService', 'measured');
    expect([after.metadata.resourceVersion, after.status]).toEqual([last.resourceVersion, before.status]);
  });
});
