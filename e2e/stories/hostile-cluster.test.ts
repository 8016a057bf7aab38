/**
 * A namespace as platform teams lock it down, with everything in force at once: Pod Security "restricted", a
 * LimitRange, a ResourceQuota, policies about users, labels, images, tokens and service links, policies that change
 * pods and Deployments, and a NetworkPolicy that denies everything. The storefront example is applied unchanged. Its
 * condition Ready names each demand that it does not meet, one after the other; the test changes the field that it
 * names. Then ObjectsInSync names the limits that the LimitRange has given to the pods.
 *
 * Policies belong to the whole cluster. These are bound to this namespace, and have a label by which they are removed.
 * rollout.test.ts has the drain of a pod whose mesh refuses kubelet's requests.
 */
import { apply, eventually, get, kubectl, SELDOM_MS } from '../harness/cluster/cluster.ts';
import { imageNames, installOperator } from '../harness/cluster/operator.ts';
import { example, type LiveRenderService, podsOf, untilAllWorkersUp } from '../harness/cluster/renderservice.ts';

const NAMESPACE = 'hostile-cluster';
const NAME = 'storefront';
const TEAM = { team: 'shop' };
/** Label by which the policies are found again. */
const OF_STORY = 'example.com/story';
/** Users as OpenShift assigns them to a namespace. */
const USERS = { first: 1_000_920_000, last: 1_000_929_999 };
const REVISION_HISTORY = 1;

