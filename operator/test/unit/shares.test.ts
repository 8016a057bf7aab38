/** Between a canary as it is decided, and the spec, the file of live settings and status. */
import { parseStored, type RenderService } from '../../src/api/resource.ts';
import { reducePast } from '../../src/controller/past-revision.ts';
import { rolloutEvent } from '../../src/controller/rollout-events.ts';
import { type RolloutStatus, rolloutStatus } from '../../src/controller/rollout-status.ts';
import { isCanaryUnderWay, withoutDown } from '../../src/controller/scaling-status.ts';
import {
  canaryPlanOf,
  confirmAtMs,
  factsOf,
  liveCanary,
  toldShares,
  watchSubject,
} from '../../src/controller/shares.ts';
import type { KubeObject } from '../../src/kube/types.ts';
import { liveSerial, renderLive } from '../../src/render/live.ts';
import type { CanaryState } from '../../src/rollout/canary-state.ts';
import type { CanaryView } from '../../src/rollout/canary-world.ts';
import type { Evidence } from '../../src/rollout/evidence.ts';
import type { Revision } from '../../src/rollout/next-replicas.ts';

const [A, B] = ['0123456789', 'abcdefabcd'];
const NOW = Date.parse('2026-01-01T00:00:00Z');
const SHARES = { revision: B, stable: A, share: 2_500 };
const MINUTE = 60_000;

function service(canary: object): RenderService {
  const metadata = { name: 'shop', namespace: 'web', uid: 'u', generation: 1, resourceVersion: '1' };
  const template = { spec: { containers: [{ name: 'worker', image: 'shop:1' }] } };
  const parsed = parseStored({ apiVersion: '', kind: '', metadata, spec: { template, rollout: { canary } } });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.errors));
  return parsed.renderService;
}

const STEPS = [
  { share: 0.07, for: '90s' },
  { share: 0.29, approval: true },
  { share: 12.5, for: '1h' },
];

test('shares are whole hundredths of a percent', () => {
  const { canary } = service({ steps: STEPS }).spec.rollout;
  expect(canaryPlanOf(canary)).toEqual({
    steps: [
      { share: 7, forMs: 90_000, approval: false },
      { share: 29, forMs: 0, approval: true },
      { share: 1_250, forMs: 3_600_000, approval: false },
    ],
    minReplicas: 1,
    analysis: expect.anything(),
  });
  expect(canaryPlanOf(undefined)).toBeUndefined();
});

test('what it is judged by: as the spec says, by default all, and nothing where nobody wants that', () => {
  const plan = (analysis?: object) => canaryPlanOf(service({ steps: STEPS, analysis }).spec.rollout.canary)?.analysis;
  expect(plan()).toEqual({
    ...{ minRequests: 300, maxWaitMs: 3_600_000, ratio: 1.5, errorFloor: 0.005, slowerThan: 1.25, isPausing: false },
  });
  const all = {
    ...{ minRequests: 0, maxWait: '5m', errors: { ratio: 3, floorPercent: 2 } },
    ...{ latency: { slowerThan: 2 }, onFailure: 'Pause' },
  };
  expect(plan(all)).toEqual({
    ...{ minRequests: 0, maxWaitMs: 300_000, ratio: 3, errorFloor: 0.02, slowerThan: 2, isPausing: true },
  });
  expect(plan({ latency: { enabled: false } })?.slowerThan).toBeUndefined();
  expect(plan({ enabled: false })).toBeUndefined();
});

test('who is looked at: a canary that is under way and judged', () => {
  const { spec } = service({ steps: STEPS });
  const stateOf = (phase: CanaryState['phase']): CanaryState => ({
    ...{ phase, attempt: 2, stable: A, target: 500, share: 500, sinceMs: 0, countedMs: 0, reached: 1 },
  });
  const view = { revision: B } as CanaryView;
  const of = (phase: CanaryState['phase'], canary: CanaryView | undefined = view) =>
    watchSubject({ canary, states: new Map([[B, stateOf(phase)]]) }, { spec });
  expect(of('Stepping')).toMatchObject({ revision: B, attempt: 2, stable: A, share: 500, plan: { minRequests: 300 } });
  expect([of('Preparing'), of('Promoting')].every((one) => one !== undefined)).toBe(true);
  for (const phase of ['Aborting', 'Aborted', 'Over', 'Retiring'] as const) expect(of(phase)).toBeUndefined();
  expect(watchSubject({ canary: undefined, states: new Map() }, { spec })).toBeUndefined();
  const unjudged = service({ steps: STEPS, analysis: { enabled: false } });
  expect(watchSubject({ canary: view, states: new Map([[B, stateOf('Stepping')]]) }, unjudged)).toBeUndefined();
});

