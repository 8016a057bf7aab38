/** Worlds in which pods are missing or do not run, and the row of docs/why-no-pods.md that each makes. */
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import type { Json } from '../support/api-client.ts';
import { repository } from '../support/api-server.ts';
import { eventually } from '../support/eventually.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import { podTemplate, sharedServer, World } from '../support/world.ts';

export const GOLDEN = join(repository, 'docs/why-no-pods.md');

export interface Bad {
  what: string;
  /** Of the RenderService. */
  spec?: object;
  /** Made before it; a path below /api or /apis, and what is posted there. */
  before?: (world: World) => Promise<unknown>;
  /** What a kubelet or the scheduler says of its pods. */
  pod?: object;
  /** What its port 8999 answers, by the beginning of the path. */
  pages?: Record<string, string>;
}

const waiting = (reason: string, message?: string, ended?: { exitCode: number; reason: string; message?: string }) => ({
  phase: 'Pending',
  conditions: [{ type: 'PodScheduled', status: 'True' }],
  containerStatuses: [
    {
      name: 'worker-0',
      image: 'x',
      imageID: '',
      ready: false,
      restartCount: 0,
      state: { waiting: { reason, message } },
      ...(ended && { lastState: { terminated: ended } }),
    },
  ],
});
const BACK_OFF = 'back-off 40s restarting failed container';
/** An init container that ends again and again, with these last words. */
const initEnds = (name: string, message: string) => {
  const ended = { exitCode: 1, reason: 'Error', message };
  const { containerStatuses, ...pod } = waiting('CrashLoopBackOff', BACK_OFF, ended);
  return { ...pod, initContainerStatuses: containerStatuses.map((status) => ({ ...status, name })) };
};
/** Of a pod that answers. */
const ADDRESS = '127.53.98.1';
const unschedulable = (message: string) => ({
  phase: 'Pending',
  conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }],
});

