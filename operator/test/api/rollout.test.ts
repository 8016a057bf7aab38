/**
 * A change of pods, against the real controllers: revisions, rest and the way back, a pause, an operator that is
 * killed, the Deployment of a version that had one for all, and `corelane rollout`.
 */
import { brotliCompressSync, brotliDecompressSync } from 'node:zlib';
import type { Json } from '../support/api-client.ts';
import { corelane } from '../support/command-line.ts';
import { eventually } from '../support/eventually.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import { podTemplate, sharedServer, World } from '../support/world.ts';

let world: World;
let operator: OperatorProcess;

beforeAll(async () => {
  world = await World.create(sharedServer(), 'rollout');
  operator = await world.startOperator();
});

afterAll(() => OperatorProcess.killAll());

/** `corelane rollout VERB NAME OPTIONS`. */
const rollout = (...args: string[]) => corelane(world, 'rollout', ...args);

const image = (version: number) => ({ template: podTemplate({ image: `corelane.test/app:${version}` }) });

/** Deployments by the version of their image: pods, and whether they rest. */
async function revisions(name: string): Promise<Record<string, string>> {
  const all = await world.deployments(name);
  return Object.fromEntries(
    all.map(({ metadata, spec }) => [
      spec.template.spec.containers[0].image.split(':')[1],
      `${spec.replicas}${metadata.annotations['corelane.dev/retired'] ? ' rests' : ''}`,
    ]),
  );
}

/** Pods by version: how many of them the Service leads to, of how many. */
async function serving(name: string): Promise<Record<string, string>> {
  const selector = new Map(Object.entries<string>((await world.get('Service', name)).spec.selector));
  const pods = (await world.list('Pod')).filter(
    ({ metadata }) => metadata.labels['corelane.dev/renderservice'] === name && !metadata.deletionTimestamp,
  );
  const byVersion = Map.groupBy(pods, ({ spec }) => spec.containers[0].image.split(':')[1] as string);
  return Object.fromEntries(
    [...byVersion].map(([version, some]) => {
      const led = some.filter(({ metadata }) => [...selector].every(([key, value]) => metadata.labels[key] === value));
      return [version, `${led.length}/${some.length}`];
    }),
  );
}

async function untilReady(name: string): Promise<void> {
  await eventually(`${name} is ready`, async () => {
    await world.makePodsReady(name);
    const { metadata, status } = await world.get('RenderService', name);
    expect(status.observedGeneration).toBe(metadata.generation);
    expect(status.rollout.phase).toBe('Complete');
    expect(await world.condition(name, 'Ready')).toMatchObject({ status: 'True' });
  });
}

async function running(name: string, spec: object = {}): Promise<void> {
  await world.createRenderService(name, { ...image(1), ...spec });
  await untilReady(name);
}

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

