/** What status says about the workers, out of the pods' samples. */
import type { Condition, ConditionDraft } from '../../src/api/conditions.ts';
import type { RenderService, RenderServiceResource, RenderServiceStatus } from '../../src/api/resource.ts';
import { renderServiceSpec } from '../../src/api/validated-spec.ts';
import type { FoundRevision } from '../../src/controller/revisions.ts';
import {
  computeStatus,
  differsInFiguresOnly,
  isUnchanged,
  liveCondition,
  rolloutConditions,
  servingDeployments,
} from '../../src/controller/status.ts';
import type { KubeObject } from '../../src/kube/types.ts';
import { concurrencyEvent } from '../../src/pods/events.ts';
import { observeFleet, type Told } from '../../src/pods/fleet.ts';
import type { PodSample } from '../../src/pods/sample.ts';
import type { PodSampler } from '../../src/pods/sampler.ts';
import { asTold, TOLD } from '../support/told.ts';

const containerStatuses = [0, 1].map((index) => ({ name: `worker-${index}`, ready: true }));
const conditions = [{ type: 'Ready', status: 'True' }];
const pods = ['a', 'b'].map(
  (name) =>
    ({
      metadata: { name, uid: name },
      status: { phase: 'Running', containerStatuses, conditions },
    }) as unknown as KubeObject,
);
const up = { up: true, busy: 0, downs: 0 };

function sample(fields: Partial<PodSample> = {}): PodSample {
  const workers = [0, 1].map((index) => ({ name: `worker-${index}`, ...up }));
  return { workers, queue: 0, queueFullTotal: 0, queueTimeoutTotal: 0, ...fields };
}

/** A sampler that has seen `samples`, by pod. */
function sampler(samples: Record<string, PodSample>, errors: Record<string, string> = {}, hasRound = true): PodSampler {
  const of = ({ metadata }: KubeObject) => samples[metadata.name];
  const errorOf = ({ metadata }: KubeObject) => errors[metadata.name];
  return { of, errorOf, hasRound } as unknown as PodSampler;
}

const crashing = { ...up, name: 'worker-1', up: false, crashLoop: { exitCode: 1, backoffSeconds: 6.4 } };
const NONE = { target: undefined, serving: [], canRest: true };
const metadata = { name: 'shop', namespace: 'web', uid: 'u', generation: 1, resourceVersion: '1' };

function status(resource: Partial<RenderServiceResource>, seen: PodSampler): RenderServiceStatus {
  const fleet = observeFleet(pods, seen);
  const drafts = fleet ? [fleet.condition] : [];
  return computeStatus({ metadata, ...resource } as RenderServiceResource, NONE, pods, drafts, 'now', fleet);
}

