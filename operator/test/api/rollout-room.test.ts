/** A change of pods where there is no room for those that would rest: they make some. */
import type { Json } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import { podTemplate, sharedServer, World } from '../support/world.ts';

let world: World;

beforeAll(async () => {
  world = await World.create(sharedServer(), 'rollout-room');
  await world.startOperator();
});

afterAll(() => OperatorProcess.killAll());

const image = (version: number) => ({ template: podTemplate({ image: `corelane.test/app:${version}` }) });

/** Pods that each revision is to have, by the version of its image. */
async function revisions(name: string): Promise<Record<string, number>> {
  const all = await world.deployments(name);
  return Object.fromEntries(
    all.map(({ spec }) => [spec.template.spec.containers[0].image.split(':')[1], spec.replicas]),
  );
}

async function podsOf(name: string): Promise<Json[]> {
  return (await world.list('Pod')).filter(
    ({ metadata }) => metadata.labels['corelane.dev/renderservice'] === name && !metadata.deletionTimestamp,
  );
}

async function untilReady(name: string, meanwhile = async () => {}): Promise<void> {
  await eventually(`${name} is ready`, async () => {
    await meanwhile();
    await world.makePodsReady(name);
    const { metadata, status } = await world.get('RenderService', name);
    expect(status.observedGeneration).toBe(metadata.generation);
    expect(status.rollout.phase).toBe('Complete');
    expect(await world.condition(name, 'Ready')).toMatchObject({ status: 'True' });
  });
}

test('a pod that finds no node gets the place of one that rests', async () => {
  await world.createRenderService('full', { ...image(1), replicas: 2 });
  await untilReady('full');
  await world.patchSpec('full', image(2));
  await untilReady('full');
  expect(await revisions('full')).toEqual({ 1: 1, 2: 2 });
  await world.patchSpec('full', { replicas: 3 });
  const pod = await eventually('a third pod', async () => {
    const found = (await podsOf('full')).filter(({ status }) => status.phase !== 'Running');
    expect(found).toHaveLength(1);
    return found[0] as Json;
  });
  const condition = { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/1 nodes' };
  await world.admin.patch(`${world.path('Pod', pod.metadata.name)}/status`, { status: { conditions: [condition] } });
  await eventually('the one that rests goes', async () => {
    expect(await revisions('full')).toEqual({ 1: 0, 2: 3 });
    expect(await podsOf('full')).toHaveLength(3);
  });
});

/** A quota of so many pods more than there are, and the part of its controller, which is not here: it counts. */
async function quotaOf(more: number): Promise<() => Promise<void>> {
  const path = `/api/v1/namespaces/${world.namespace}/resourcequotas`;
  const { length } = await world.list('Pod');
  const hard = { pods: String(length + more) };
  await world.admin.post(path, { metadata: { name: 'small' }, spec: { hard } });
  return async () => {
    const { metadata } = await world.admin.get(`${path}/small`);
    const used = { pods: String((await world.list('Pod')).length) };
    // One that was made meanwhile is counted the next time.
    await world.admin
      .patch(`${path}/small/status`, {
        metadata: { resourceVersion: metadata.resourceVersion },
        status: { hard, used },
      })
      .catch((error: Error) => expect(error.message).toMatch(/object has been modified/));
  };
}

test('without surge, and under a quota that has no room for one more: the change ends, and so does the way back', async () => {
  const count = await quotaOf(3);
  await count();
  const rolling = { maxSurge: 0, maxUnavailable: 1 };
  await world.createRenderService('small', { ...image(1), replicas: 3, rollout: { rolling } });
  await untilReady('small', count);
  for (const version of [2, 1]) {
    await world.patchSpec('small', image(version));
    await untilReady('small', count);
    expect((await revisions('small'))[version]).toBe(3);
    expect(await podsOf('small')).toHaveLength(3);
  }
});