test('facts are those annotations', () => {
  const facts = factsOf({
    annotations: {
      ...{ 'corelane.dev/rollout-promote': `${B}:2`, 'corelane.dev/rollout-abort': A },
      ...{ 'corelane.dev/rollout-retry': `${B}#2`, 'corelane.dev/other': B },
    },
  });
  expect(facts).toEqual({
    promote: { revision: B, attempt: 1, step: 2 },
    abort: A,
    retry: { revision: B, attempt: 2 },
  });
  expect(factsOf({})).toEqual({ promote: undefined, abort: undefined, retry: undefined });
});

describe('the file', () => {
  const { spec } = service({ steps: STEPS, key: { cookie: 'user' }, match: [{ query: 'canary', value: 'always' }] });
  const written = (told?: Parameters<typeof liveCanary>[2], nowMs = NOW, shares = SHARES) =>
    liveCanary(shares, spec.rollout.canary, told, nowMs);
  const read = (canary: ReturnType<typeof written>) =>
    toldShares(renderLive(spec, undefined, undefined, canary).settings, [A, B]);

  test('says what was decided, and is read back', () => {
    expect(written()).toEqual({
      ...{ ...SHARES, untilSeconds: (NOW + 10 * MINUTE) / 1_000 },
      ...{ key: { cookie: 'user' }, match: [{ query: 'canary', value: 'always' }] },
    });
    expect(read(written())).toEqual({ ...SHARES, untilMs: NOW + 10 * MINUTE });
  });

  test('of revisions that there are not, or nothing, is nothing', () => {
    const { settings } = renderLive(spec, undefined, undefined, written());
    expect(toldShares(settings, [A])).toBeUndefined();
    expect(toldShares(renderLive(spec).settings, [A, B])).toBeUndefined();
    expect(toldShares(undefined, [A, B])).toBeUndefined();
  });

  test('is confirmed when half of its time is over, and nobody is asked again for that', () => {
    const told = read(written());
    expect(written(told, NOW + 4 * MINUTE)).toEqual(written());
    const later = written(told, NOW + 5 * MINUTE);
    expect(later.untilSeconds).toBe((NOW + 15 * MINUTE) / 1_000);
    expect(confirmAtMs(written())).toBe(NOW + 5 * MINUTE);
    const serial = (canary: ReturnType<typeof written>) => liveSerial(renderLive(spec, undefined, undefined, canary));
    expect(serial(later)).toBe(serial(written()));
    expect(serial(written(told, NOW, { ...SHARES, share: 5_000 }))).not.toBe(serial(written()));
  });

  test('another share has all of its time, and so has one of a clock that was ahead', () => {
    const told = { ...SHARES, untilMs: NOW + 6 * MINUTE };
    expect(written(told, NOW, { ...SHARES, share: 5_000 }).untilSeconds).toBe((NOW + 10 * MINUTE) / 1_000);
    expect(written({ ...told, untilMs: NOW + 1e9 }).untilSeconds).toBe((NOW + 10 * MINUTE) / 1_000);
  });

  test('a share of nothing has no end, and is never confirmed', () => {
    const nothing = written(undefined, NOW, { ...SHARES, share: 0 });
    expect([nothing.untilSeconds, confirmAtMs(nothing)]).toEqual([0, undefined]);
    expect(read(nothing)?.untilMs).toBe(Number.POSITIVE_INFINITY);
  });
});

const VIEW: CanaryView = {
  ...{ revision: B, stable: A, attempt: 1, step: 1, steps: 2, share: 500, sinceMs: NOW },
  ...{ reason: 'Counting', message: 'step 1 of 2: 5 %; its time runs' },
};
const REVISIONS: Revision[] = [B, A].map((id, index) => ({
  ...{ id, number: 2 - index, replicas: 4, available: 3, wasComplete: true, canRest: true },
}));

function statusOf(view: Partial<CanaryView> | undefined, phase: RolloutStatus['phase'], before?: RolloutStatus) {
  const canary = view && { ...VIEW, ...view };
  return rolloutStatus(before, { revisions: REVISIONS, phase, canary }, 900_000, new Date(NOW), { pods: 5, have: 4 });
}

