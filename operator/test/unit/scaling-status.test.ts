/** What the condition ScalingActive says about a round. */
import type { RenderServiceResource } from '../../src/api/resource.ts';
import { type ScalingSpec, scaling } from '../../src/api/scaling.ts';
import { policyOf } from '../../src/autoscale/policy.ts';
import type { Reason } from '../../src/autoscale/recommend.ts';
import { nextView } from '../../src/controller/scaling-status.ts';

const policy = policyOf(scaling.parse({ maxReplicas: 9 }) as ScalingSpec);
const metadata = { name: 'shop', namespace: 'web', uid: 'u', generation: 1, resourceVersion: '1' };

function conditionAfter(reason: Reason) {
  const resource = { metadata, spec: { scaling: {} } } as RenderServiceResource;
  const recommendation = { replicas: 4, reason, message: 'with numbers: 10 %' };
  return nextView(undefined, resource, policy, recommendation, undefined, undefined).condition;
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