test('a rest ends after its time, and old revisions go; what is asked for again is made again', async () => {
  await running('brief', { rollout: { retain: { for: '1s' } } });
  for (const version of [2, 3, 4]) {
    await world.patchSpec('brief', image(version));
    await untilReady('brief');
    await eventually('the one before has no pods', async () =>
      expect((await revisions('brief'))[version - 1]).toBe('0 rests'),
    );
  }
  await eventually('two are remembered', async () =>
    expect(await revisions('brief')).toEqual({ 2: '0 rests', 3: '0 rests', 4: '2' }),
  );
  await eventually('their configuration, too', async () => {
    const all = (await world.list('ConfigMap')).filter(({ metadata }) => metadata.name.startsWith('brief-'));
    expect(all.length).toBeLessThanOrEqual(3 + 1);
  });
  expect((await rollout('undo', 'brief', '--to-revision', '2')).stdout).toContain('none of its pods is there');
  await untilReady('brief');
  expect((await revisions('brief'))[2]).toBe('2');
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

test('a later pod that never becomes ready is told, too: no Deployment would', async () => {
  await running('later', { replicas: 4, rollout: { rolling: { progressDeadlineSeconds: 10 } } });
  await world.patchSpec('later', image(2));
  const first = await eventually('a pod', async () => {
    const all = (await world.list('Pod')).filter(
      ({ spec, metadata }) => metadata.name.startsWith('later-') && spec.containers[0].image.endsWith(':2'),
    );
    expect(all).toHaveLength(2);
    return all;
  });
  await world.makeReady(first);
  await eventually('it is told', async () =>
    expect(await world.condition('later', 'Stalled')).toMatchObject({
      status: 'True',
      reason: 'ProgressDeadlineExceeded',
    }),
  );
  expect((await world.condition('later', 'Ready')).message).toContain('makes no progress');
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
  await operator.kill();
  await world.makePodsReady('orphan');
  operator = await world.startOperator('operator-1');
  await untilReady('orphan');
  expect(await revisions('orphan')).toEqual({ 1: '1 rests', 2: '4' });
  await eventually('and the Service', async () => expect(await serving('orphan')).toEqual({ 1: '0/1', 2: '4/4' }));
});

test('restart replaces the pods of a revision, which stays what it is', async () => {
  await running('again');
  const { metadata } = await world.deployment('again');
  const pods = async () =>
    (await world.list('Pod'))
      .filter((pod) => pod.metadata.name.startsWith('again-') && !pod.metadata.deletionTimestamp)
      .map((pod) => pod.metadata.uid);
  const before = await pods();
  expect((await rollout('restart', 'again')).code).toBe(0);
  await eventually('all are others', async () => {
    await world.makePodsReady('again');
    const now = await pods();
    expect(now).toHaveLength(2);
    expect(now.filter((uid) => before.includes(uid))).toEqual([]);
  });
  await untilReady('again');
  expect((await world.deployment('again')).metadata.uid).toBe(metadata.uid);
});

test.each<[what: string, args: (deployment: string) => string[], told: RegExp]>([
  ['kubectl scale', (name) => ['scale', `deployment/${name}`, '--replicas=7'], /"kubectl" has scaled it from 2 to 7/],
  [
    'kubectl set image',
    (name) => ['set', 'image', `deployment/${name}`, 'worker-0=corelane.test/other:1'],
    /"kubectl-set" sets spec\.template\.spec\.containers/,
  ],
  ['kubectl rollout pause', (name) => ['rollout', 'pause', `deployment/${name}`], /"kubectl-rollout" sets spec.paused/],
])('%s of a Deployment is taken back, and told', async (what, args, told) => {
  const name = what.replaceAll(' ', '-');
  await running(name);
  const { metadata, spec } = await world.deployment(name);
  await world.kubectl.run(...args(metadata.name));
  await eventually('it is told', async () => {
    const condition = await world.condition(name, 'ObjectsInSync');
    expect(condition).toMatchObject({ status: 'False', reason: 'TakenBack', message: expect.stringMatching(told) });
  });
  const after = await world.deployment(name);
  expect([after.spec.replicas, after.spec.template, after.spec.paused]).toEqual([2, spec.template, undefined]);
  await eventually('an Event tells it', async () =>
    expect((await world.events(name)).map(({ reason }) => reason)).toContain('TakenBack'),
  );
});

test('what was taken back is told on by the next leader, which has not done it', async () => {
  const before = await world.condition('kubectl-scale', 'ObjectsInSync');
  expect(before.reason).toBe('TakenBack');
  const services = (await world.list('RenderService')).length;
  await operator.kill();
  operator = await world.startOperator('operator-3');
  await eventually('it has looked at all', async () => {
    const { done, depth } = await operator.work();
    expect([done >= services, depth]).toEqual([true, 0]);
  });
  expect(await world.condition('kubectl-scale', 'ObjectsInSync')).toEqual(before);
});

test('copies of a Deployment, with label and owner, are none of its revisions', async () => {
  await running('copied');
  const { metadata, spec } = await world.deployment('copied');
  const { labels, annotations, ownerReferences } = metadata;
  const names = ['copied-by-hand', 'copied-0123456789'];
  for (const name of names) {
    await world.admin.post(world.path('Deployment'), {
      metadata: { name, labels, annotations: { ...annotations, 'corelane.dev/revision-number': '9' }, ownerReferences },
      spec: { ...spec, replicas: 0 },
    });
  }
  await world.patchSpec('copied', image(2));
  await untilReady('copied');
  const { status } = await world.get('RenderService', 'copied');
  expect(status.rollout.revisions.map(({ number, replicas }: Json) => [number, replicas])).toEqual([
    [2, 2],
    [1, 1],
  ]);
  for (const name of names) expect((await world.get('Deployment', name)).spec.template).toEqual(spec.template);
  expect((await rollout('history', 'copied')).stdout.trim().split('\n')).toHaveLength(3);
  for (const name of names) await world.admin.delete(world.path('Deployment', name));
});

test('a revision whose Deployment somebody has taken the label from is not lost, be it on its way out or at rest', async () => {
  await running('unlabelled');
  const { metadata } = await world.deployment('unlabelled');
  const path = world.path('Deployment', metadata.name);
  const untilBack = async () => {
    await world.admin.patch(path, { metadata: { labels: { 'corelane.dev/renderservice': null } } });
    await eventually('it has its label again', async () =>
      expect((await world.admin.get(path)).metadata.labels['corelane.dev/renderservice']).toBe('unlabelled'),
    );
  };
  await world.patchSpec('unlabelled', image(2));
  await eventually('it begins', async () => expect(await revisions('unlabelled')).toEqual({ 1: '2', 2: '2' }));
  await untilBack();
  await untilReady('unlabelled');
  expect(await revisions('unlabelled')).toEqual({ 1: '1 rests', 2: '2' });
  await untilBack();
  expect(await revisions('unlabelled')).toEqual({ 1: '1 rests', 2: '2' });
});

test('whoever puts a pod that rests into the Service again and again is told, and not fought for ever', async () => {
  await running('fought');
  await world.patchSpec('fought', image(2));
  await untilReady('fought');
  const pod = await eventually('a pod rests', async () => {
    const found = (await world.list('Pod')).find(
      ({ metadata }) =>
        metadata.name.startsWith('fought-') &&
        metadata.labels['corelane.dev/serving'] === 'false' &&
        !metadata.deletionTimestamp,
    );
    expect(found).toBeDefined();
    return found as Json;
  });
  const path = world.path('Pod', pod.metadata.name);
  const isContended = async () => (await world.condition('fought', 'ObjectsInSync'))?.reason === 'Contended';
  await eventually('it is told', async () => {
    await world.admin.patch(path, { metadata: { labels: { 'corelane.dev/serving': 'true' } } });
    await eventually('it is out again, or that is given up', async () => {
      const isOut = (await world.admin.get(path)).metadata.labels['corelane.dev/serving'] === 'false';
      expect(isOut || (await isContended())).toBe(true);
    });
    expect(await isContended()).toBe(true);
  });
  expect((await world.condition('fought', 'ObjectsInSync')).message).toContain(`Pod "${pod.metadata.name}"`);
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

test('of the version that had one Deployment for all revisions it stays, with its pods, until the next change', async () => {
  // Without a turn of its own, which would be the other thing that ends it.
  await running('old', { rollout: { dataPlane: 'WithNextChange' } });
  const { metadata, spec } = await world.deployment('old');
  await OperatorProcess.killAll();
  const asBefore = (template: Json) => {
    const { 'corelane.dev/revision': _one, 'corelane.dev/serving': _other, ...labels } = template.metadata.labels;
    return { ...template, metadata: { ...template.metadata, labels } };
  };
  const text = brotliDecompressSync(Buffer.from(metadata.annotations['corelane.dev/made-of'], 'base64')).toString();
  const made = JSON.parse(text);
  const template = asBefore(made.template);
  const remembered = brotliCompressSync(JSON.stringify({ ...made, template })).toString('base64');
  const { 'corelane.dev/revision': _unused, ...labels } = metadata.labels;
  await world.admin.delete(world.path('Deployment', metadata.name));
  await world.kubectl.apply(
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: {
        ...{ name: 'old', namespace: world.namespace, labels, ownerReferences: metadata.ownerReferences },
        annotations: { 'corelane.dev/made-of': remembered },
      },
      spec: {
        ...{ ...spec, template },
        selector: { matchLabels: { 'corelane.dev/renderservice': 'old' } },
      },
    },
    '--server-side',
    '--field-manager=corelane',
  );
  const uids = async () =>
    (await world.list('Pod'))
      .filter((pod) => pod.metadata.labels['corelane.dev/renderservice'] === 'old' && !pod.metadata.deletionTimestamp)
      .map((pod) => pod.metadata.uid)
      .toSorted();
  await eventually('it has its pods', async () => {
    await world.makePodsReady('old');
    expect((await world.get('Deployment', 'old')).status.availableReplicas).toBe(2);
    expect(await uids()).toHaveLength(2);
  });
  const before = await uids();
  const { spec: was } = await world.get('Deployment', 'old');
  operator = await world.startOperator('operator-2');
  await untilReady('old');
  // Its generation is another one, because annotations count there.
  expect((await world.deployments('old')).map((one) => [one.metadata.name, one.spec])).toEqual([['old', was]]);
  expect(await uids()).toEqual(before);
  await eventually('the Service leads to all of them', async () => expect(await serving('old')).toEqual({ 1: '2/2' }));
  await world.patchSpec('old', image(2));
  await eventually('both are in the Service', async () => {
    await world.makeReady((await world.list('Pod')).filter((pod) => pod.metadata.name.startsWith('old-')));
    expect((await world.deployments('old')).length).toBe(2);
  });
  await untilReady('old');
  await eventually('only the new ones are', async () => {
    await world.makePodsReady('old');
    expect(await serving('old')).toEqual({ 2: '2/2' });
    expect((await world.get('Service', 'old')).spec.selector['corelane.dev/serving']).toBe('true');
  });
});
