/**
 * Another version of the operator, which makes other pods: nothing restarts by itself, services get their turn one
 * after the other, and nobody after one that does not become healthy. Versions differ here in the sidecar image that
 * they set.
 */
import { eventually } from '../support/eventually.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import {
  NAMES,
  operator,
  PATIENT,
  reasonOf,
  reasons,
  three,
  untilUpToDate,
  useWorlds,
  versions,
  world,
} from './staged.ts';

useWorlds('staged');

test('one after the other, each when the one before is healthy, also with another leader in the middle', async () => {
  await three();
  const before = await world.deployment('b');
  await operator(2);
  // Nobody says that the new pods of "a" are ready, so all the others stay as they are.
  const begun = { a: 2, b: 1, c: 1 };
  await eventually('the first gets its turn', async () => expect(await versions()).toEqual(begun));
  await eventually('all say how they stand', async () =>
    expect(await reasons()).toEqual(['Rolling', 'Waiting', 'Waiting']),
  );
  // After the status; a process that is killed in between says it no more.
  await eventually('an Event says so', async () =>
    expect((await world.events('a')).map(({ reason }) => reason)).toContain('DataPlaneRolling'),
  );
  await OperatorProcess.killAll();
  const next = await operator(2);
  await eventually('the next leader has looked at all', async () => {
    const { done, depth } = await next.work();
    expect([done >= NAMES.length, depth]).toEqual([true, 0]);
  });
  expect(await versions()).toEqual(begun);
  const kept = await world.deployment('b');
  expect([kept.metadata.generation, kept.spec]).toEqual([before.metadata.generation, before.spec]);
  await untilUpToDate('a');
  await eventually('the second gets its turn', async () => expect(await versions()).toEqual({ a: 2, b: 2, c: 1 }));
  await untilUpToDate('b');
  await eventually('the third gets its turn', async () => expect(await versions()).toEqual({ a: 2, b: 2, c: 2 }));
  await untilUpToDate(...NAMES);
});

test('a pause behind each, and a change of the user that does not wait for it', async () => {
  await three();
  const waiting = await operator(2, PATIENT);
  await eventually('the first gets its turn', async () => expect(await versions()).toEqual({ a: 2, b: 1, c: 1 }));
  await untilUpToDate('a');
  await eventually('it is in the pause', async () =>
    expect(await reasons()).toEqual(['UpToDate', 'Waiting', 'Waiting']),
  );
  expect(await waiting.sum('corelane_data_plane_waiting')).toBe(2);
  await world.patchSpec('c', { queue: { maxLength: 3 } });
  await eventually('a live setting comes at once', async () =>
    expect((await world.get('ConfigMap', 'c-live')).data.settings).toContain('\nqueue-length-max=3\n'),
  );
  expect(await versions()).toEqual({ a: 2, b: 1, c: 1 });
  await world.patchSpec('c', { workersPerPod: 3 });
  await eventually('other pods are those of the new version', async () =>
    expect(await versions()).toEqual({ a: 2, b: 1, c: 2 }),
  );
});

test('one that does not become healthy holds all others, and the version before brings it back', async () => {
  await three(() => ({ rollout: { rolling: { progressDeadlineSeconds: 10 } } }));
  const generations = async () => {
    const others = await Promise.all(['b', 'c'].map((name) => world.deployment(name)));
    return others.map(({ metadata }) => [metadata.name, metadata.generation]);
  };
  const before = await generations();
  const broken = await operator(2);
  await eventually('the first gets its turn', async () => expect(await versions()).toEqual({ a: 2, b: 1, c: 1 }));
  await eventually('it comes to nothing', async () => expect(await reasons()).toEqual(['Failed', 'Held', 'Held']));
  expect((await world.condition('b', 'DataPlaneCurrent')).message).toContain(`${world.namespace}/a got those`);
  await eventually('an Event tells it', async () =>
    expect((await world.events('a')).map(({ reason }) => reason)).toContain('DataPlaneFailed'),
  );
  expect(await broken.sum('corelane_data_plane_held')).toBe(1);
  expect(await versions()).toEqual({ a: 2, b: 1, c: 1 });
  await operator(1);
  await eventually('it is as it was', async () => expect(await versions()).toEqual({ a: 1, b: 1, c: 1 }));
  await untilUpToDate(...NAMES);
  expect(await generations()).toEqual(before);
});

test('WithNextChange: never by itself, and nobody waits for it', async () => {
  await three((name) => (name === 'a' ? { rollout: { dataPlane: 'WithNextChange' } } : {}));
  await operator(2);
  await eventually('the second gets its turn', async () => expect(await versions()).toEqual({ a: 1, b: 2, c: 1 }));
  await eventually('the first says why not', async () => expect(await reasonOf('a')).toBe('WithNextChange'));
});
