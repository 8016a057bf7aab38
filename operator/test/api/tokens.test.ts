/**
 * Who gets the token of the pod's account, as the real admission plugin decides it. On an API server of its own: in the
 * others the plugin is off.
 */
import type { Json } from '../support/api-client.ts';
import { ApiServer } from '../support/api-server.ts';
import { eventually } from '../support/eventually.ts';
import { CONTROLLERS } from '../support/global-setup.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import { World } from '../support/world.ts';

const NAME = 'shop';
const ACCOUNT = 'powerful';
const TOKEN_PATH = '/var/run/secrets/kubernetes.io/serviceaccount';

let server: ApiServer;
let world: World;

beforeAll(async () => {
  server = await ApiServer.start('tokens', { controllers: CONTROLLERS, serviceAccounts: true });
  world = await World.create(server, 'tokens');
  await world.startOperator();
});

afterAll(async () => {
  await OperatorProcess.killAll();
  await server?.remove();
});

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
  await world.createRenderService(NAME, { replicas: 1, workersPerPod: 2, template });
  const pod = await eventually('the pod exists', async () => {
    const pods = await world.list('Pod');
    expect(pods).toHaveLength(1);
    return pods[0] as Json;
  });
  const token = { projected: expect.objectContaining({ sources: expect.any(Array) }) };
  const nothing = { emptyDir: {} };
  expect(atTokenPath(pod)).toMatchObject({
    prepare: token,
    'corelane-runtime': nothing,
    haproxy: nothing,
    nginx: nothing,
    'worker-0': token,
    'worker-1': token,
    audit: token,
  });
});
