/** What the condition ScalingActive says about a round. */
import type { RenderServiceResource } from '../../src/api/resource.ts';
import { type ScalingSpec, scaling } from '../../src/api/scaling.ts';
import { policyOf } from '../../src/autoscale/policy.ts';
import type { Reason, Recommendation } from '../../src/autoscale/recommend.ts';
import { nextView, type ScalingView } from '../../src/controller/scaling-status.ts';

const policy = policyOf(scaling.parse({ maxReplicas: 9 }) as ScalingSpec);
const metadata = { name: 'shop', namespace: 'web', uid: 'u', generation: 1, resourceVersion: '1' };

function conditionAfter(reason: Reason) {
  const resource = { metadata, spec: { scaling: {} } } as RenderServiceResource;
  const recommendation = { replicas: 4, reason, message: 'with numbers: 10 %' };
  return nextView(undefined, resource, policy, recommendation, undefined, undefined, 0).condition;
}

test('low CPU of workers whose places are all taken has a way out', () => {
  expect(conditionAfter('PlacesTaken')).toMatchObject({
    type: 'ScalingActive',
    status: 'True',
    reason: 'Measuring',
    message: expect.stringMatching(/all places .* are taken, by renders that wait; scale by occupancy, or .*Auto/),
  });
});

test.each(['WithinBand', 'DeadBand', 'BelowThreshold', 'PlacesTaken'] as const)(
  '%s: no number in it, or each round would be a write',
  (reason) => expect(conditionAfter(reason).message).not.toMatch(/[0-9]/),
);

describe('after a restart', () => {
  const MINUTE = 60_000;
  const told = {
    ...{ type: 'ScalingActive', status: 'True', reason: 'Measuring', message: 'decides on per-core CPU' },
    ...{ lastTransitionTime: '2026-01-01T00:00:00Z', observedGeneration: 1 },
  } as const;
  const resource = {
    metadata,
    spec: { scaling: {} },
    status: { conditions: [told], scaling: { utilizationPercent: 40 } },
  } as unknown as RenderServiceResource;

  interface Round {
    before?: ScalingView;
    service?: RenderServiceResource;
    found?: Pick<Recommendation, 'reason' | 'utilization'>;
    metricsError?: string;
    sinceMs?: number;
  }

  /** Reason and figure after a round. */
  function toldAfter(round: Round): [reason: string, utilizationPercent: number | undefined] {
    const { before, service = resource, found = { reason: 'FillingWindow', utilization: 0.1 }, sinceMs = 0 } = round;
    const recommendation = { replicas: 4, message: '', ...found };
    const view = nextView(before, service, policy, recommendation, round.metricsError, undefined, sinceMs);
    return [view.condition.reason, view.utilizationPercent];
  }

  test('condition and figure stay as they were told while the first window fills', () => {
    expect(toldAfter({ found: { reason: 'NoMetrics' } })).toEqual(['Measuring', 40]);
    expect(toldAfter({ sinceMs: MINUTE })).toEqual(['Measuring', 40]);
    const kept = nextView(
      undefined,
      resource,
      policy,
      { replicas: 4, message: '', reason: 'NoMetrics' },
      undefined,
      undefined,
      0,
    );
    expect(kept.condition).toEqual(told);
    expect(toldAfter({ before: kept, sinceMs: MINUTE })).toEqual(['Measuring', 40]);
  });

  test('a full window ends that, and so does a window of removals that should be full', () => {
    expect(toldAfter({ found: { reason: 'WithinBand', utilization: 0.1 } })).toEqual(['Measuring', 10]);
    // The mean over the window of additions is known by then.
    expect(toldAfter({ sinceMs: 3 * MINUTE })).toEqual(['Measuring', 10]);
    expect(toldAfter({ sinceMs: 6 * MINUTE })).toEqual(['FillingWindow', 10]);
    expect(toldAfter({ found: { reason: 'NoMetrics' }, sinceMs: 2 * MINUTE })).toEqual(['NoMetrics', undefined]);
  });

  test('other findings are told at once', () => {
    expect(toldAfter({ metricsError: 'the Metrics API does not answer', found: { reason: 'NoMetrics' } })[0]).toBe(
      'NoMetrics',
    );
    expect(toldAfter({ found: { reason: 'ScaledToZero' } })[0]).toBe('ScaledToZero');
    expect(toldAfter({ found: { reason: 'AtMaximum' } })[0]).toBe('AtMaximum');
    const before = nextView(
      undefined,
      resource,
      policy,
      { replicas: 4, message: '', reason: 'WithinBand' },
      undefined,
      undefined,
      0,
    );
    expect(toldAfter({ before, sinceMs: MINUTE })[0]).toBe('FillingWindow');
  });

  test('conditions of another generation, or that no full window has given, are not kept', () => {
    expect(toldAfter({ service: { ...resource, metadata: { ...metadata, generation: 2 } } })[0]).toBe('FillingWindow');
    const conditions = [{ ...told, status: 'False', reason: 'Paused' }];
    const service = { ...resource, status: { conditions } } as RenderServiceResource;
    expect(toldAfter({ service })[0]).toBe('FillingWindow');
  });
});
