/**
 * What may come in the middle of a canary, against the real controllers.
 *
 * A load test: it waits for deadlines of 10 s, and for requests to be counted.
 */
import { eventually } from '../support/eventually.ts';
import { asTold, TOLD } from '../support/told.ts';
import {
  APPROVED,
  atTheStep,
  image,
  judged,
  killOperator,
  reasons,
  revisions,
  rollout,
  runningWith,
  startOperator,
  traffic,
  until,
  untilComplete,
  useCanaryWorld,
  world,
} from './canary.ts';

useCanaryWorld('canary-load');

test('another change: the first canary ends, the second begins at the first step', async () => {
  const first = await atTheStep('hasty');
  await world.patchSpec('hasty', image(3));
  const { canary } = await until('hasty', { phase: 'Paused', reason: 'AwaitingApproval' });
  expect(canary.revision).not.toBe(first);
  expect(await revisions('hasty')).toBe('1:4 2:0z 3:1');
});

test('pods that never become ready: nobody was ever sent to them', async () => {
  await world.createRenderService('never', {
    ...{ ...image(1), replicas: 2 },
    rollout: { canary: { steps: [APPROVED], analysis: { enabled: false } }, rolling: { progressDeadlineSeconds: 10 } },
  });
  await untilComplete('never');
  await world.patchSpec('never', image(2));
  await until('never', { phase: 'Aborted', reason: 'NeverReady' }, '2');
  expect(await revisions('never')).toMatch(/^1:2 2:0z$|^1:2 2:1$/);
  await eventually('a pipeline sees it', async () =>
    expect(await world.condition('never', 'Stalled')).toMatchObject({
      ...{ status: 'True', reason: 'RolloutAborted' },
      message: expect.stringMatching(asTold(TOLD.canaryAborted)),
    }),
  );
});

test('what a canary remembers is lost: it gets nothing more', async () => {
  await atTheStep('lost');
  const { metadata } = await world.deployment('lost');
  await world.admin.patch(world.path('Deployment', metadata.name), {
    metadata: { annotations: { 'corelane.dev/canary': null } },
  });
  await until('lost', { phase: 'Aborted', reason: 'StatusLost' });
  expect(await revisions('lost')).toMatch(/^1:4 2:[01]z?$/);
});

test('too few requests: it waits, then asks a person, and is no failure', async () => {
  await runningWith('few', judged({ maxWait: '2s' }, { share: 25, for: '1s' }));
  await world.patchSpec('few', image(2));
  const { message } = await until('few', { phase: 'Paused', reason: 'TooFewRequests', canary: { share: 25 } });
  expect(message).toContain('of fewer than 300 of its requests it is known what came of them');
  expect(await world.condition('few', 'Stalled')).toMatchObject({ status: 'False' });
  await eventually('an Event tells it', async () => expect(await reasons('few')).toContain('CanaryTooFewRequests'));
  expect(await rollout('status', 'few', '-w')).toMatchObject({ code: 2 });
  expect((await rollout('promote', 'few')).code).toBe(0);
  await untilComplete('few');
});

test('an operator that is killed while it judges: the next one knows what was written down', async () => {
  await runningWith('watched', judged({ minRequests: 1_000_000 }, { share: 25, for: '1s' }));
  traffic.set('watched', { requests: 50, errors: 0 });
  await world.patchSpec('watched', image(2));
  const before = await until('watched', { reason: 'Analysing', canary: { analysis: { errors: { canary: 0 } } } });
  await killOperator();
  traffic.delete('watched');
  await startOperator();
  const after = await until('watched', { reason: 'Analysing' });
  expect(after.canary.analysis.requests.canary).toBeGreaterThanOrEqual(before.canary.analysis.requests.canary);
  const annotation = (await world.deployment('watched')).metadata.annotations['corelane.dev/canary'];
  expect(annotation.length).toBeLessThan(1_024);
  traffic.set('watched', { requests: 50, errors: 50 });
  await until('watched', { phase: 'Aborted', reason: 'TooManyErrors' });
});
