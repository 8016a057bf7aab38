/** What status says about the workers, out of the pods' samples. */
import type { RenderServiceResource, RenderServiceStatus } from '../../src/api/resource.ts';
import { computeStatus, differsInFiguresOnly, isUnchanged } from '../../src/controller/status.ts';
import type { KubeObject } from '../../src/kube/types.ts';
import { observeFleet } from '../../src/pods/fleet.ts';
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
const metadata = { name: 'shop', namespace: 'web', uid: 'u', generation: 1, resourceVersion: '1' };

function status(resource: Partial<RenderServiceResource>, seen: PodSampler): RenderServiceStatus {
  const fleet = observeFleet(pods, seen);
  const drafts = fleet ? [fleet.condition] : [];
  return computeStatus({ metadata, ...resource } as RenderServiceResource, undefined, pods, drafts, 'now', fleet);
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
    expect(off).toMatchObject({ status: 'True', reason: 'RuntimeAbsent' });
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
    const broken = status({ status: before }, sampler({ a: sample({ workers: [crashing] }) }));
    expect(differsInFiguresOnly(broken, before)).toBe(false);
    expect(differsInFiguresOnly(before, undefined)).toBe(false);
  });
});
