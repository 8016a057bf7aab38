/** Whose an object is. */
import type { KubeObject, OwnerReference } from './types.ts';

/**
 * The owner that manages `object`: Kubernetes allows one with `controller: true`. Whether that owner is there is not
 * looked at.
 */
export function controllerOf({ metadata }: Pick<KubeObject, 'metadata'>): OwnerReference | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller);
}
