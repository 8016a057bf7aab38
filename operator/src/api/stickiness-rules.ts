/** Rules about who stays at a revision, with what cannot be beside it. */
import { DEPLOYMENT_ID_PATTERN, deploymentIdOf } from './deployment-id.ts';
import { ANNOTATION_DEPLOYMENT } from './names.ts';
import type { RenderServiceSpec } from './spec.ts';
import type { SpecRule } from './spec-rule.ts';

const METADATA = 'self.template.metadata';
const ID = `${METADATA}.annotations['${ANNOTATION_DEPLOYMENT}']`;

function onAlways(message: string, cel: string, holds: (spec: RenderServiceSpec) => boolean): SpecRule {
  return {
    path: ['rollout', 'stickiness', 'cookie'],
    message: `Always ${message}`,
    cel: `self.rollout.stickiness.cookie != 'Always' || ${cel}`,
    holds: (spec) => spec.rollout.stickiness.cookie !== 'Always' || holds(spec),
  };
}

export const stickinessRules: SpecRule[] = [
  onAlways(
    'needs pooling.enabled: a pod gives a request to one of the revision of its page as pooling does; set it to true, or take Canary',
    'self.pooling.enabled',
    ({ pooling }) => pooling.enabled,
  ),
  onAlways(
    'works without cache.enabled only: a page that is kept would be given to people of all revisions; set it to false, or take Canary',
    '!self.cache.enabled',
    ({ cache }) => !cache.enabled,
  ),
  {
    path: ['template', 'metadata', 'annotations'],
    message: `${ANNOTATION_DEPLOYMENT} must be 1 to 64 letters, digits and . _ -: it stands in a header and in the query, such as 2026-11-26.7f3a9c2`,
    cel: `!has(${METADATA}) || !has(${METADATA}.annotations) || !('${ANNOTATION_DEPLOYMENT}' in ${METADATA}.annotations) || ${ID}.matches('${DEPLOYMENT_ID_PATTERN}')`,
    holds: (spec) => {
      const id = deploymentIdOf(spec);
      return id === undefined || new RegExp(DEPLOYMENT_ID_PATTERN).test(id);
    },
  },
];