describe('the condition WorkersHealthy', () => {
  test('is True when no worker restarts in a loop', () => {
    expect(observeFleet(pods, sampler({ a: sample() }))?.condition).toMatchObject({ status: 'True' });
  });

  test('names worker, pod, exit code and back-off', () => {
    const { condition } = observeFleet(pods, sampler({ a: sample(), b: sample({ workers: [crashing] }) })) ?? {};
    expect(condition).toMatchObject({
      status: 'False',
      reason: 'CrashLoop',
      message: 'worker-1 of pod b restarts in a loop: exit code 1, 7 s between two tries (kubectl logs b -c worker-1)',
    });
    expect(condition?.message).toMatch(asTold(TOLD.crashLoop));
  });

  test('says where the worker runtime is absent', () => {
    const workers = [
      { ...up, name: 'worker-0', runtimeAbsent: true as const },
      { ...up, name: 'worker-1' },
    ];
    const { condition } = observeFleet(pods, sampler({ a: sample({ workers }) })) ?? {};
    expect(condition).toMatchObject({ status: 'True', reason: 'RuntimeAbsent' });
    expect(condition?.message).toMatch(asTold(TOLD.runtimeAbsent));
    expect(condition?.message).toContain('1 of 2 workers');
    const spec = { concurrency: 1, queue: { maxLength: 10, timeout: '10s' }, runtime: { instrument: false } };
    const off = observeFleet(pods, sampler({ a: sample({ workers }) }), spec)?.condition;
    expect(off).toMatchObject({ status: 'True', reason: 'RuntimeOff' });
    expect(off?.message).toMatch(/^the worker runtime is off, as runtime.instrument: false asks;/);
  });

  test('names three and counts the others', () => {
    const workers = Array.from({ length: 5 }, () => crashing);
    const { condition } = observeFleet(pods, sampler({ a: sample({ workers }) })) ?? {};
    expect(condition?.message.match(/worker-1 of pod a/g)).toHaveLength(3);
    expect(condition?.message).toMatch(/; and 2 more$/);
  });

  test('is Unknown, with the reason, when the pods cannot be reached', () => {
    const { condition } = observeFleet(pods, sampler({}, { b: 'time-out' })) ?? {};
    expect(condition?.status).toBe('Unknown');
    expect(condition?.message).toMatch(asTold(TOLD.unreachable));
    expect(condition?.message).toContain('of pod b (time-out)');
  });

  test('of before stays while a new leader has asked nobody yet', () => {
    const before = status({}, sampler({ a: sample({ workers: [{ ...crashing, up: true }] }) }));
    expect(status({ status: before }, sampler({}, {}, false))).toEqual(before);
  });
});

describe('the condition CapacityAvailable', () => {
  const spec = { concurrency: 1, queue: { maxLength: 10, timeout: '10s' }, runtime: { instrument: true } };
  const busy = [0, 1].map((index) => ({ name: `worker-${index}`, ...up, busy: 1 }));
  const full = sample({ workers: busy, queue: 9 });
  const statusOf = (samples: Record<string, PodSample>, wasFull = false) =>
    observeFleet(pods, sampler(samples), spec, wasFull)?.capacity?.status;

  test('is False only when no pod has a free worker or a place in its queue', () => {
    expect(statusOf({ a: full, b: full })).toBe('False');
    const { message } = observeFleet(pods, sampler({ a: full, b: full }), spec)?.capacity ?? {};
    expect(message).toMatch(asTold(TOLD.full));
    expect(statusOf({ a: full, b: { ...full, queue: 8 } })).toBe('True');
    expect(statusOf({ a: full, b: { ...full, workers: [{ ...up, name: 'worker-0' }] } })).toBe('True');
  });

  test('stays False until some queue is less than half full', () => {
    expect(statusOf({ a: full, b: { ...full, queue: 5 } }, true)).toBe('False');
    expect(statusOf({ a: full, b: { ...full, queue: 4 } }, true)).toBe('True');
  });

  test('is False when every worker is down, however short the queue', () => {
    const dead = sample({ workers: [{ ...up, name: 'worker-0', up: false }] });
    expect(statusOf({ a: dead, b: dead })).toBe('False');
  });

  test('a worker that is down is no capacity', () => {
    expect(statusOf({ a: full, b: { ...full, workers: [{ ...up, name: 'worker-0', up: false }] } })).toBe('False');
  });

  test('a worker without a free place is no room, but its queue is', () => {
    const blocked = { ...full, workers: [{ ...up, name: 'worker-0', blocked: true as const }] };
    expect(statusOf({ a: full, b: blocked })).toBe('False');
    expect(statusOf({ a: full, b: { ...blocked, queue: 2 } })).toBe('True');
  });

  test('is not there as long as no pod has told anything', () => {
    expect(observeFleet(pods, sampler({}, { a: 'time-out' }), spec)?.capacity).toBeUndefined();
  });
});

