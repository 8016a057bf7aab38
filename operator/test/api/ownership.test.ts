/** Objects of other people are never touched, whatever name a RenderService has. */
import type { Json, KindName } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import { asTold, TOLD } from '../support/told.ts';
import { podTemplate, sharedServer, World } from '../support/world.ts';

let world: World;
let operator: OperatorProcess;

beforeAll(async () => {
  world = await World.create(sharedServer(), 'ownership');
  operator = await world.startOperator();
});

afterAll(() => OperatorProcess.killAll());

/** Content of an object of somebody else, by kind. */
const FOREIGN: Partial<Record<KindName, object>> = {
  Service: { spec: { selector: { app: 'mine' }, ports: [{ port: 8080 }] } },
  PodDisruptionBudget: { spec: { minAvailable: 1, selector: { matchLabels: { app: 'mine' } } } },
  NetworkPolicy: { spec: { podSelector: { matchLabels: { app: 'mine' } }, policyTypes: ['Ingress'] } },
  Deployment: {
    spec: {
      replicas: 1,
      selector: { matchLabels: { app: 'mine' } },
      template: { metadata: { labels: { app: 'mine' } }, ...podTemplate() },
    },
  },
};

async function createForeign(kind: KindName, name: string, metadata: object = {}): Promise<Json> {
  return await world.admin.post(world.path(kind), { metadata: { name, ...metadata }, ...FOREIGN[kind] });
}

/** Without what its own controller writes. */
function content({ metadata, spec }: Json): Json {
  const { resourceVersion: _version, managedFields: _fields, annotations: _annotations, ...rest } = metadata;
  return { metadata: rest, spec };
}

/** Waits until the RenderService is stalled because of a foreign object. */
async function untilStalled(name: string, kind: string): Promise<void> {
  await eventually(`${name} is stalled`, async () => {
    expect(await world.condition(name, 'Stalled')).toMatchObject({
      status: 'True',
      reason: 'NotOwned',
      message: expect.stringContaining(`${kind} "`),
    });
  });
}

/** Names of all objects that belong to a RenderService. */
async function owned(name: string): Promise<string[]> {
  const kinds: KindName[] = ['ConfigMap', 'Service', 'PodDisruptionBudget', 'NetworkPolicy', 'Deployment'];
  const lists = await Promise.all(kinds.map((kind) => world.list(kind)));
  return lists.flatMap((items, index) =>
    items
      .filter(({ metadata }) => metadata.ownerReferences?.some((reference: Json) => reference.name === name))
      .map(({ metadata }) => `${kinds[index]}/${metadata.name}`),
  );
}

describe('an object of somebody else that has a name of ours', () => {
  const cases: { kind: KindName; name: string; taken: string; before?: Json }[] = [
    { kind: 'Service', name: 'no-service', taken: 'no-service' },
    { kind: 'Service', name: 'no-headless', taken: 'no-headless-peers' },
    { kind: 'PodDisruptionBudget', name: 'no-budget', taken: 'no-budget' },
    { kind: 'NetworkPolicy', name: 'no-policy', taken: 'no-policy' },
  ];

  beforeAll(async () => {
    for (const one of cases) {
      one.before = await createForeign(one.kind, one.taken);
      await world.createRenderService(one.name);
    }
    await Promise.all(cases.map(({ name, kind }) => untilStalled(name, kind)));
  });

  test.each(cases)(
    'is left as it was, and nothing else is written: $kind $taken',
    async ({ kind, name, taken, before }) => {
      const after = await world.get(kind, taken);
      expect(content(after)).toEqual(content(before));
      expect(after.metadata.resourceVersion).toBe(before.metadata.resourceVersion);
      expect(await owned(name)).toEqual([]);
    },
  );

  test.each(cases)('is named in the status and in one Warning: $kind $taken', async ({ kind, name, taken }) => {
    expect(await world.condition(name, 'Ready')).toMatchObject({
      status: 'False',
      reason: 'NotOwned',
      message: expect.stringMatching(asTold(TOLD.notOwned)),
    });
    const events = await eventually('the event is there', async () => {
      const all = await world.events(name);
      expect(all).not.toEqual([]);
      return all;
    });
    expect(events.map(({ type, reason, note }) => ({ type, reason, note }))).toEqual([
      { type: 'Warning', reason: 'NotOwned', note: expect.stringContaining(`${kind} "${taken}" exists`) },
    ]);
  });

  test('does not hinder any more once it is gone', async () => {
    await Promise.all(cases.map(({ kind, taken }) => world.admin.delete(world.path(kind, taken))));
    // Nothing tells the operator of objects without its label: it looks again every 15 s.
    await Promise.all(cases.map(({ name }) => world.untilApplied(name)));
    for (const { name } of cases) expect(await owned(name)).toHaveLength(7);
  });
});

