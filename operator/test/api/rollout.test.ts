/**
 * A change of pods, against the real controllers: revisions, rest and the way back, a pause, an operator that is
 * killed, and `corelane rollout`; rollout.load.test.ts has more.
 */
import type { Json } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import {
  image,
  killOperator,
  revisions,
  rollout,
  running,
  serving,
  startOperator,
  untilReady,
  useRolloutWorld,
  world,
} from './rollout.ts';

useRolloutWorld('rollout');

test('a change: another Deployment, in steps; the one before rests out of the Service, and undo brings it back', async () => {
  await running('shop', { replicas: 3, queue: { maxLength: 5 } });
  await world.patchSpec('shop', image(2));
  // Nobody says that its pods are ready: it gets the surge, and one for the pod that will rest.
  await eventually('the first step', async () => expect(await revisions('shop')).toEqual({ 1: '3', 2: '2' }));
  await eventually('status tells it', async () =>
    expect((await world.get('RenderService', 'shop')).status.rollout.phase).toBe('Rolling'),
  );
  expect((await rollout('status', 'shop')).code).toBe(2);
  const watching = rollout('status', 'shop', '--watch');
  await untilReady('shop');
  expect(await watching).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(
      /^(?:rolling: .*\n)*complete: revision 2 \(\w+\): 3 of 3 pods are available; revision 1 rests until .*\n$/,
    ),
  });
  expect(await revisions('shop')).toEqual({ 1: '1 rests', 2: '3' });
  await eventually('the Service leads to the new ones', async () =>
    expect(await serving('shop')).toEqual({ 1: '0/1', 2: '3/3' }),
  );
  const scale = await world.admin.get(`${world.path('RenderService', 'shop')}/scale`);
  expect(scale.status.replicas).toBe(3);
  // What has been changed since that is not about the pods stays.
  await world.patchSpec('shop', { replicas: 2, queue: { maxLength: 7 } });
  await untilReady('shop');
  expect((await rollout('history', 'shop')).stdout).toMatch(
    /^REVISION .*\n2 +\w+ +2\/2 +asked for +\S+ +corelane.test\/app:2\n1 +\w+ +1\/1 +rests +\S+ +corelane.test\/app:1\n$/,
  );
  const before = (await world.deployments('shop')).map(({ metadata }) => metadata.name);
  const undone = await rollout('undo', 'shop');
  expect(undone).toMatchObject({
    code: 0,
    stdout: expect.stringMatching(/^back to revision 1 .*1 of its pods are there\n/),
  });
  await eventually('its pod is in the Service again before another one is ready', async () =>
    expect((await serving('shop'))[1]).toMatch(/^[12]\/2$/),
  );
  await untilReady('shop');
  const { spec } = await world.get('RenderService', 'shop');
  expect([spec.replicas, spec.queue.maxLength, spec.template.spec.containers[0].image]).toEqual([
    ...[2, 7],
    'corelane.test/app:1',
  ]);
  expect(await revisions('shop')).toEqual({ 1: '2', 2: '1 rests' });
  expect((await world.deployments('shop')).map(({ metadata }) => metadata.name)).toEqual(before.toReversed());
  expect((await rollout('history', 'shop')).stdout).toMatch(/\n3 .*app:1\n2 .*app:2\n$/);
});

test('another change in the middle of one, and one back to where it began', async () => {
  await running('hasty');
  await world.patchSpec('hasty', image(2));
  await eventually('the second begins', async () => expect(await revisions('hasty')).toEqual({ 1: '2', 2: '2' }));
  await world.patchSpec('hasty', image(3));
  await eventually('the third begins', async () => expect((await revisions('hasty'))[3]).toBeDefined());
  await untilReady('hasty');
  // The second has never been all there.
  await eventually('the first rests', async () =>
    expect(await revisions('hasty')).toEqual({ 1: '1 rests', 2: '0 rests', 3: '2' }),
  );
  await world.patchSpec('hasty', image(4));
  await eventually('the fourth begins', async () => expect((await revisions('hasty'))[4]).toBeDefined());
  await world.patchSpec('hasty', image(3));
  await untilReady('hasty');
  await eventually('nothing but the fourth has gone', async () =>
    expect(await revisions('hasty')).toMatchObject({ 3: '2', 4: '0 rests' }),
  );
});

