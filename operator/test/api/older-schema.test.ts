/**
 * The operator is newer than the CustomResourceDefinition. On an API server of its own: whoever changes a definition
 * changes it for all, and for a moment the server answers nobody ("storage is (re)initializing").
 */
import { ApiServer } from '../support/api-server.ts';
import { eventually } from '../support/eventually.ts';
import { CONTROLLERS } from '../support/global-setup.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import { asTold, TOLD } from '../support/told.ts';
import { World } from '../support/world.ts';

const DEFINITION = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions/renderservices.corelane.dev';
const NAME = 'slipped';

let server: ApiServer;
let world: World;

beforeAll(async () => {
  server = await ApiServer.start('older-schema', { controllers: CONTROLLERS });
  world = await World.create(server, 'older-schema');
  await world.startOperator();
});

afterAll(async () => {
  await OperatorProcess.killAll();
  await server?.remove();
});

/** Status and reason of the conditions of kstatus. */
async function conditions(): Promise<string[]> {
  const all = await Promise.all(['Ready', 'Reconciling', 'Stalled'].map((type) => world.condition(NAME, type)));
  return all.map((condition) => `${condition?.status} ${condition?.reason}`);
}

test('a spec that slipped through an older schema is InvalidSpec, and its pods go on', async () => {
  await world.createRenderService(NAME);
  await eventually('it is ready', async () => {
    await world.makePodsReady(NAME);
    expect(await conditions()).toEqual(['True AllPodsReady', 'False UpToDate', 'False UpToDate']);
  });
  const before = await world.get('Deployment', NAME);
  // The rules between fields are taken out of the schema for a moment.
  const { spec } = await world.admin.get(DEFINITION);
  const without = structuredClone(spec);
  delete without.versions[0].schema.openAPIV3Schema.properties.spec['x-kubernetes-validations'];
  await world.admin.patch(DEFINITION, { spec: { versions: without.versions } });
  await eventually('the API server takes what it would refuse', () =>
    world.patchSpec(NAME, { drain: { timeout: '1s' } }),
  );
  await world.admin.patch(DEFINITION, { spec: { versions: spec.versions } });
  await eventually('it is stalled', async () =>
    expect(await conditions()).toEqual(['False InvalidSpec', 'False InvalidSpec', 'True InvalidSpec']),
  );
  expect((await world.condition(NAME, 'Stalled')).message).toMatch(asTold(TOLD.olderSchema));
  const after = await world.get('Deployment', NAME);
  expect(after.metadata.resourceVersion).toBe(before.metadata.resourceVersion);
  await eventually('the schema is whole again, and the spec can be mended', () =>
    // What it is unless given, for the pods (docs/live-settings.md).
    world.patchSpec(NAME, { drain: { timeout: '70s' } }),
  );
  await eventually('it is ready again', async () =>
    expect(await conditions()).toEqual(['True AllPodsReady', 'False UpToDate', 'False UpToDate']),
  );
});