test('an object with our labels but of nobody is not ours', async () => {
  const labels = { 'corelane.dev/renderservice': 'labelled', 'app.kubernetes.io/managed-by': 'corelane' };
  const before = await createForeign('Service', 'labelled', { labels });
  await world.createRenderService('labelled');
  await untilStalled('labelled', 'Service');
  expect((await world.get('Service', 'labelled')).metadata.resourceVersion).toBe(before.metadata.resourceVersion);
});

test('an object of another owner that claims our label is not ours', async () => {
  const reference = { apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: crypto.randomUUID(), controller: true };
  const holder = await world.admin.post(world.path('ConfigMap'), { metadata: { name: 'holder' } });
  const before = await createForeign('Service', 'claimed', {
    labels: { 'corelane.dev/renderservice': 'claimed' },
    ownerReferences: [{ ...reference, name: 'holder', uid: holder.metadata.uid }],
  });
  await world.createRenderService('claimed');
  await untilStalled('claimed', 'Service');
  expect((await world.get('Service', 'claimed')).metadata.resourceVersion).toBe(before.metadata.resourceVersion);
});

test('a ConfigMap of somebody else with the very name of ours stalls it, and is not deleted', async () => {
  await world.createRenderService('probe', { replicas: 0 });
  await world.untilApplied('probe');
  const deployment = await world.deployment('probe');
  const hash = deployment.spec.template.metadata.annotations['corelane.dev/config'].replace('probe-', '');
  // The configuration does not depend on the name, so the next one's ConfigMap can be foretold.
  const before = await world.admin.post(world.path('ConfigMap'), {
    metadata: { name: `foretold-${hash}` },
    data: { a: 'b' },
  });
  await world.createRenderService('foretold', { replicas: 0 });
  await untilStalled('foretold', 'ConfigMap');
  const after = await world.get('ConfigMap', `foretold-${hash}`);
  expect(after.metadata.resourceVersion).toBe(before.metadata.resourceVersion);
});

test.each([
  ['twin', 'twin-peers'],
  ['pair-peers', 'pair'],
])(
  'two RenderServices do not fight over a name that both would use: %s is the first, %s is told what to do',
  async (first, second) => {
    // "twin-peers" wants a Service "twin-peers", which is the headless Service of "twin".
    await world.createRenderService(first);
    await world.untilApplied(first);
    await world.createRenderService(second);
    await untilStalled(second, 'Service');
    const { message } = await world.condition(second, 'Stalled');
    expect(message).toMatch(asTold(TOLD.notOwnedSibling));
    expect(message).toMatch(new RegExp(`^Service "(twin|pair)-peers" belongs to RenderService "${first}" `));
    const { metadata } = await world.get('Service', message.split('"')[1]);
    expect(metadata.ownerReferences[0].name).toBe(first);
  },
);

test('a running RenderService whose Service is taken over keeps its pods and says so', async () => {
  await world.createRenderService('robbed');
  await world.untilApplied('robbed');
  const before = await world.deployment('robbed');
  await world.admin.patch(world.path('Service', 'robbed'), { metadata: { ownerReferences: null } });
  await untilStalled('robbed', 'Service');
  await world.patchSpec('robbed', { replicas: 9 });
  await eventually('the new spec has been looked at', async () => {
    const { metadata, status } = await world.get('RenderService', 'robbed');
    expect(status.observedGeneration).toBe(metadata.generation);
  });
  const after = await world.deployment('robbed');
  expect(after.metadata.generation).toBe(before.metadata.generation);
  const own = operator.log.split('\n').filter((line) => line.includes(`"key":"${world.namespace}/robbed"`));
  expect(own.join('\n')).not.toContain('reconcile failed');
});