test('one that never becomes ready is told after its time, and leaves the pods of before alone', async () => {
  await running('stuck', { rollout: { rolling: { progressDeadlineSeconds: 10 } } });
  const [{ metadata: before }] = (await world.deployments('stuck')) as [Json];
  await world.patchSpec('stuck', image(2));
  await eventually('it is told', async () =>
    expect(await world.condition('stuck', 'Stalled')).toMatchObject({
      status: 'True',
      reason: 'ProgressDeadlineExceeded',
    }),
  );
  expect(await rollout('status', 'stuck', '-w')).toMatchObject({ code: 1 });
  expect(await revisions('stuck')).toEqual({ 1: '2', 2: '2' });
  await world.admin.patch(`${world.path('RenderService', 'stuck')}/scale`, { spec: { replicas: 5 } });
  await eventually('more pods: of those that are well', async () => expect((await revisions('stuck'))[1]).toBe('3'));
  await rollout('undo', 'stuck');
  await untilReady('stuck');
  expect(await revisions('stuck')).toEqual({ 1: '5', 2: '0 rests' });
  const [{ metadata: after }] = (await world.deployments('stuck')) as [Json];
  expect(after.uid).toBe(before.uid);
});

test('pause holds a change before it begins, and resume lets it go; scaling goes on', async () => {
  await running('held');
  expect((await rollout('pause', 'held')).code).toBe(0);
  await world.patchSpec('held', image(2));
  await eventually('it waits', async () => expect(await revisions('held')).toEqual({ 1: '2', 2: '0' }));
  await world.patchSpec('held', { replicas: 4 });
  await eventually('more pods of before', async () => expect(await revisions('held')).toEqual({ 1: '4', 2: '0' }));
  await eventually('it is told', async () => expect((await rollout('status', 'held')).stdout).toMatch(/^paused: /));
  expect((await world.condition('held', 'Ready')).message).toContain('rollout.paused holds a change');
  await rollout('resume', 'held');
  await untilReady('held');
  expect(await revisions('held')).toEqual({ 1: '1 rests', 2: '4' });
});

test('an operator that is killed in the middle: the next one goes on', async () => {
  await running('orphan', { replicas: 4 });
  await world.patchSpec('orphan', image(2));
  await eventually('it begins', async () => expect((await revisions('orphan'))[2]).toBeDefined());
  await killOperator();
  await world.makePodsReady('orphan');
  await startOperator();
  await untilReady('orphan');
  expect(await revisions('orphan')).toEqual({ 1: '1 rests', 2: '4' });
  await eventually('and the Service', async () => expect(await serving('orphan')).toEqual({ 1: '0/1', 2: '4/4' }));
});

test('undo, pause and resume leave alone what a repository keeps', async () => {
  await running('kept');
  const path = world.path('RenderService', 'kept');
  await world.admin.patch(`${path}?fieldManager=argocd-controller`, { spec: { ...image(2), queue: { maxLength: 9 } } });
  await untilReady('kept');
  const { code, stderr } = await rollout('undo', 'kept');
  expect([code, stderr]).toEqual([64, expect.stringContaining('"argocd-controller" keeps this RenderService')]);
  expect((await rollout('pause', 'kept')).code).toBe(64);
  expect((await rollout('undo', 'kept', '--force')).stdout).toContain('argocd-controller brings the change again');
  expect((await world.get('RenderService', 'kept')).spec.template.spec.containers[0].image).toBe('corelane.test/app:1');
});
