/**
 * What pods get from their namespace, as the real admission plugin decides it: an account, its token, its pull
 * secrets; and a user, where a policy decides on that. On an API server of its own: in the others the plugin is off.
 */
import type { Json } from '../support/api-client.ts';
import { ApiServer } from '../support/api-server.ts';
import { eventually } from '../support/eventually.ts';
import { CONTROLLERS } from '../support/global-setup.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import { podTemplate, World } from '../support/world.ts';

const ACCOUNT = 'powerful';
const TOKEN_PATH = '/var/run/secrets/kubernetes.io/serviceaccount';

let server: ApiServer;
let world: World;

beforeAll(async () => {
  server = await ApiServer.start('tokens', { controllers: CONTROLLERS, serviceAccounts: true });
  world = await World.create(server, 'tokens');
  // The controller that makes it is not here.
  await world.admin.post(world.path('ServiceAccount'), {
    metadata: { name: 'default' },
    imagePullSecrets: [{ name: 'registry' }],
  });
  await world.startOperator();
});

afterAll(async () => {
  await OperatorProcess.killAll();
  await server?.remove();
});

/** The pod of a RenderService with one. */
async function podOf(name: string): Promise<Json> {
  return await eventually('the pod exists', async () => {
    const all = await world.list('Pod');
    const pods = all.filter(({ metadata }) => metadata.labels['corelane.dev/renderservice'] === name);
    expect(pods).toHaveLength(1);
    return pods[0] as Json;
  });
}

const TOKEN = { projected: expect.objectContaining({ sources: expect.any(Array) }) };
const NOTHING = { emptyDir: {} };

/** Volume that a container has where tokens are, by the name of the container. */
function atTokenPath({ spec }: Json): Record<string, Json> {
  const containers: Json[] = [...spec.initContainers, ...spec.containers];
  const mounted = (container: Json) =>
    container.volumeMounts?.find(({ mountPath }: Json) => mountPath === TOKEN_PATH)?.name;
  return Object.fromEntries(
    containers.map((container) => [
      container.name,
      spec.volumes.find(({ name }: Json) => name === mounted(container)) ?? {},
    ]),
  );
}

test('only the containers of the user get the token of the account that the template names', async () => {
  await world.admin.post(world.path('ServiceAccount'), {
    metadata: { name: ACCOUNT },
    automountServiceAccountToken: true,
  });
  const template = {
    spec: {
      serviceAccountName: ACCOUNT,
      initContainers: [{ name: 'prepare', image: 'corelane.test/prepare:1' }],
      containers: [
        { name: 'worker', image: 'corelane.test/app:1' },
        { name: 'audit', image: 'corelane.test/audit:1' },
      ],
    },
  };
  await world.createRenderService('named', { replicas: 1, workersPerPod: 2, template });
  const pod = await podOf('named');
  expect(pod.spec.serviceAccountName).toBe(ACCOUNT);
  expect(atTokenPath(pod)).toMatchObject({
    prepare: TOKEN,
    'corelane-runtime': NOTHING,
    haproxy: NOTHING,
    nginx: NOTHING,
    'worker-0': TOKEN,
    'worker-1': TOKEN,
    audit: TOKEN,
  });
});

test('a template that names no account gets what a Deployment would: that of the namespace, its pull secrets, its token', async () => {
  await world.createRenderService('plain', { replicas: 1, workersPerPod: 1 });
  const pod = await podOf('plain');
  expect(pod.spec).toMatchObject({ serviceAccountName: 'default', imagePullSecrets: [{ name: 'registry' }] });
  expect(atTokenPath(pod)).toMatchObject({
    'corelane-runtime': NOTHING,
    haproxy: NOTHING,
    nginx: NOTHING,
    'worker-0': TOKEN,
  });
  expect(await world.find('ServiceAccount', 'plain')).toBeUndefined();
});

