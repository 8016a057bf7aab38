/**
 * A change of pods, against the real controllers: old revisions, what others write, and the Deployment of a version
 * that had one for all.
 *
 * A load test: it is long, and waits for deadlines of 10 s.
 */
import { brotliCompressSync, brotliDecompressSync } from 'node:zlib';
import type { Json } from '../support/api-client.ts';
import { eventually } from '../support/eventually.ts';
import { OperatorProcess } from '../support/operator-process.ts';
import {
  image,
  killOperator,
  operator,
  revisions,
  rollout,
  running,
  serving,
  startOperator,
  untilReady,
  useRolloutWorld,
  world,
} from './rollout.ts';

useRolloutWorld('rollout-load');

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
  await killOperator();
  await startOperator();
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
  await startOperator();
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