describe('concurrency: Auto', () => {
  const auto = renderServiceSpec.parse({
    template: { spec: { containers: [{ name: 'worker', image: 'example/app:1' }] } },
    concurrency: 'Auto',
    concurrencyRange: { max: 8 },
    queue: { maxLength: 10 },
  });
  const withPlaces = (...places: (number | undefined)[]) =>
    sample({ workers: places.map((one, index) => ({ ...up, name: `worker-${index}`, ...(one && { places: one }) })) });
  const observed = (samples: Record<string, PodSample>) => observeFleet(pods, sampler(samples), auto);

  test.each([
    [[1, 1], [1, 1], { lowest: 1, median: 1, highest: 1 }, 'SingleFlight', /^4 workers get 1 at a time/],
    [[1, 3], [4, 3], { lowest: 1, median: 3, highest: 4 }, 'Tuned', /^4 workers get 1 to 4 \(median 3\) at a time/],
    [[8, 3], [8, 3], { lowest: 3, median: 3, highest: 8 }, 'AtMaximum', /2 of them are at concurrencyRange\.max/],
    [[2, undefined], [2], { lowest: 2, median: 2, highest: 2 }, 'Tuned', /^2 workers get 2 at a time/],
  ])('%j and %j', (a, b, concurrency, reason, message) => {
    const fleet = observed({ a: withPlaces(...a), b: withPlaces(...b) });
    expect(fleet).toMatchObject({
      concurrency,
      tuned: { type: 'ConcurrencyTuned', status: 'True', reason, message: expect.stringMatching(message) },
    });
  });

  test('a worker that is down has found nothing; who has told nothing is not known', () => {
    const down = sample({ workers: [{ ...up, name: 'worker-0', up: false, places: 7 }] });
    expect(observed({ a: down, b: withPlaces(2) })?.concurrency).toEqual({ lowest: 2, median: 2, highest: 2 });
    expect(observed({ a: down })).toMatchObject({ tuned: { status: 'Unknown', reason: 'NotSampled' } });
    expect(observed({})).toMatchObject({ tuned: { status: 'Unknown', reason: 'NotSampled' } });
  });

  test('is not there with a number', () => {
    const { concurrency, tuned } = observeFleet(pods, sampler({ a: withPlaces(2) }), { ...auto, concurrency: 2 }) ?? {};
    expect([concurrency, tuned]).toEqual([undefined, undefined]);
  });

  test('room is a place of the moment', () => {
    const full = (places: number) => sample({ queue: 10, workers: [{ ...up, name: 'worker-0', busy: 3, places }] });
    expect(observed({ a: full(3) })?.capacity?.status).toBe('False');
    expect(observed({ a: full(4) })?.capacity?.status).toBe('True');
  });

  test('another range is no reason to write at once, another reason is; without it, it goes', () => {
    const statusOf = (before: RenderServiceStatus | undefined, places: number) => {
      const seen = sampler({ a: withPlaces(places) });
      const fleet = observeFleet(pods, seen, auto);
      const drafts = [fleet?.condition, fleet?.tuned].filter((draft) => draft !== undefined);
      const resource = { metadata, ...(before && { status: before }) } as RenderServiceResource;
      return computeStatus(resource, NONE, pods, drafts, 'now', fleet);
    };
    const before = statusOf(undefined, 3);
    expect(before.concurrency).toEqual({ lowest: 3, median: 3, highest: 3 });
    expect(differsInFiguresOnly(statusOf(before, 4), before)).toBe(true);
    expect(differsInFiguresOnly(statusOf(before, 8), before)).toBe(false);
    const fixed = computeStatus({ metadata, status: before } as RenderServiceResource, NONE, pods, [], 'now', {
      condition: { type: 'WorkersHealthy', status: 'True', reason: 'WorkersUp', message: '' },
    });
    expect(fixed.concurrency).toBeUndefined();
    expect(isUnchanged(fixed, { status: before } as RenderServiceResource)).toBe(false);
  });
});

