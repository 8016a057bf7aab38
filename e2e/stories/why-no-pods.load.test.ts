/**
 * Why there are no pods, in the words of the real scheduler, kubelet and controllers. docs/why-no-pods.md, which a test
 * without any of them makes, has the same reasons and ways out. All worlds are there from the beginning, so the slowest
 * one says how long this takes: a volume that does not mount is told after a minute.
 *
 * A load test: the slowest reason takes more than a minute.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { apply, eventually, get, kubectl, SELDOM_MS } from '../harness/cluster/cluster.ts';
import { imageNames, installOperator } from '../harness/cluster/operator.ts';
import type { LiveRenderService } from '../harness/cluster/renderservice.ts';
import { ROOT } from '../harness/cluster/shell.ts';

const NAMESPACE = 'why-no-pods';
/** Namespaces whose rules refuse every pod. */
const REFUSING = { quota: `${NAMESPACE}-quota`, security: `${NAMESPACE}-security`, range: `${NAMESPACE}-range` };
const NAMESPACES = [NAMESPACE, ...Object.values(REFUSING)];

interface Bad {
  /** As docs/why-no-pods.md calls it. */
  what: string;
  name: string;
  namespace?: string;
  /** Of the worker. */
  container?: object;
  /** Of the pod. */
  pod?: object;
  /** Of the RenderService. */
  spec?: object;
  /** The reason, as it is said here. */
  says: RegExp;
}

const withoutRuntime = { runtime: { instrument: false } };
const volume = (source: object) => ({ volumes: [{ name: 'data', ...source }] });
const claim = (claimName: string) => volume({ persistentVolumeClaim: { claimName } });
const NODES = String.raw`pod \S+ cannot be scheduled: 0/3 nodes are available: .*`;

