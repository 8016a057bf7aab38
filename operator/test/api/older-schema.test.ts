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
  const before = await world.deployment(NAME);
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
  const after = await world.deployment(NAME);
  expect(after.metadata.resourceVersion).toBe(before.metadata.resourceVersion);
  await eventually('the schema is whole again, and the spec can be mended', () =>
    // What it is unless given, for the pods (docs/live-settings.md).
    world.patchSpec(NAME, { drain: { timeout: '310s' } }),
  );
  await eventually('it is ready again', async () =>
    expect(await conditions()).toEqual(['True AllPodsReady', 'False UpToDate', 'False UpToDate']),
  );
});

test('an operator that starts beside an older schema says which fields are dropped, until it is upgraded', async () => {
  const { spec } = await world.admin.get(DEFINITION);
  const without = structuredClone(spec);
  const older = without.versions[0].schema.openAPIV3Schema.properties.spec;
  delete older.properties.tracing;
  // With the rules that name it.
  const rules: { rule: string }[] = older['x-kubernetes-validations'];
  older['x-kubernetes-validations'] = rules.filter(({ rule }) => !rule.includes('self.tracing'));
  await world.admin.patch(DEFINITION, { spec: { versions: without.versions } });
  await eventually('the API server serves the older one', async () => {
    const { components } = await world.admin.get('/openapi/v3/apis/corelane.dev/v1alpha1');
    const { properties } = components.schemas['dev.corelane.v1alpha1.RenderService'].properties.spec;
    expect(Object.keys(properties)).not.toContain('tracing');
  });
  await OperatorProcess.stopAll();
  const operator = await world.startOperator('operator-1');
  const inStep = () => world.condition(NAME, 'SchemaInStep');
  await eventually('it is told', async () => expect(await inStep()).toMatchObject({ status: 'False' }));
  expect((await inStep()).message).toMatch(asTold(TOLD.crdOutdated));
  expect((await inStep()).message).toContain('it drops spec.tracing.');
  const missing = (count: number) => async () =>
    expect(await operator.sum('corelane_operator_crd_missing_fields')).toBe(count);
  await eventually('a metric tells it', missing(1));
  await eventually('an Event tells it', async () =>
    expect((await world.events(NAME)).map(({ reason }) => reason)).toContain('CrdOutdated'),
  );
  await world.admin.patch(DEFINITION, { spec: { versions: spec.versions } });
  await eventually('it is as it was', async () =>
    expect(await inStep()).toMatchObject({ status: 'True', reason: 'InStep' }),
  );
  await eventually('the metric is as it was', missing(0));
});

test('an operator that is older than the schema works without the fields that it does not know, and says so', async () => {
  const { spec } = await world.admin.get(DEFINITION);
  const newer = structuredClone(spec);
  const { properties } = newer.versions[0].schema.openAPIV3Schema.properties.spec;
  properties.novelty = { type: 'object', properties: { level: { type: 'integer' } } };
  properties.queue.properties.fairness = { type: 'string' };
  // What nobody has chosen is told to nobody.
  properties.filledIn = { type: 'string', default: 'Yes' };
  await world.admin.patch(DEFINITION, { spec: { versions: newer.versions } });
  const novelties = { novelty: { level: 3 }, queue: { fairness: 'Strict', maxLength: 7 } };
  await eventually('the API server keeps the fields', async () => {
    const { spec: stored } = await world.patchSpec(NAME, novelties);
    expect(stored).toMatchObject(novelties);
  });
  const inStep = () => world.condition(NAME, 'SchemaInStep');
  // A watch that was open when the definition changed may bring the object without them, also after one that has them.
  await eventually('it is told', async () => {
    await world.patchSpec(NAME, { novelty: { level: Date.now() % 1_000 } });
    const told = await inStep();
    expect(told).toMatchObject({ status: 'False', reason: 'UnknownFields' });
    expect(told.message).toMatch(asTold(TOLD.unknownFields));
    expect(told.message).toContain('without spec.queue.fairness, spec.novelty, which');
  });
  await eventually('what it knows counts, and nothing stalls', async () => {
    expect((await conditions())[2]).toBe('False UpToDate');
    expect((await world.get('ConfigMap', `${NAME}-live`)).data.settings).toContain('\nqueue-length-max=7\n');
  });
  await eventually('an Event tells it', async () =>
    expect((await world.events(NAME)).map(({ reason }) => reason)).toContain('UnknownFields'),
  );
  await world.patchSpec(NAME, { novelty: null, queue: { fairness: null } });
  await eventually('they are gone', async () =>
    expect(await inStep()).toMatchObject({ status: 'True', reason: 'InStep' }),
  );
  await world.admin.patch(DEFINITION, { spec: { versions: spec.versions } });
});
