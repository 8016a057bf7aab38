/** Rules about `spec.rollout.canary`, between its fields and with what cannot be beside it. */
import { durationMs } from './scalars.ts';
import { type CanarySpec, STEPS_MAX } from './spec/canary.ts';
import { isDuration, type SpecRule } from './spec-rule.ts';

const CANARY = 'self.rollout.canary';
const STEPS = `${CANARY}.steps`;
/** Of a step `s`: CEL has that word for itself. */
const FOR = 's.__for__';
/** Places of all steps but the first. */
const FOLLOWERS = Array.from({ length: STEPS_MAX - 1 }, (_unused, index) => index + 1).join(', ');

function onCanary(
  path: string[],
  message: string,
  cel: string,
  holds: (canary: CanarySpec, spec: Parameters<SpecRule['holds']>[0]) => boolean,
): SpecRule {
  return {
    path: ['rollout', 'canary', ...path],
    message,
    cel: `!has(${CANARY}) || ${cel}`,
    holds: (spec) => spec.rollout.canary === undefined || holds(spec.rollout.canary, spec),
  };
}

export const canaryRules: SpecRule[] = [
  onCanary(
    ['steps'],
    'each share must be larger than the one before',
    // Of a list that is made in a rule the API server does not know how long it is, and takes it for too long.
    `[${FOLLOWERS}].all(i, i >= ${STEPS}.size() || ${STEPS}[i].share > ${STEPS}[i - 1].share)`,
    ({ steps }) => steps.every(({ share }, index) => index === 0 || share > (steps[index - 1]?.share ?? 0)),
  ),
  onCanary(
    ['steps'],
    'each must have a time (for), or approval: true: what does neither last nor wait is no step',
    // Inside a list the API server fills in no default (gen/crd.ts).
    `${STEPS}.all(s, has(s.approval) && s.approval || has(${FOR}) && (!${isDuration(FOR)} || duration(${FOR}) > duration('0s')))`,
    ({ steps }) => steps.every((step) => step.approval || durationMs(step.for) > 0),
  ),
  onCanary(
    [],
    'needs pooling.enabled: a pod gives a request to one of the other revision as pooling does; set it to true, or leave canary out',
    'self.pooling.enabled',
    (_canary, { pooling }) => pooling.enabled,
  ),
  onCanary(
    [],
    'works without cache.enabled only: a page that is kept would be given to people of both revisions; set it to false, or leave canary out',
    '!self.cache.enabled',
    (_canary, { cache }) => !cache.enabled,
  ),
  onCanary(
    [],
    'works without webSockets.enabled only: a WebSocket stays in the pod that it has come to; set it to false, or leave canary out',
    '!self.webSockets.enabled',
    (_canary, { webSockets }) => !webSockets.enabled,
  ),
];
