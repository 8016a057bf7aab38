/**
 * A canary, against the real controllers: the operator writes shares, and goes on when pods have said that they know
 * them; canary.load.test.ts has more.
 */
import { eventually } from '../support/eventually.ts';
import { asTold, TOLD } from '../support/told.ts';
import {
  APPROVED,
  annotate,
  atTheStep,
  held,
  image,
  judged,
  killOperator,
  old,
  operator,
  reasons,
  revisions,
  rollout,
  rolloutOf,
  running,
  runningWith,
  serialOf,
  settings,
  share,
  startOperator,
  traffic,
  until,
  untilComplete,
  useCanaryWorld,
  world,
} from './canary.ts';

useCanaryWorld('canary');

test('a step begins when all pods know its share; a person lets it go on; the stable one is whole until the end', async () => {
  await running('shop', { share: 25, for: '1s' }, { share: 50, approval: true });
  expect(await share('shop')).toBeUndefined();
  held.set('shop', serialOf(await settings('shop')));
  await world.patchSpec('shop', image(2));
  await until('shop', { phase: 'Preparing', reason: 'TellingPods', canary: { step: 0, share: 0, appliedPods: 0 } });
  expect([await share('shop'), await revisions('shop')]).toEqual([0, '1:4 2:1']);
  held.delete('shop');
  const { canary, stable, message } = await until('shop', { phase: 'Paused', reason: 'AwaitingApproval' });
  expect(canary).toMatchObject({ attempt: 1, step: 2, steps: 2, share: 50, appliedPods: 6, pods: 6 });
  expect(stable).toMatchObject({ replicas: 4, available: 4 });
  expect(message).toContain(`corelane.dev/rollout-promote: ${canary.revision}:2`);
  expect([await share('shop'), await revisions('shop')]).toEqual([5_000, '1:4 2:2']);
  expect(await settings('shop')).toContain(`canary-revision=${Number.parseInt(canary.revision, 16)}\n`);
  // An HPA must not take the canary for pods that are too many.
  expect((await world.admin.get(`${world.path('RenderService', 'shop')}/scale`)).status.replicas).toBe(4);
  expect(await world.condition('shop', 'Ready')).toMatchObject({ status: 'Unknown' });
  const metrics = await operator.metrics();
  expect(metrics.find(({ name }) => name === 'corelane_renderservice_rollout_share_ratio')).toMatchObject({
    labels: { namespace: 'canary', renderservice: 'shop' },
    value: 0.5,
  });

  await annotate('shop', { 'corelane.dev/rollout-promote': `${canary.revision}:2` });
  await until('shop', { phase: 'Complete', revision: canary.revision });
  await eventually('nobody is told of shares', async () => expect(await share('shop')).toBeUndefined());
  await eventually('the one before rests', async () => expect(await revisions('shop')).toBe('1:1z 2:4'));
  await eventually('status has none of it', async () =>
    expect(Object.keys(await rolloutOf('shop')).toSorted()).toEqual(['phase', 'progressTime', 'revision', 'revisions']),
  );
  await eventually('Events tell it', async () =>
    expect(await reasons('shop')).toEqual(
      expect.arrayContaining(['CanaryStarted', 'CanaryShare', 'CanaryAwaitsApproval', 'CanaryPromoted']),
    ),
  );
  // The way back takes no steps.
  await world.patchSpec('shop', image(1));
  await untilComplete('shop');
  expect(await revisions('shop')).toBe('1:4 2:1z');
  expect(await share('shop')).toBeUndefined();
});

test('abort, by a fact that stays: share 0, its pods go when all know it; retry begins anew', async () => {
  const revision = await atTheStep('stopped');
  held.set('stopped', serialOf(await settings('stopped')));
  await annotate('stopped', { 'corelane.dev/rollout-abort': revision });
  await until('stopped', { phase: 'Aborting', reason: 'AbortAsked', canary: { share: 0 } });
  await eventually('pods are told', async () => expect(await share('stopped')).toBe(0));
  expect(await revisions('stopped')).toBe('1:4 2:1');
  held.delete('stopped');
  await until('stopped', { phase: 'Aborted', reason: 'AbortAsked' });
  await eventually('its pods go', async () => expect(await revisions('stopped')).toBe('1:4 2:0z'));
  await eventually('a pipeline sees it', async () =>
    expect(await world.condition('stopped', 'Stalled')).toMatchObject({
      status: 'True',
      reason: 'RolloutAborted',
      message: expect.stringContaining('stable serves with 4 of 4'),
    }),
  );
  await eventually('Events tell it', async () =>
    expect(await reasons('stopped')).toEqual(expect.arrayContaining(['CanaryAborted', 'RolloutAborted'])),
  );
  expect(await rollout('status', 'stopped')).toMatchObject({ code: 1 });
  expect((await rollout('retry', 'stopped')).code).toBe(0);
  const { canary } = await until('stopped', { phase: 'Paused', canary: { attempt: 2, share: 25 } });
  expect(canary.revision).toBe(revision);
  expect(await rollout('promote', 'stopped')).toMatchObject({
    code: 0,
    stdout: expect.stringContaining(`corelane.dev/rollout-promote: ${revision}#2:1`),
  });
  await untilComplete('stopped');
  expect(await revisions('stopped')).toMatch(/^1:[14]z 2:4$/);
});

