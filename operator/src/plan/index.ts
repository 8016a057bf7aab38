/** The plan: all objects that a RenderService asks for, in the order in which they are applied. */
import type { RenderService } from '../api/resource.ts';
import { configMap, liveConfigMap } from './configmap.ts';
import { deployment } from './deployment.ts';
import { disruptionBudget } from './disruption-budget.ts';
import { networkPolicy, type OperatorAccess } from './network-policy.ts';
import type { PlannedObject } from './objects.ts';
import type { SidecarImage } from './proxies.ts';
import { serviceAccount } from './service-account.ts';
import { peersService, service } from './services.ts';

export type { OperatorAccess } from './network-policy.ts';
export type { PlannedObject } from './objects.ts';
export { selectorText } from './objects.ts';
export type { SidecarImage } from './proxies.ts';

/** Desired objects; the Deployment comes last because its pods need the others. */
export function desiredObjects(
  renderService: RenderService,
  sidecar: SidecarImage,
  access: OperatorAccess,
): PlannedObject[] {
  const config = configMap(renderService);
  return [
    ...serviceAccount(renderService),
    config,
    liveConfigMap(renderService),
    service(renderService),
    peersService(renderService),
    ...disruptionBudget(renderService),
    ...networkPolicy(renderService, access),
    deployment(renderService, config.metadata.name, sidecar),
  ];
}
