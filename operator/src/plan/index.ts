/** The plan: all objects that a RenderService asks for, in the order in which they are applied. */
import type { RenderService } from '../api/resource.ts';
import type { LiveCanary } from '../render/live.ts';
import { liveConfigMap } from './configmap.ts';
import { deployment, type PlannedRevision } from './deployment.ts';
import { disruptionBudget } from './disruption-budget.ts';
import { networkPolicy, type OperatorAccess } from './network-policy.ts';
import type { PlannedObject } from './objects.ts';
import { freshPods } from './pods.ts';
import type { SidecarImage } from './proxies.ts';
import { peersService, service } from './services.ts';

export { deploymentName, type PlannedRevision } from './deployment.ts';
export type { OperatorAccess } from './network-policy.ts';
export type { PlannedObject } from './objects.ts';
export { selectorLabels, selectorText, servingLabels } from './objects.ts';
export type { PodsChange } from './pods.ts';
export type { SidecarImage } from './proxies.ts';

/** Pods of all revisions, as they are to be. */
export interface PlannedPods {
  /** The one that is asked for comes first. */
  revisions: PlannedRevision[];
  /** Configuration of that one, where this operator makes it. */
  config?: PlannedObject | undefined;
  /** The revision whose pods live on without getting requests. */
  resting?: string | undefined;
  /** The revision that gets a share of the requests. */
  canary?: LiveCanary | undefined;
  /** Whether each pod that there is can be taken out of the Service. */
  canRest: boolean;
}

/**
 * Desired objects; the Deployments come last because their pods need the others.
 * @param median of the requests that workers get at a time (`concurrency: Auto`), as far as it is known
 * @param pods without, what this operator makes of the spec
 */
export function desiredObjects(
  renderService: RenderService,
  sidecar: SidecarImage,
  access: OperatorAccess,
  median?: number,
  pods: PlannedPods = newPods(renderService, sidecar),
): PlannedObject[] {
  return [
    ...(pods.config ? [pods.config] : []),
    liveConfigMap(renderService, median, pods.resting, pods.canary),
    service(renderService, pods.canRest),
    peersService(renderService),
    ...disruptionBudget(renderService, pods.canRest),
    ...networkPolicy(renderService, access),
    ...pods.revisions.map((revision) => deployment(renderService, revision)),
  ];
}

/** One revision with all of its pods. */
function newPods(renderService: RenderService, sidecar: SidecarImage): PlannedPods {
  const { config, ...pods } = freshPods(renderService, sidecar);
  return { revisions: [{ ...pods, replicas: renderService.spec.replicas }], config, canRest: true };
}