describe('a number of requests at a time that is too small', () => {
  const spec = { concurrency: 1, queue: { maxLength: 10, timeout: '10s' }, runtime: { instrument: true } };
  const idle = sample({ areWorkersIdle: true });
  const tunedOf = (samples: Record<string, PodSample>, told?: Told, concurrency = 1) =>
    observeFleet(pods, sampler(samples, { b: 'time-out' }), { ...spec, concurrency }, false, told)?.tuned;
  const tuned = tunedOf({ a: idle, b: idle }) as ConditionDraft;

  test('is told when half of the pods have workers that are taken and idle', () => {
    expect(tuned).toMatchObject({ type: 'ConcurrencyTuned', status: 'False', reason: 'RendersWait' });
    expect(tuned.message).toMatch(/^concurrency: 1 limits the service: .* Set concurrency: Auto, or/);
    expect(tunedOf({ a: idle, b: sample() })).toEqual(tuned);
    expect(tunedOf({ a: sample(), b: sample() })).toBeUndefined();
    const third = { ...pods[0], metadata: { name: 'c', uid: 'c' } } as KubeObject;
    const samples = { a: idle, b: sample(), c: sample() };
    expect(observeFleet([...pods, third], sampler(samples), spec)?.tuned).toBeUndefined();
  });

  test('stays told for a day, of the same number, whether pods answer or not', () => {
    const lastTransitionTime = '2026-01-01T00:00:00Z';
    const hoursLater = (hours: number): Told => ({
      condition: { ...tuned, lastTransitionTime },
      nowMs: Date.parse(lastTransitionTime) + 3_600_000 * hours,
    });
    expect(tunedOf({ a: sample() }, hoursLater(23))).toEqual(tuned);
    expect(tunedOf({}, hoursLater(23))).toEqual(tuned);
    expect(tunedOf({ a: sample() }, hoursLater(24))).toBeUndefined();
    expect(tunedOf({ a: idle }, hoursLater(24))).toEqual(tuned);
    expect(tunedOf({ a: sample() }, hoursLater(1), 2)).toBeUndefined();
  });

  test('is an Event once', () => {
    const event = { type: 'Warning', reason: 'RendersWait', action: 'Observe', note: tuned.message };
    expect(concurrencyEvent(undefined, [tuned])).toEqual(event);
    expect(concurrencyEvent([{ ...tuned, status: 'True' }], [tuned])).toEqual(event);
    expect(concurrencyEvent([tuned], [tuned])).toBeUndefined();
    expect(concurrencyEvent([tuned], [])).toBeUndefined();
    const other = tunedOf({ a: idle }, undefined, 2) as ConditionDraft;
    expect(concurrencyEvent([tuned], [other])?.note).toMatch(/^concurrency: 2 /);
  });
});

test('pods of a data plane that keeps nobody at a revision are told, where people are to stay at one', () => {
  const live = {
    serial: '1',
    generation: 1,
    pods: 3,
    have: 3,
    others: 0,
    silent: 0,
    unasked: 0,
    knowing: 3,
    keeping: 1,
    sinceMs: 0,
  };
  const told = (view: typeof live, cookie?: 'Off' | 'Canary' | 'Always') =>
    liveCondition(view, 1, cookie).map(({ status, reason }) => `${status} ${reason}`);
  expect(told(live, 'Always')).toEqual(['True DataPlaneTooOld']);
  expect(liveCondition(live, 1, 'Always')[0]?.message).toContain(
    '2 of them do not know rollout.stickiness.cookie: Always',
  );
  for (const cookie of ['Off', 'Canary', undefined] as const) expect(told(live, cookie)).toEqual(['True AllPods']);
  expect(told({ ...live, keeping: 3 }, 'Always')).toEqual(['True AllPods']);
  expect(told({ ...live, have: 2, others: 1 }, 'Always')).toEqual(['False Waiting']);
});