test('nobody gets a token where the template says so', async () => {
  const template = podTemplate({}, { automountServiceAccountToken: false });
  await world.createRenderService('without', { replicas: 1, workersPerPod: 1, template });
  const { spec } = await podOf('without');
  expect(spec.serviceAccountName).toBe('default');
  expect(spec.volumes.filter(({ projected }: Json) => projected)).toEqual([]);
});

describe('a namespace that assigns users, and takes no others', () => {
  const [FIRST, LAST] = [1_000_920_000, 1_000_929_999];
  const CONTEXT = '?securityContext';
  const isAssigned = (of: string) =>
    [`>= ${FIRST}`, `<= ${LAST}`].map((bound) => `${of}.${CONTEXT}.?runAsUser.orValue(${FIRST}) ${bound}`).join(' && ');

  /** As OpenShift's restricted-v2 does; what it would fill in is nobody's business here. */
  beforeAll(async () => {
    const root = '/apis/admissionregistration.k8s.io/v1';
    const name = 'restricted';
    const label = "object.metadata.labels['corelane.dev/renderservice']";
    await world.admin.post(`${root}/validatingadmissionpolicies`, {
      metadata: { name },
      spec: {
        matchConstraints: {
          resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }],
        },
        matchConditions: [{ name: 'of-this-test', expression: `${label}.startsWith('assigned')` }],
        variables: [
          { name: 'containers', expression: 'object.spec.containers + object.spec.?initContainers.orValue([])' },
        ],
        validations: [
          {
            expression: `variables.containers.all(c, ${isAssigned('c')}) && ${isAssigned('object.spec')}`,
            message: 'runAsUser is not of the range',
          },
          {
            expression: `variables.containers.all(c, !c.${CONTEXT}.?allowPrivilegeEscalation.orValue(false) && !c.${CONTEXT}.?privileged.orValue(false) && c.${CONTEXT}.?capabilities.?add.orValue([]).size() == 0 && c.${CONTEXT}.?seccompProfile.?type.orValue('RuntimeDefault') == 'RuntimeDefault')`,
            message: 'powers of a container',
          },
          {
            expression:
              'object.spec.volumes.all(v, has(v.configMap) || has(v.csi) || has(v.downwardAPI) || has(v.emptyDir) || has(v.ephemeral) || has(v.persistentVolumeClaim) || has(v.projected) || has(v.secret))',
            message: 'kinds of volumes',
          },
        ],
      },
    });
    await world.admin.post(`${root}/validatingadmissionpolicybindings`, {
      metadata: { name },
      spec: { policyName: name, validationActions: ['Deny'] },
    });
    const probe = {
      metadata: { name: 'probe', labels: { 'corelane.dev/renderservice': 'assigned' } },
      ...podTemplate({ securityContext: { runAsUser: 10_001 } }),
    };
    await eventually('the policy is in force', async () => {
      await expect(world.admin.post(`${world.path('Pod')}?dryRun=All`, probe)).rejects.toThrow('runAsUser is not');
    });
  });

  test.each<[string, string, object, object, number | undefined]>([
    ['names none', 'assigned', {}, {}, undefined],
    ['names one for the pod', 'assigned-pod', {}, { runAsUser: FIRST }, FIRST],
    ['names one for the worker', 'assigned-worker', { runAsUser: LAST, runAsGroup: 0 }, {}, LAST],
  ])('takes the pods of a template that %s', async (_what, name, worker, pod, expected) => {
    const template = podTemplate({ securityContext: worker }, { securityContext: pod });
    // With all of our containers.
    const spec = { replicas: 1, workersPerPod: 1, template, assets: [{ path: '/static/', from: '/app/static' }] };
    await world.createRenderService(name, { ...spec, cache: { enabled: true } });
    const { initContainers } = (await podOf(name)).spec;
    const users = initContainers.map((one: Json) => [one.name, one.securityContext.runAsUser]);
    expect(Object.fromEntries(users)).toMatchObject({
      nginx: expected,
      haproxy: expected,
      'corelane-runtime': expected,
    });
    expect(users).toHaveLength(4);
  });
});
