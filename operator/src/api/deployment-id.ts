/** What the pods of a spec call themselves in requests: `corelane.dev/deployment-id` of the pod template. */
import { ANNOTATION_DEPLOYMENT } from './names.ts';
import type { RenderServiceSpec } from './spec.ts';

export const DEPLOYMENT_ID_PATTERN = '^[A-Za-z0-9._-]{1,64}$';

/** The id; undefined where the template has none: the name of its revision takes its place. */
export function deploymentIdOf({ template }: Pick<RenderServiceSpec, 'template'>): string | undefined {
  return template.metadata?.annotations?.[ANNOTATION_DEPLOYMENT];
}