test('a process that has just begun to lead has no news, and none of another order', () => {
  const draft = (type: ConditionDraft['type']) => ({ type, status: 'True', reason: 'Yes', message: '' }) as const;
  const drafts = ['Ready', 'WorkersHealthy', 'LiveSettingsApplied', 'DataPlaneCurrent'] as const;
  const live = {
    serial: '1',
    generation: 1,
    pods: 2,
    have: 2,
    others: 0,
    silent: 0,
    unasked: 0,
    knowing: 2,
    keeping: 2,
    sinceMs: 0,
  };
  const resource = (before?: RenderServiceStatus) =>
    ({ metadata, ...(before && { status: before }) }) as RenderServiceResource;
  const fleet = observeFleet(pods, sampler({ a: sample(), b: sample() }));
  const before = computeStatus(resource(), NONE, pods, drafts.map(draft), 'before', fleet, live);
  const unasked = { ...live, have: 0, silent: 2, unasked: 2 };
  const known = (['Ready', 'DataPlaneCurrent'] as const).map(draft);
  const now = computeStatus(resource(before), NONE, pods, known, 'now', undefined, unasked);
  expect(isUnchanged(now, resource(before))).toBe(true);
  expect(now.conditions?.map(({ type }) => type)).toEqual(drafts);
  // One that was asked, and does not answer, is news.
  const silent = { ...unasked, unasked: 0 };
  expect(isUnchanged(computeStatus(resource(before), NONE, pods, known, 'now', fleet, silent), resource(before))).toBe(
    false,
  );
});

test('a restart tells no other number of workers that are up before anybody was asked', () => {
  const before = status({}, sampler({ a: sample({ workers: [{ ...up, name: 'worker-0' }, crashing] }), b: sample() }));
  expect(before.workers?.ready).toBe(3);
  const after = status({ status: before }, sampler({}, {}, false));
  expect(isUnchanged(after, { status: before } as RenderServiceResource)).toBe(true);
});

describe('live settings of a generation that could not be written', () => {
  const view = {
    ...{ serial: '1', generation: 1, pods: 2, have: 2, others: 0, silent: 0, unasked: 0, knowing: 2, keeping: 2 },
    sinceMs: 0,
  };
  const next = { ...metadata, generation: 2 };

  test('are not called applied, although all pods have those of before', () => {
    expect(liveCondition(view, 1)).toMatchObject([{ status: 'True', reason: 'AllPods' }]);
    const drafts = liveCondition(view, 2);
    expect(drafts).toMatchObject([{ status: 'False', reason: 'NotWritten' }]);
    const before = { liveSettings: { observedGeneration: 1, pods: 2 } } as RenderServiceStatus;
    const resource = { metadata: next, status: before } as RenderServiceResource;
    const { liveSettings } = computeStatus(resource, NONE, pods, drafts, 'now', undefined, view);
    expect(liveSettings).toEqual({ observedGeneration: 1, pods: 0 });
  });

  test('are what they were told to be where this process could not write any yet', () => {
    const told = [{ ...liveCondition(view, 1)[0], lastTransitionTime: 'before', observedGeneration: 1 }];
    const before = { liveSettings: { observedGeneration: 1, pods: 2 }, conditions: told } as RenderServiceStatus;
    const after = computeStatus({ metadata: next, status: before } as RenderServiceResource, NONE, pods, [], 'now');
    expect([after.conditions, after.liveSettings]).toEqual([told, before.liveSettings]);
  });
});