describe('the status', () => {
  test('has percentages, times, and how many pods know it', () => {
    expect(statusOf({ untilMs: NOW + MINUTE }, 'Stepping')).toMatchObject({
      ...{ phase: 'Stepping', reason: 'Counting' },
      message: 'step 1 of 2: 5 %; its time runs until 2026-01-01T00:01:00Z',
      canary: { share: 5, appliedPods: 4, pods: 5, since: '2026-01-01T00:00:00Z', until: '2026-01-01T00:01:00Z' },
      stable: { revision: A, replicas: 4, available: 3 },
    });
  });

  test('has what it is judged by, and takes it away when another try begins', () => {
    const figures = (requests: number, errors: number) => ({ requests, errors, renders: requests - errors, slow: 1 });
    const evidence: Evidence = {
      ...{ share: 500, canary: figures(80, 12), stable: figures(1_500, 1), before: figures(0, 0), slowMs: 118.9 },
      logs: { errors: [3, 4, 5], slow: [-10, -10, -10] },
    };
    const judged = statusOf({ evidence }, 'Stepping');
    expect(judged.canary?.analysis).toEqual({
      ...{ requests: { canary: 80, stable: 1_500 }, errors: { canary: 12, stable: 1 } },
      ...{ renders: { canary: 68, stable: 1_499 }, slow: { canary: 1, stable: 1 } },
      ...{ slowMs: 118.9, evidence: { errors: 74, slow: 0 } },
    });
    const { slowMs: _unused, ...unknown } = evidence;
    expect(statusOf({ evidence: unknown }, 'Stepping', judged).canary?.analysis).toMatchObject({ slowMs: null });
    expect(statusOf({ attempt: 2 }, 'Preparing', judged).canary).toMatchObject({ analysis: null });
  });

  test('takes away what is over: it is a merge patch', () => {
    const before = statusOf({ untilMs: NOW + MINUTE }, 'Stepping');
    expect(statusOf({}, 'Stepping', before).canary).toMatchObject({ until: null });
    expect(statusOf(undefined, 'Complete', before)).toMatchObject({
      ...{ reason: null, message: null, canary: null, stable: null },
    });
    expect(Object.keys(statusOf(undefined, 'Complete'))).toEqual(['phase', 'revision', 'revisions', 'progressTime']);
  });
});

describe('Events', () => {
  const stepping = statusOf({}, 'Stepping');
  test.each<[what: string, before: RolloutStatus | undefined, after: RolloutStatus, reason: string | undefined]>([
    ['it begins', statusOf(undefined, 'Complete'), statusOf({ share: 0, step: 0 }, 'Preparing'), 'CanaryStarted'],
    ['another try', stepping, statusOf({ attempt: 2, share: 0 }, 'Preparing'), 'CanaryStarted'],
    ['its share', statusOf({ share: 0 }, 'Preparing'), stepping, 'CanaryShare'],
    ['a larger one', stepping, statusOf({ share: 2_500 }, 'Stepping'), 'CanaryShare'],
    ['nothing new', stepping, statusOf({ message: 'other' }, 'Stepping'), undefined],
    ['it waits', stepping, statusOf({ reason: 'AwaitingApproval' }, 'Paused'), 'CanaryAwaitsApproval'],
    ['it has too few requests', stepping, statusOf({ reason: 'TooFewRequests' }, 'Paused'), 'CanaryTooFewRequests'],
    ['it may be worse', stepping, statusOf({ reason: 'Inconclusive' }, 'Paused'), 'CanaryInconclusive'],
    ['it is worse, and waits', stepping, statusOf({ reason: 'TooManyErrors' }, 'Paused'), 'CanaryFailing'],
    ['it waits for more', stepping, statusOf({ reason: 'Analysing' }, 'Stepping'), undefined],
    ['it was too bad', stepping, statusOf({ reason: 'TooSlow', share: 0 }, 'Aborting'), 'CanaryAborted'],
    ['it is stopped', stepping, statusOf({ reason: 'NeverReady', share: 0 }, 'Aborting'), 'CanaryAborted'],
    ['it is taken back', stepping, statusOf({ reason: 'Reverted', share: 0 }, 'Aborting'), 'CanaryEnded'],
    ['it was stopped', stepping, statusOf({ reason: 'NeverReady', share: 0 }, 'Aborted'), undefined],
    ['it is over', statusOf({}, 'Promoting'), statusOf(undefined, 'Complete'), 'CanaryPromoted'],
    ['there is none', statusOf(undefined, 'Rolling'), statusOf(undefined, 'Complete'), undefined],
  ])('%s', (_what, before, after, reason) => expect(rolloutEvent(before, after)?.reason).toBe(reason));
});

test('scaling removes nothing while there is a canary; one that was aborted is none', () => {
  const underWay = (phase: RolloutStatus['phase']) =>
    isCanaryUnderWay({ status: { rollout: statusOf({}, phase) } } as Parameters<typeof isCanaryUnderWay>[0]);
  expect([underWay('Stepping'), underWay('Paused'), underWay('Aborted')]).toEqual([true, true, false]);
  expect([withoutDown(undefined), withoutDown('down'), withoutDown('up'), withoutDown('both')]).toEqual([
    ...['down', 'down', 'both', 'both'],
  ]);
});

test('what a canary remembers is kept of a revision without pods: it was aborted', () => {
  const past = {
    ...{ apiVersion: 'apps/v1', kind: 'Deployment', spec: { replicas: 0 }, status: {} },
    metadata: { name: `shop-${B}`, annotations: { 'corelane.dev/retired': 'then', 'corelane.dev/canary': '{}' } },
  } as unknown as KubeObject;
  expect(reducePast(past).metadata.annotations).toMatchObject({ 'corelane.dev/canary': '{}' });
});
