/** ServiceAccount of the pods, when the template names none: without rights and without a mounted token. */
import type { RenderService } from '../api/resource.ts';
import { type PlannedObject, plannedObject } from './objects.ts';

/** The account, or nothing when the template has its own. */
export function serviceAccount(renderService: RenderService): PlannedObject[] {
  if (renderService.spec.template.spec?.serviceAccountName) return [];
  return [
    plannedObject(renderService, {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      name: renderService.metadata.name,
      content: { automountServiceAccountToken: false },
    }),
  ];
}