describe('Ready', () => {
  const renderService = {
    metadata: { ...metadata, generation: 2 },
    spec: { replicas: 2, rollout: { rolling: { progressDeadlineSeconds: 600 } } },
  } as unknown as RenderService;
  const target = {
    kind: 'Deployment',
    metadata: { name: 'shop', generation: 1 },
    status: { observedGeneration: 1, replicas: 2, updatedReplicas: 2, availableReplicas: 2 },
  } as unknown as KubeObject;
  const view = {
    ...{ serial: '2', generation: 2, pods: 2, have: 1, others: 1, silent: 0, unasked: 0, knowing: 2, keeping: 2 },
    sinceMs: 0,
  };
  const refuses = liveCondition(view, 2)[0] as ConditionDraft;
  const toldOf = (status: 'True' | 'Unknown', observedGeneration: number): Condition[] =>
    [{ type: 'Ready', status, reason: 'R', message: '' } as const, refuses].map((one) => ({
      ...(one as ConditionDraft),
      ...{ lastTransitionTime: 'before', observedGeneration },
    }));
  const readyOf = (live: { view: typeof view; forMs: number } | undefined, told?: Condition[]) => {
    const rollout = { phase: 'Complete', revisions: [] } as never;
    const circumstances = { rollout, live, told, now: new Date() };
    const deployments = { target, serving: [target], canRest: true };
    return rolloutConditions(renderService, deployments, pods, circumstances).find(({ type }) => type === 'Ready');
  };

  test('waits two minutes for a pod that refuses its settings', () => {
    expect(readyOf({ view, forMs: 119_999 })).toMatchObject({
      status: 'Unknown',
      message: '1 of 2 pods have the live settings',
    });
    expect(readyOf({ view, forMs: 120_000 })).toMatchObject({ status: 'True' });
  });

  test('stays True where the leader before has waited for that pod', () => {
    expect(readyOf({ view, forMs: 0 }, toldOf('True', 2))).toMatchObject({ status: 'True' });
    expect(readyOf({ view, forMs: 0 }, toldOf('Unknown', 2))).toMatchObject({ status: 'Unknown' });
    // Of earlier settings.
    expect(readyOf({ view, forMs: 0 }, toldOf('True', 1))).toMatchObject({ status: 'Unknown' });
  });

  test('is not True while the API server has other live settings', () => {
    const message = 'the live settings are not written yet';
    const isAll = { ...view, have: 2, others: 0 };
    expect(readyOf({ view: isAll, forMs: 120_000 })).toMatchObject({ status: 'True' });
    expect(readyOf({ view: { ...isAll, generation: 1 }, forMs: 120_000 })).toMatchObject({
      status: 'Unknown',
      message,
    });
    expect(readyOf(undefined)).toMatchObject({ status: 'Unknown', message });
  });
});

test('pods of an earlier revision are not called updated where that of the spec is refused', () => {
  const deployment = { kind: 'Deployment', metadata: { name: 'shop-1' }, status: { updatedReplicas: 2 } };
  const found = [{ id: '1', deployment, canRest: true }] as unknown as FoundRevision[];
  const updated = (asked?: string) =>
    computeStatus({ metadata } as RenderServiceResource, servingDeployments(found, asked), pods, [], 'now')
      .updatedReplicas;
  expect([updated(), updated('1'), updated('2')]).toEqual([2, 2, 0]);
});

describe('metrics', () => {
  test('are sums over the pods, and a worker that is down is not ready', () => {
    const a = sample({ queue: 3, workers: [{ ...up, name: 'worker-0', busy: 1 }, crashing] });
    expect(status({}, sampler({ a, b: sample({ queue: 1 }) }))).toMatchObject({
      workers: { total: 4, ready: 3, busy: 1 },
      queue: { length: 4 },
    });
  });

  test('go away when they are no longer known', () => {
    const before = status({}, sampler({ a: sample({ queue: 3 }) }));
    const after = status({ status: before }, sampler({}, { a: 'no route' }));
    expect([after.queue, after.workers?.busy]).toEqual([undefined, undefined]);
    expect(isUnchanged(after, { status: before } as RenderServiceResource)).toBe(false);
  });

  test('alone are no reason to write at once; anything else is', () => {
    const before = status({}, sampler({ a: sample() }));
    const busier = status({ status: before }, sampler({ a: sample({ queue: 2 }) }));
    expect(isUnchanged(before, { status: before } as RenderServiceResource)).toBe(true);
    expect(isUnchanged(busier, { status: before } as RenderServiceResource)).toBe(false);
    expect(differsInFiguresOnly(busier, before)).toBe(true);
    const served = { ...before, objectives: { seconds: 300, requests: 9, availabilityPercent: 99.9 } };
    expect(isUnchanged(served, { status: before } as RenderServiceResource)).toBe(false);
    expect(differsInFiguresOnly(served, before)).toBe(true);
    const broken = status({ status: before }, sampler({ a: sample({ workers: [crashing] }) }));
    expect(differsInFiguresOnly(broken, before)).toBe(false);
    expect(differsInFiguresOnly(before, undefined)).toBe(false);
  });
});
