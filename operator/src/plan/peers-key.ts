/** The Secret with the key by which pods of one RenderService know each other. */
import { PEERS_KEY } from '../api/names.ts';
import type { RenderService } from '../api/resource.ts';
import { type PlannedObject, peersName, plannedObject } from './objects.ts';

/**
 * The Secret as it is created. It is never applied, nor read: whoever may read it could speak for a pod.
 * Not immutable: kubelet would never give a pod the key of a Secret that was deleted and made again.
 * @param key the key as text
 */
export function peersKeySecret(renderService: RenderService, key: string): PlannedObject {
  const secret = plannedObject(renderService, {
    apiVersion: 'v1',
    kind: 'Secret',
    name: peersName(renderService),
    content: { type: 'Opaque' },
  });
  // After the hash that an annotation has: nothing that others may read follows from the key.
  return { ...secret, data: { [PEERS_KEY]: Buffer.from(key).toString('base64') } };
}