const IN_NAMESPACE = { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': NAMESPACE } } };

/** A rule about objects that are written. */
const about = (apiGroup: string, ...resources: string[]) => ({
  ...{ apiGroups: [apiGroup], apiVersions: ['v1'], resources },
  operations: ['CREATE', 'UPDATE'],
});
const PODS = [about('', 'pods')];
const DEPLOYMENTS = [about('apps', 'deployments')];
const LABELLED = [
  about('', 'configmaps', 'pods', 'secrets', 'services'),
  about('apps', 'deployments', 'replicasets'),
  about('networking.k8s.io', 'networkpolicies'),
  about('policy', 'poddisruptionbudgets'),
];
const CONTAINERS = 'object.spec.containers + object.spec.?initContainers.orValue([])';

/** A policy and its binding to the namespace. */
function policy(kind: 'Validating' | 'Mutating', what: string, spec: object, binding: object = {}): object[] {
  const apiVersion = 'admissionregistration.k8s.io/v1';
  const metadata = { name: `${NAMESPACE}-${what}`, labels: { [OF_STORY]: NAMESPACE } };
  return [
    { apiVersion, kind: `${kind}AdmissionPolicy`, metadata, spec },
    {
      ...{ apiVersion, kind: `${kind}AdmissionPolicyBinding`, metadata },
      spec: { policyName: metadata.name, matchResources: IN_NAMESPACE, ...binding },
    },
  ];
}

function demand(what: string, resourceRules: object[], expression: string, message: string, others = {}): object[] {
  const spec = { matchConstraints: { resourceRules }, validations: [{ expression, message }], ...others };
  return policy('Validating', what, spec, { validationActions: ['Deny'] });
}

function mutation(what: string, resourceRules: object[], values: Record<string, number>, others = {}): object[] {
  const patches = Object.entries(values).map(
    ([path, value]) => `JSONPatch{op: "add", path: "${path}", value: ${value}}`,
  );
  return policy('Mutating', what, {
    ...{ matchConstraints: { resourceRules }, reinvocationPolicy: 'Never' },
    mutations: [{ patchType: 'JSONPatch', jsonPatch: { expression: `[${patches.join(', ')}]` } }],
    ...others,
  });
}

const POLICIES = [
  ...demand(
    'labels',
    LABELLED,
    "'team' in object.metadata.?labels.orValue({})",
    'each object here has the label "team"',
    // Kubernetes itself writes it into each namespace.
    { matchConditions: [{ name: 'own', expression: "object.metadata.?name.orValue('') != 'kube-root-ca.crt'" }] },
  ),
  ...demand(
    'users',
    PODS,
    `variables.users.all(u, u >= ${USERS.first} && u <= ${USERS.last})`,
    `users here are ${USERS.first} to ${USERS.last}`,
    {
      variables: [
        { name: 'ofPod', expression: 'object.spec.?securityContext.?runAsUser.orValue(0)' },
        {
          name: 'users',
          expression: `(${CONTAINERS}).map(c, c.?securityContext.?runAsUser.orValue(variables.ofPod))`,
        },
      ],
    },
  ),
  ...demand(
    'images',
    PODS,
    `(${CONTAINERS}).all(c, c.image.startsWith('corelane.local/'))`,
    'images here are those of corelane.local',
  ),
  ...demand(
    'tokens',
    PODS,
    `(${CONTAINERS}).filter(c, c.name in ['nginx', 'haproxy'] || c.name.startsWith('corelane-'))
      .all(c, c.?volumeMounts.orValue([]).all(m, !(m.name in variables.tokens)))`,
    'proxies here mount no token',
    {
      variables: [
        {
          name: 'tokens',
          expression: `object.spec.?volumes.orValue([])
            .filter(v, v.?projected.?sources.orValue([]).exists(s, has(s.serviceAccountToken))).map(v, v.name)`,
        },
      ],
    },
  ),
  ...demand(
    'links',
    PODS,
    'object.spec.?enableServiceLinks.orValue(true) == false',
    'pods here get no variables of other Services',
  ),
  // As OpenShift's restricted-v2 does where the pod names no user.
  ...mutation(
    'assigned-users',
    PODS,
    { '/spec/securityContext/runAsUser': USERS.first, '/spec/securityContext/fsGroup': USERS.first },
    {
      matchConditions: [
        { name: 'names-none', expression: '!object.spec.?securityContext.?runAsUser.hasValue()' },
        { name: 'is-new', expression: "request.operation == 'CREATE'" },
      ],
    },
  ),
  ...mutation('history', DEPLOYMENTS, { '/spec/revisionHistoryLimit': REVISION_HISTORY }),
];

const metadata = { name: 'team', namespace: NAMESPACE, labels: TEAM };
/** What all pods of the storefront may have as CPU limits. */
const CPU_QUOTA = {
  // A pod has 2 CPUs as its limit: four containers with the default of the LimitRange.
  onePod: '3',
  // One with a whole CPU for each container, beside the one before.
  withoutThrottling: '6',
};
/** Limits, a quota and a NetworkPolicy, which are in the namespace before the example. */
const SURROUNDINGS = [
  {
    ...{ apiVersion: 'v1', kind: 'LimitRange', metadata },
    spec: {
      limits: [
        {
          type: 'Container',
          min: { cpu: '100m', memory: '32Mi' },
          max: { cpu: '2', memory: '1Gi' },
          defaultRequest: { cpu: '100m', memory: '64Mi' },
          default: { cpu: '500m', memory: '512Mi' },
          maxLimitRequestRatio: { cpu: '10' },
        },
      ],
    },
  },
  {
    ...{ apiVersion: 'v1', kind: 'ResourceQuota', metadata },
    spec: {
      hard: {
        ...{ 'requests.cpu': '2', 'requests.memory': '4Gi' },
        ...{ 'limits.cpu': CPU_QUOTA.onePod, 'limits.memory': '4Gi' },
      },
    },
  },
  {
    ...{ apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', metadata },
    spec: { podSelector: {}, policyTypes: ['Ingress', 'Egress'] },
  },
];

const list = (items: object[]) => JSON.stringify({ apiVersion: 'v1', kind: 'List', items });

/** A pod that keeps to all rules of the namespace; `labels`, `spec` and `container` can break one. */
function probe({
  labels = TEAM,
  spec = {},
  container = {},
}: {
  labels?: object;
  spec?: object;
  container?: object;
} = {}) {
  const restricted = {
    ...{ allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
    ...{ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
  };
  const containers = [{ name: 'a', image: imageNames().storefront, securityContext: restricted, ...container }];
  return {
    ...{ apiVersion: 'v1', kind: 'Pod' },
    metadata: { name: 'probe', namespace: NAMESPACE, labels },
    spec: { containers, enableServiceLinks: false, ...spec },
  };
}

/** The object as it would be created. @throws Error with what the API server says if it would be refused */
async function tried<T>(object: object): Promise<T> {
  const input = JSON.stringify(object);
  return JSON.parse(await kubectl(['create', '--dry-run=server', '-o', 'json', '-f', '-'], { input })) as T;
}

/** The API server takes a moment to compile a policy, and the quota's controller one to count. */
async function untilInForce(): Promise<void> {
  const bad = {
    labels: probe({ labels: {} }),
    users: probe({ spec: { securityContext: { runAsUser: 1000 } } }),
    images: probe({ container: { image: 'registry.invalid/a:1' } }),
    tokens: probe({ container: { name: 'nginx' } }),
    links: probe({ spec: { enableServiceLinks: true } }),
  };
  for (const [what, object] of Object.entries(bad)) {
    await eventually(`the policy about ${what} to be in force`, 60_000, async () => {
      const answer = await tried(object).then(() => 'it was accepted', String);
      if (!answer.includes(`ValidatingAdmissionPolicy '${NAMESPACE}-${what}'`)) throw new Error(answer);
      return true;
    });
  }
  await eventually('pods to get their user', 60_000, async () => {
    const { spec } = await tried<{ spec: { securityContext: { runAsUser?: number } } }>(probe());
    return spec.securityContext.runAsUser === USERS.first || undefined;
  });
  const matchLabels = { app: 'probe' };
  const template = { metadata: { labels: matchLabels }, spec: probe().spec };
  const deployment = {
    ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: probe().metadata },
    spec: { selector: { matchLabels }, template },
  };
  await eventually('Deployments to be changed', 60_000, async () => {
    const { spec } = await tried<{ spec: { revisionHistoryLimit: number } }>(deployment);
    return spec.revisionHistoryLimit === REVISION_HISTORY || undefined;
  });
}

const KINDS = ['validating', 'mutating'].flatMap((kind) => [
  `${kind}admissionpolicies`,
  `${kind}admissionpolicybindings`,
]);

/** Removes the policies of this run, or of one that was killed. */
async function removePolicies(): Promise<void> {
  await kubectl(['delete', KINDS.join(','), '-l', `${OF_STORY}=${NAMESPACE}`, '--ignore-not-found']);
}

beforeAll(async () => {
  await installOperator();
  await removePolicies();
  await kubectl(['delete', 'namespace', NAMESPACE, '--ignore-not-found'], { timeoutMs: 180_000 });
  const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' };
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE, labels } };
  await apply(list([namespace, ...POLICIES, ...SURROUNDINGS]));
  await untilInForce();
  await apply(example('storefront.yaml').replaceAll(/\bshop\b/g, NAMESPACE));
}, 400_000);

afterAll(async () => {
  const namespace = kubectl(['delete', 'namespace', NAMESPACE, '--wait=false', '--ignore-not-found']);
  await Promise.all([removePolicies(), namespace]);
});

/** Waits until a condition says this. */
async function untilSays(wanted: 'Ready' | 'ObjectsInSync', words: RegExp): Promise<void> {
  let message = '';
  const check = async () => {
    const { status } = await get<LiveRenderService>('-n', NAMESPACE, 'renderservice', NAME);
    message = status?.conditions?.find(({ type }) => type === wanted)?.message ?? '';
    return words.test(message) || undefined;
  };
  // The failure says what it has told instead.
  await eventually(`${wanted} to tell`, 120_000, check, SELDOM_MS).catch(() => {});
  expect(message).toMatch(words);
}

async function patchRenderService(change: object): Promise<void> {
  const patch = `--patch=${JSON.stringify(change)}`;
  await kubectl(['-n', NAMESPACE, 'patch', 'renderservice', NAME, '--type=merge', patch]);
}

/** The worker of the example with a CPU limit of its own: a merge patch has lists as a whole. */
async function workersWithLimit(cpu: string): Promise<object[]> {
  type Template = { spec: { template: { spec: { containers: { resources: { limits: object } }[] } } } };
  const { spec } = await get<Template>('-n', NAMESPACE, 'renderservice', NAME);
  return spec.template.spec.containers.map((worker) => ({
    ...worker,
    resources: { ...worker.resources, limits: { ...worker.resources.limits, cpu } },
  }));
}

/** In the order in which the API server refuses what is made of the example. */
const DEMANDS: { what: string; says: RegExp; change: object }[] = [
  {
    what: 'labels of all objects',
    says: /^the API server refuses \w+ "storefront\S*": .* has the label "team"\. Way out: .*metadata\.labels/,
    change: { metadata: { labels: TEAM } },
  },
  {
    what: 'labels of ReplicaSets and pods',
    says: /; pods cannot be made: .*replicasets\.apps .* has the label "team"\. Way out: .*change the template as it asks/,
    change: { spec: { template: { metadata: { labels: TEAM } } } },
  },
  {
    what: 'a minimum of CPU',
    says: /; pods cannot be made: .*100m, but request is 50m.*: set spec\.sidecar\.haproxy\.cpu and spec\.sidecar\.nginx\.cpu to at least 100m/,
    change: { spec: { sidecar: { haproxy: { cpu: '100m' }, nginx: { cpu: '100m' } } } },
  },
  {
    what: 'a quota that has room for one pod',
    says: /; pods cannot be made: .*exceeded quota: team, .*Way out: raise that ResourceQuota, or lower one of spec\.replicas, /,
    change: { spec: { replicas: 1 } },
  },
];

describe('the storefront example in a hostile cluster', () => {
  test.each(DEMANDS)('says in one sentence what to change: $what', async ({ says, change }) => {
    await untilSays('Ready', says);
    await patchRenderService(change);
  });

  test('is Ready then, with all workers, which the operator reads from its pod', async () => {
    const { status } = await untilAllWorkersUp(NAMESPACE, NAME);
    expect(status).toMatchObject({ replicas: 1, readyReplicas: 1, workers: { total: 2, ready: 2 } });
  });

  test('serves pages', async () => {
    expect(await kubectl(['get', '--raw', `${await podPath()}:9000/proxy/`])).toMatch(/<!DOCTYPE html>/i);
  });

  test('runs as the user that the namespace assigns', async () => {
    const name = (await podPath()).split('/').at(-1) as string;
    const userOf = (container: string) => kubectl(['-n', NAMESPACE, 'exec', name, '-c', container, '--', 'id', '-u']);
    expect([await userOf('nginx'), await userOf('haproxy'), await userOf('worker-0')]).toEqual(
      Array(3).fill(`${USERS.first}\n`),
    );
  });

  test('says which limits of the LimitRange throttle its pods, and the fields to set', async () => {
    await untilSays(
      'ObjectsInSync',
      /that hurts: pods: the cpu limit of haproxy is 500m, .*the cpu limit of nginx is 500m, .*the cpu limit of the workers is 500m, .*set spec\.sidecar\.haproxy\.cpuLimit to 1, spec\.sidecar\.nginx\.cpuLimit to 1, resources\.limits\.cpu of the worker in spec\.template to 1/,
    );
    const hard = JSON.stringify({ spec: { hard: { 'limits.cpu': CPU_QUOTA.withoutThrottling } } });
    await kubectl(['-n', NAMESPACE, 'patch', 'resourcequota', metadata.name, '--type=merge', `--patch=${hard}`]);
    const proxy = { cpuLimit: '1' };
    const template = { spec: { containers: await workersWithLimit('1') } };
    await patchRenderService({ spec: { sidecar: { haproxy: proxy, nginx: proxy }, template } });
  });

  test('leaves what admission has changed otherwise, and tells it', async () => {
    await eventually('a pod with these limits to be ready', 120_000, async () => (await withLimits('1')) || undefined);
    await untilSays(
      'ObjectsInSync',
      /^mutating admission changes .* Deployment "storefront-\S+": spec\.revisionHistoryLimit/,
    );
    const { status } = await get<LiveRenderService>('-n', NAMESPACE, 'renderservice', NAME);
    const told = status?.conditions?.find(({ type }) => type === 'ObjectsInSync');
    expect([told?.status, told?.reason]).toEqual(['True', 'Mutated']);
  });
});

/** Whether a pod is ready in which every container of a request has this CPU limit. */
async function withLimits(cpu: string): Promise<boolean> {
  interface Limited {
    spec: Record<'initContainers' | 'containers', { name: string; resources: { limits?: { cpu?: string } } }[]>;
    status?: { conditions?: { type: string; status: string }[] };
  }
  const selector = `corelane.dev/renderservice=${NAME}`;
  const { items } = await get<{ items: Limited[] }>('-n', NAMESPACE, 'pods', '-l', selector);
  return items.some(({ spec, status }) => {
    const all = [...spec.initContainers, ...spec.containers].filter(({ name }) => !name.startsWith('corelane-'));
    const isReady = status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True');
    return isReady && all.every(({ resources }) => resources.limits?.cpu === cpu);
  });
}

/** Path of the pod in the API, without what follows its name. */
async function podPath(): Promise<string> {
  const pods = (await podsOf(NAMESPACE, NAME)).filter(({ metadata }) => !metadata.deletionTimestamp);
  return `/api/v1/namespaces/${NAMESPACE}/pods/${pods[0]?.metadata.name}`;
}
