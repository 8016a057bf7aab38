/** ServiceAccount of the pods, when the template names none: without rights and without a mounted token. */
import type { RenderService } from '../api/resource.ts';
import { type PlannedObject, plannedObject } from './objects.ts';

/**
 * The account that the template names, by either name of the field: the API server knows the old one (`serviceAccount`)
 * and stores both.
 */
export function ownAccount({ spec }: RenderService): string | undefined {
  const { serviceAccountName, serviceAccount } = spec.template.spec ?? {};
  return serviceAccountName || serviceAccount || undefined;
}

/** The account, or nothing when the template has its own. */
export function serviceAccount(renderService: RenderService): PlannedObject[] {
  if (ownAccount(renderService)) return [];
  return [
    plannedObject(renderService, {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      name: renderService.metadata.name,
      content: { automountServiceAccountToken: false },
    }),
  ];
}