test('status tells how far it is, and abort by a command', async () => {
  await atTheStep('told');
  expect(await rollout('status', 'told', '-w')).toMatchObject({
    code: 2,
    stdout: expect.stringMatching(/^paused: .*step 1 of 1: 25 %.*5 of 5 pods know it.*corelane rollout promote told/),
  });
  expect((await rollout('abort', 'told')).code).toBe(0);
  await until('told', { phase: 'Aborted' });
});

test('back to the stable revision: nothing is wrong', async () => {
  await atTheStep('back');
  await world.patchSpec('back', image(1));
  await untilComplete('back');
  await eventually('its pods have gone', async () => expect(await revisions('back')).toBe('1:4 2:0z'));
  expect(await world.condition('back', 'Stalled')).toMatchObject({ status: 'False' });
  await eventually('an Event tells it', async () => expect(await reasons('back')).toContain('CanaryEnded'));
});

test('pods of a data plane that knows no canary: it waits, and says what to do', async () => {
  old.add('aged');
  await running('aged', APPROVED);
  await world.patchSpec('aged', image(2));
  const { message } = await until('aged', { phase: 'Preparing', reason: 'DataPlaneTooOld' });
  expect(message).toContain('5 of 5 pods take no part in a canary');
  expect(await share('aged')).toBe(0);
});

test('an operator that is killed in the middle: the next one goes on where it was', async () => {
  const revision = await atTheStep('orphan');
  await killOperator();
  await startOperator();
  await annotate('orphan', { 'corelane.dev/rollout-promote': revision });
  await untilComplete('orphan');
  await eventually('the one before rests', async () => expect(await revisions('orphan')).toBe('1:1z 2:4'));
});

test('what somebody sets in the file of live settings is no share', async () => {
  await atTheStep('forged');
  const text = await settings('forged');
  await world.admin.patch(world.path('ConfigMap', 'forged-live'), {
    data: { settings: text.replace('canary-share=2500', 'canary-share=10000') },
  });
  await eventually('it is taken back', async () => expect(await share('forged')).toBe(2_500));
});

test('requests of it fail under traffic: it is over by itself, with figures, also for the next operator', async () => {
  await runningWith('judged', judged({}, { share: 25, for: '1h' }));
  traffic.set('judged', { requests: 2, errors: 0 });
  await world.patchSpec('judged', image(2));
  await until('judged', { phase: 'Stepping', reason: 'Counting', canary: { share: 25 } });
  await until('judged', { canary: { analysis: { errors: { canary: 0, stable: 0 } } } });
  traffic.set('judged', { requests: 2, errors: 2 });
  const { message, canary } = await until('judged', { phase: 'Aborted', reason: 'TooManyErrors' });
  expect(message).toMatch(/requests failed, stable 0 of \d+; stable serves with 4 of 4/);
  expect(canary.analysis.errors.canary).toBeGreaterThanOrEqual(4);
  expect(canary.analysis.requests.canary).toBeGreaterThanOrEqual(canary.analysis.errors.canary);
  expect(canary.analysis.evidence.errors).toBe(100);
  await eventually('its pods go', async () => expect(await revisions('judged')).toBe('1:4 2:0z'));
  await eventually('a pipeline sees it', async () =>
    expect(await world.condition('judged', 'Stalled')).toMatchObject({
      ...{ status: 'True', reason: 'RolloutAborted' },
      message: expect.stringMatching(asTold(TOLD.canaryJudged)),
    }),
  );
  await eventually('Events tell it', async () => expect(await reasons('judged')).toContain('CanaryAborted'));
  expect(await rollout('status', 'judged')).toMatchObject({
    code: 1,
    stdout: expect.stringContaining('requests failed, stable 0 of'),
  });
  const metrics = await operator.metrics();
  const labels = { namespace: 'canary', renderservice: 'judged', what: 'errors', side: 'canary' };
  expect(
    metrics.find((one) => one.name === 'corelane_renderservice_rollout_judged' && isLike(one.labels, labels))?.value,
  ).toBe(canary.analysis.errors.canary);
  await killOperator();
  await startOperator();
  traffic.delete('judged');
  await world.patchSpec('judged', { replicas: 5 });
  const after = await until('judged', { phase: 'Aborted', reason: 'TooManyErrors' });
  expect(after.canary.analysis).toEqual(canary.analysis);
});

const isLike = (labels: Record<string, string>, wanted: Record<string, string>) =>
  Object.entries(wanted).every(([key, value]) => labels[key] === value);

test('no worse, with as many requests as it needs: all of it by itself', async () => {
  await runningWith('good', judged({ minRequests: 20 }, { share: 25, for: '1s' }, { share: 50, for: '1s' }));
  traffic.set('good', { requests: 2, errors: 0 });
  await world.patchSpec('good', image(2));
  await untilComplete('good');
  expect(await revisions('good')).toMatch(/^1:[14]z 2:4$/);
});