const WORLDS: Bad[] = [
  {
    what: 'a ResourceQuota that is used up',
    name: 'quota',
    namespace: REFUSING.quota,
    says: /pods cannot be made: pods "quota-\S+" is forbidden: exceeded quota: small, requested: pods=1/,
  },
  {
    what: 'a namespace whose Pod Security is "restricted"',
    name: 'security',
    namespace: REFUSING.security,
    says: /pods cannot be made: pods "security-\S+" is forbidden: violates PodSecurity "restricted:latest"/,
  },
  {
    what: 'a LimitRange',
    name: 'range',
    namespace: REFUSING.range,
    says: /pods cannot be made: pods "range-\S+" is forbidden: .*maximum memory usage per Container is 100Mi/,
  },
  {
    what: 'too little CPU',
    name: 'cpu',
    container: { resources: { requests: { cpu: '1000' } } },
    says: new RegExp(`${NODES}Insufficient cpu`),
  },
  {
    what: 'no node with such a label',
    name: 'label',
    pod: { nodeSelector: { 'example.com/there': 'never' } },
    says: new RegExp(`${NODES}didn't match Pod's node affinity/selector`),
  },
  {
    what: 'a claim that is not there',
    name: 'claim',
    pod: claim('gone'),
    says: /persistentvolumeclaim "gone" not found/,
  },
  {
    what: 'a claim without a volume',
    name: 'unbound',
    pod: claim('unbound'),
    says: /pod has unbound immediate PersistentVolumeClaims/,
  },
  {
    what: 'an image that is not there',
    name: 'image',
    container: { image: 'registry.invalid/app:1' },
    says: /container worker-0 of pod image-\S+: (ErrImagePull|ImagePullBackOff) \(.*registry\.invalid\/app:1/,
  },
  {
    what: 'an image without a name',
    name: 'name',
    container: { image: 'App:1' },
    says: /container worker-0 of pod name-\S+: InvalidImageName \(.*App:1/,
  },
  {
    what: 'an image that may not be pulled',
    name: 'never',
    container: { image: 'corelane.test/app:1', imagePullPolicy: 'Never' },
    says: /container worker-0 of pod never-\S+: ErrImageNeverPull \(.*corelane\.test\/app:1/,
  },
  {
    what: 'a Secret that is not there',
    name: 'secret',
    container: { envFrom: [{ secretRef: { name: 'gone' } }] },
    says: /container worker-0 of pod secret-\S+: CreateContainerConfigError \(secret "gone" not found\)/,
  },
  {
    what: 'a command that is not there, a while later',
    name: 'command',
    container: { command: ['/gone'] },
    says: /container worker-0 of pod command-\S+: (RunContainerError|CrashLoopBackOff) \(.*"\/gone": .*no such file or directory/,
  },
  {
    what: 'a program that ends at once',
    name: 'ends',
    container: { command: ['node', '/gone.mjs'] },
    says: /worker-0 of pod ends-\S+ restarts in a loop: exit code 1, \d+ s between two tries/,
  },
  {
    what: 'the same without the worker runtime',
    name: 'ends-bare',
    container: { command: ['node', '-e', 'process.exit(3)'] },
    spec: withoutRuntime,
    says: /container worker-0 of pod ends-bare-\S+: CrashLoopBackOff \(Error, exit code 3\)/,
  },
  {
    what: 'a program that needs more memory than its limit',
    name: 'memory',
    container: {
      command: ['node', '-e', 'const kept = []; for (;;) kept.push(Buffer.alloc(4 * 1024 ** 2, 1))'],
      resources: { requests: { cpu: '5m', memory: '64Mi' }, limits: { memory: '64Mi' } },
    },
    spec: withoutRuntime,
    says: /container worker-0 of pod memory-\S+: CrashLoopBackOff \(OOMKilled, exit code 137\)/,
  },
  {
    what: 'assets that the image has not got',
    name: 'assets',
    spec: { assets: [{ path: '/a/', from: '/nowhere' }] },
    says: /container corelane-assets of pod assets-\S+: CrashLoopBackOff \(Error, exit code 1\): "assets: from "\/nowhere" is no folder/,
  },
  {
    what: 'a volume that does not mount',
    name: 'volume',
    container: { volumeMounts: [{ name: 'data', mountPath: '/data' }] },
    pod: volume({ configMap: { name: 'gone' } }),
    says: /pod volume-\S+ has a node, which does not get it ready/,
  },
];

/** What docs/why-no-pods.md tells to do about it, after the reason. */
function wayOut({ what, name }: Bad): string {
  const page = readFileSync(join(ROOT, 'docs/why-no-pods.md'), 'utf8');
  const row = page.split('\n').find((line) => line.startsWith(`| ${what} | `));
  const [, text] =
    /(?:Way out: |\): |, which does not get it ready: )(.*) \|$|(\(kubectl [^)]*\)) \|$/
      .exec(row ?? '')
      ?.filter(Boolean) ?? [];
  if (text === undefined) throw new Error(`docs/why-no-pods.md has no way out of: ${what}`);
  return text.replaceAll('shop-...', `${name}-...`);
}

function renderService({ name, namespace = NAMESPACE, container, pod, spec }: Bad): object {
  const worker = {
    name: 'worker',
    image: imageNames().storefront,
    resources: { requests: { cpu: '5m', memory: '32Mi' } },
    ...container,
  };
  const proxy = { cpu: '5m', memory: '32Mi' };
  return {
    apiVersion: 'corelane.dev/v1alpha1',
    kind: 'RenderService',
    metadata: { name, namespace },
    spec: {
      replicas: 1,
      workersPerPod: 1,
      sidecar: { nginx: proxy, haproxy: proxy },
      template: { spec: { containers: [worker], ...pod } },
      ...spec,
    },
  };
}

/** Rules that refuse pods, and a claim that nobody will ever bind. */
function surroundings(): object[] {
  const labels = { 'pod-security.kubernetes.io/enforce': 'restricted' };
  const limits = [{ type: 'Container', max: { memory: '100Mi' } }];
  const resources = { requests: { storage: '1Mi' } };
  return [
    ...NAMESPACES.map((name) => ({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name, ...(name === REFUSING.security && { labels }) },
    })),
    {
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: { name: 'small', namespace: REFUSING.quota },
      spec: { hard: { pods: '0' } },
    },
    { apiVersion: 'v1', kind: 'LimitRange', metadata: { name: 'small', namespace: REFUSING.range }, spec: { limits } },
    {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'unbound', namespace: NAMESPACE },
      spec: { accessModes: ['ReadWriteOnce'], storageClassName: 'gone', resources },
    },
  ];
}

const list = (items: object[]) => JSON.stringify({ apiVersion: 'v1', kind: 'List', items });

beforeAll(async () => {
  await installOperator();
  await kubectl(['delete', 'namespace', ...NAMESPACES, '--ignore-not-found'], { timeoutMs: 240_000 });
  await apply(list(surroundings()));
  await apply(list(WORLDS.map(renderService)));
}, 400_000);

afterAll(async () => {
  await kubectl(['delete', 'namespace', ...NAMESPACES, '--wait=false', '--ignore-not-found']);
});

test.each(WORLDS)('$what', async (world) => {
  const { name, namespace = NAMESPACE, says } = world;
  let message = '';
  const check = async () => {
    const { status } = await get<LiveRenderService>('-n', namespace, 'renderservice', name);
    const ready = status?.conditions?.find(({ type }) => type === 'Ready');
    message = (ready?.message ?? '').replaceAll(
      new RegExp(`\\b${name}-[0-9a-f]{10}-[0-9a-f]{6,10}-(?:[a-z0-9]{5})?`, 'g'),
      `${name}-...`,
    );
    return ready?.status === 'False' && says.test(message) ? true : undefined;
  };
  // The failure says what Ready has told instead.
  await eventually('Ready to tell', 120_000, check, SELDOM_MS).catch(() => {});
  expect(message).toMatch(says);
  expect(message).toContain(wayOut(world));
});
