/**
 * Another version of the operator, which makes other pods: proxies that end again and again, a pause, changes by hand.
 *
 * A load test: each test starts several operators and three services; staged.test.ts has how turns are given.
 */
import { eventually } from '../support/eventually.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import {
  NAMES,
  operator,
  PATIENT,
  podsOfVersion,
  reasonOf,
  reasons,
  three,
  untilUpToDate,
  useWorlds,
  versions,
  world,
} from './staged.ts';

useWorlds('staged-load');

test('one whose proxies start, and end again and again, holds all others, although its Deployment makes progress', async () => {
  await three();
  const failing = await operator(2, PATIENT);
  await eventually('the first gets its turn', async () => expect(await versions()).toEqual({ a: 2, b: 1, c: 1 }));
  const { image } = (await world.deployment('a')).spec.template.spec.initContainers[0];
  const state = { running: { startedAt: new Date().toISOString() } };
  const again = { name: 'haproxy', image, imageID: image, ready: true, started: true, restartCount: 2, state };
  await eventually('it comes to nothing', async () => {
    await world.makeReady(await podsOfVersion(2), [again]);
    expect(await reasons()).toEqual(['Failed', 'Held', 'Held']);
    expect((await world.get('RenderService', 'a')).status.rollout.phase).toBe('Complete');
  });
  expect(await world.condition('a', 'Stalled')).toMatchObject({ status: 'False' });
  expect(await failing.sum('corelane_data_plane_held')).toBe(1);
  await operator(1);
  // One of those that fail rests meanwhile, and goes on failing.
  await eventually('all are up to date', async () => {
    await world.makeReady(await podsOfVersion(1));
    expect(await reasons()).toEqual(['UpToDate', 'UpToDate', 'UpToDate']);
  });
  expect(await versions()).toEqual({ a: 1, b: 1, c: 1 });
  expect(await podsOfVersion(2)).not.toEqual([]);
});

test('a pause in the middle of a turn holds nobody else, and it goes on when that is over', async () => {
  await three();
  await operator(2);
  await eventually('the first gets its turn', async () => expect(await versions()).toEqual({ a: 2, b: 1, c: 1 }));
  await eventually('it is on its way', async () => expect(await reasons()).toEqual(['Rolling', 'Waiting', 'Waiting']));
  await world.patchSpec('a', { rollout: { paused: true } });
  await eventually('the second gets its turn', async () => expect(await versions()).toEqual({ a: 2, b: 2, c: 1 }));
  expect(await reasonOf('a')).toBe('Paused');
  expect((await world.get('RenderService', 'a')).status.rollout.phase).toBe('Paused');
  await untilUpToDate('b');
  await eventually('the third gets its turn', async () => expect(await versions()).toEqual({ a: 2, b: 2, c: 2 }));
  await world.patchSpec('a', { rollout: { paused: false } });
  await untilUpToDate(...NAMES);
});

test('pods whose configuration somebody has deleted are made anew: they could not start again', async () => {
  await three();
  const { spec } = await world.deployment('b');
  const config = spec.template.metadata.annotations['corelane.dev/config'];
  await OperatorProcess.stopAll();
  await world.admin.delete(world.path('ConfigMap', config));
  await operator(2, PATIENT);
  await eventually('it is made anew', async () => expect((await versions()).b).toBe(2));
});

test('what is edited by hand in pods that wait is taken back', async () => {
  await three((name) => (name === 'a' ? {} : { rollout: { dataPlane: 'WithNextChange' } }));
  await operator(2, PATIENT);
  await eventually('it waits', async () => expect(await reasonOf('c')).toBe('WithNextChange'));
  const { spec } = await world.deployment('c');
  await world.admin.patch(await world.deploymentPath('c'), {
    spec: { template: { spec: { terminationGracePeriodSeconds: 1 } } },
  });
  await eventually('it is as it was', async () => expect((await world.deployment('c')).spec).toEqual(spec));
});
