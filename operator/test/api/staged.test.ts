/**
 * Another version of the operator, which makes other pods: nothing restarts by itself, services get their turn one
 * after the other, and nobody after one that does not become healthy. Versions differ here in the sidecar image that
 * they set.
 */
import type { Json } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import { sharedServer, World } from '../support/world.ts';

const NAMES = ['a', 'b', 'c'];
const PATIENT = { CORELANE_DATA_PLANE_PAUSE: '1h' };
const QUICK = { CORELANE_DATA_PLANE_PAUSE: '0s' };

let world: World;
let count = 0;

beforeEach(async () => {
  count += 1;
  world = await World.create(sharedServer(), `staged-${count}`);
});
afterEach(() => OperatorProcess.killAll());

/** An operator with this sidecar image, in place of the one that there was. */
async function operator(version: number, environment: Record<string, string> = QUICK): Promise<OperatorProcess> {
  await OperatorProcess.stopAll();
  const process = await OperatorProcess.spawn(world.settings(`operator-${version}`), {
    CORELANE_SIDECAR_IMAGE: `corelane.test/sidecar:${version}`,
    ...environment,
  });
  await process.untilLeading(60_000);
  return process;
}

/** Version of each service's pods. */
async function versions(): Promise<Record<string, number>> {
  const deployments = await Promise.all(NAMES.map((name) => world.deployment(name)));
  const versionOf = ({ spec }: Json) =>
    Number(JSON.stringify(spec.template).match(/corelane\.test\/sidecar:([0-9]+)/)?.[1]);
  return Object.fromEntries(deployments.map((one, index) => [NAMES[index], versionOf(one)]));
}

/** Pods with the proxies of a version. */
async function podsOfVersion(version: number): Promise<Json[]> {
  const isOf = ({ image }: Json) => image === `corelane.test/sidecar:${version}`;
  return (await world.list('Pod')).filter(
    ({ metadata, spec }) => !metadata.deletionTimestamp && spec.initContainers.some(isOf),
  );
}

const reasonOf = async (name: string) => (await world.condition(name, 'DataPlaneCurrent'))?.reason;

async function reasons(): Promise<string[]> {
  return await Promise.all(NAMES.map(async (name) => await reasonOf(name)));
}

/** Three services that are ready, with pods of version 1. */
async function three(specOf: (name: string) => object = () => ({})): Promise<void> {
  await operator(1);
  for (const name of NAMES) await world.createRenderService(name, specOf(name));
  await untilReady(...NAMES);
}

async function untilReady(...names: string[]): Promise<void> {
  await eventually(`${names} are ready`, async () => {
    await Promise.all(names.map((name) => world.makePodsReady(name)));
    for (const name of names) expect(await world.condition(name, 'Ready')).toMatchObject({ status: 'True' });
  });
}

/** Ready could still be that of the pods before: the new ones may come a moment later. */
async function untilUpToDate(...names: string[]): Promise<void> {
  await eventually(`${names} are up to date`, async () => {
    await Promise.all(names.map((name) => world.makePodsReady(name)));
    expect(await Promise.all(names.map(reasonOf))).toEqual(names.map(() => 'UpToDate'));
  });
}

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
  await eventually('it comes to nothing', async () => expect(await reasons()).toEqual(['Failed', 'Held', 'Held']), {
    timeoutMs: 60_000,
  });
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

test('WithNextChange: never by itself, and nobody waits for it', async () => {
  await three((name) => (name === 'a' ? { rollout: { dataPlane: 'WithNextChange' } } : {}));
  await operator(2);
  await eventually('the second gets its turn', async () => expect(await versions()).toEqual({ a: 1, b: 2, c: 1 }));
  await eventually('the first says why not', async () => expect(await reasonOf('a')).toBe('WithNextChange'));
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