/** A rule of somebody else about pods of one namespace, or about what makes them. */
async function policy(world: World, kind: 'Pod' | 'ReplicaSet' = 'Pod'): Promise<void> {
  const root = '/apis/admissionregistration.k8s.io/v1';
  const name = `labels-${world.namespace}`;
  const [apiGroup, plural] = kind === 'Pod' ? ['', 'pods'] : ['apps', 'replicasets'];
  await world.admin.post(`${root}/validatingadmissionpolicies`, {
    metadata: { name },
    spec: {
      matchConstraints: {
        resourceRules: [{ apiGroups: [apiGroup], apiVersions: ['v1'], operations: ['CREATE'], resources: [plural] }],
      },
      validations: [
        { expression: "'team' in object.metadata.labels", message: `${plural} here carry the label "team"` },
      ],
    },
  });
  await world.admin.post(`${root}/validatingadmissionpolicybindings`, {
    metadata: { name },
    spec: {
      policyName: name,
      validationActions: ['Deny'],
      matchResources: { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': world.namespace } } },
    },
  });
  const { spec } = podTemplate();
  const labels = { app: 'probe' };
  const ofReplicaSet = { selector: { matchLabels: labels }, template: { metadata: { labels }, spec } };
  const probe = { metadata: { name: 'probe', labels }, spec: kind === 'Pod' ? spec : ofReplicaSet };
  await eventually('the rule is in force', async () => {
    await expect(world.admin.post(`${world.path(kind)}?dryRun=All`, probe)).rejects.toThrow('the label "team"');
  });
}

/** A quota that is in force. */
export async function quota(world: World, hard: Record<string, string>): Promise<void> {
  const path = `/api/v1/namespaces/${world.namespace}/resourcequotas`;
  await world.admin.post(path, { metadata: { name: 'small' }, spec: { hard } });
  // Its controller, which is not here, would count.
  const used = Object.fromEntries(Object.keys(hard).map((resource) => [resource, '0']));
  await world.admin.patch(`${path}/small/status`, { status: { hard, used } });
}

async function webhook(world: World): Promise<void> {
  await world.admin.post('/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations', {
    metadata: { name: `gone-${world.namespace}` },
    webhooks: [
      {
        name: 'gone.example.com',
        clientConfig: { url: 'https://127.0.0.1:1/' },
        namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': world.namespace } },
        rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
        sideEffects: 'None',
        admissionReviewVersions: ['v1'],
      },
    ],
  });
}

const podSecurity = (world: World) =>
  world.admin.patch(`/api/v1/namespaces/${world.namespace}`, {
    metadata: { labels: { 'pod-security.kubernetes.io/enforce': 'restricted' } },
  });
export const limitRange = (world: World, limit: object) =>
  world.admin.post(`/api/v1/namespaces/${world.namespace}/limitranges`, {
    metadata: { name: 'small' },
    spec: { limits: [{ type: 'Container', ...limit }] },
  });

const inPod = (fields: object) => ({ template: podTemplate({}, fields) });

export const WORLDS: Bad[] = [
  { what: 'a ResourceQuota that is used up', before: (world) => quota(world, { pods: '0' }) },
  { what: 'a namespace whose Pod Security is "restricted"', before: podSecurity },
  {
    what: 'a LimitRange',
    before: (world) => limitRange(world, { max: { memory: '100Mi' } }),
    spec: { template: podTemplate({ resources: { limits: { memory: '1Gi' } } }) },
  },
  { what: 'a LimitRange with a minimum', before: (world) => limitRange(world, { min: { cpu: '100m' } }) },
  {
    what: 'a ResourceQuota that wants limits of every container',
    before: (world) => quota(world, { 'limits.cpu': '10' }),
  },
  { what: 'an admission policy of somebody else', before: (world) => policy(world) },
  { what: 'the same about ReplicaSets', before: (world) => policy(world, 'ReplicaSet') },
  { what: 'a webhook of somebody else that is away', before: webhook },
  { what: 'a priority class that is not there', spec: inPod({ priorityClassName: 'gone' }) },
  { what: 'a runtime class that is not there', spec: inPod({ runtimeClassName: 'gone' }) },
  {
    what: 'too little CPU',
    pod: unschedulable(
      '0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 No preemption victims found for incoming pod.',
    ),
  },
  {
    what: 'no node with such a label',
    pod: unschedulable(
      "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 node(s) didn't match Pod's node affinity/selector. no new claims to deallocate, preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
    ),
  },
  {
    what: 'nodes with a taint',
    pod: unschedulable('0/3 nodes are available: 3 node(s) had untolerated taint(s).'),
  },
  { what: 'a claim that is not there', pod: unschedulable('persistentvolumeclaim "cache" not found') },
  {
    what: 'a claim without a volume',
    pod: unschedulable('0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims.'),
  },
  {
    what: 'an image that is not there',
    pod: waiting('ErrImagePull', 'failed to pull and unpack image "docker.io/example/app:1": not found'),
  },
  { what: 'the same, a while later', pod: waiting('ImagePullBackOff', 'Back-off pulling image "example/app:1"') },
  {
    what: 'an image without a name',
    pod: waiting('InvalidImageName', 'Failed to apply default image tag "App:1": couldn\'t parse image name'),
  },
  {
    what: 'an image that may not be pulled',
    pod: waiting('ErrImageNeverPull', 'Container image "app:1" is not present with pull policy of Never'),
  },
  { what: 'a Secret that is not there', pod: waiting('CreateContainerConfigError', 'secret "api" not found') },
  {
    what: 'a command that is not there',
    pod: waiting('RunContainerError', 'exec: "server": executable file not found in $PATH'),
  },
  {
    what: 'a command that is not there, a while later',
    pod: waiting('CrashLoopBackOff', BACK_OFF, {
      exitCode: 128,
      reason: 'StartError',
      message: 'exec: "server": executable file not found in $PATH',
    }),
  },
  {
    what: 'a program that ends at once',
    pod: {
      phase: 'Running',
      podIP: ADDRESS,
      podIPs: [{ ip: ADDRESS }],
      conditions: [{ type: 'PodScheduled', status: 'True' }],
    },
    pages: {
      '/metrics': 'haproxy_server_status{proxy="workers",server="worker-0",state="UP"} 0\n',
      '/workers/0/metrics':
        'corelane_worker_up 0\ncorelane_worker_crash_looping 1\ncorelane_worker_last_exit_code 1\ncorelane_worker_backoff_seconds 10\n',
    },
  },
  {
    what: 'the same without the worker runtime',
    pod: waiting('CrashLoopBackOff', BACK_OFF, { exitCode: 1, reason: 'Error' }),
  },
  {
    what: 'a program that needs more memory than its limit',
    pod: waiting('CrashLoopBackOff', BACK_OFF, { exitCode: 137, reason: 'OOMKilled' }),
  },
  {
    what: 'assets that the image has not got',
    spec: { assets: [{ path: '/a/', from: '/nowhere' }] },
    pod: initEnds(
      'corelane-assets',
      'assets: from "/nowhere" is no folder of the image. docs/assets.md tells how to look\n',
    ),
  },
  {
    what: 'a volume that does not mount',
    pod: {
      ...waiting('ContainerCreating'),
      conditions: [
        { type: 'PodScheduled', status: 'True', lastTransitionTime: '2026-01-01T00:00:00Z' },
        { type: 'PodReadyToStartContainers', status: 'False' },
      ],
    },
  },
];

let stats: Server | undefined;

/** Ends the operator, and the pages of a pod. */
export async function endWorld(): Promise<void> {
  await OperatorProcess.killAll();
  stats?.close();
  stats = undefined;
}

async function answer(pages: Record<string, string>): Promise<void> {
  stats = createServer(({ url = '' }, response) => {
    const path = Object.keys(pages).find((one) => url.startsWith(one));
    response.writeHead(path === undefined ? 404 : 200).end(path && pages[path]);
  });
  await new Promise<void>((resolve) => stats?.listen(8999, ADDRESS, resolve));
}

async function message(world: World): Promise<string> {
  return eventually('Ready has a reason', async () => {
    const { Ready, Stalled } = Object.fromEntries(
      ((await world.get('RenderService', 'shop')).status?.conditions ?? []).map((one: Json) => [one.type, one]),
    );
    expect(Ready).toMatchObject({ status: 'False', reason: 'PodsNotReady', message: expect.stringContaining('; ') });
    expect(Stalled.message).toBe('the operator has done its part; Ready tells what the pods lack');
    return Ready.message as string;
  });
}

/** Without what is another one each time. A pod has its name from its revision and its ReplicaSet. */
function stable(text: string): string {
  return text
    .replace(/^.*? exist; /, '')
    .replaceAll(/shop-[0-9a-f]{10}-[0-9a-f]{6,10}(?:-(?:[a-z0-9]{5})?)?/g, 'shop-...')
    .replaceAll(/-why-no-pods-[0-9]+/g, '')
    .replaceAll(/dial tcp [0-9.:]+: /g, '')
    .replaceAll('|', '\\|');
}

/** Makes a world in a namespace, and gives its row. */
export async function rowOf({ what, spec, before, pod, pages }: Bad, namespace: string): Promise<string> {
  const world = await World.create(sharedServer(), namespace);
  await before?.(world);
  if (pages) await answer(pages);
  await world.startOperator();
  await world.createRenderService('shop', { replicas: 1, ...spec });
  if (pod) {
    const name = await eventually('a pod', async () => {
      const [found] = await world.list('Pod');
      expect(found).toBeDefined();
      return found?.metadata.name as string;
    });
    await world.admin.patch(`${world.path('Pod', name)}/status`, { status: pod });
  }
  return `| ${what} | ${stable(await message(world))} |`;
}
