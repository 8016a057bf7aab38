/**
 * The proxies' configuration. Its name has the hash of its content and it is immutable: a pod that restarts a proxy
 * long after a change, or a rollback, still finds the configuration that its template was made for.
 */
import type { RenderService } from '../api/resource.ts';
import { renderConfig } from '../render/index.ts';
import { contentHash, type PlannedObject, plannedObject } from './objects.ts';

/** ConfigMap with nginx.conf and haproxy.cfg. */
export function configMap(renderService: RenderService): PlannedObject {
  const data = renderConfig(renderService.spec);
  return plannedObject(renderService, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    name: `${renderService.metadata.name}-${contentHash(data)}`,
    content: { immutable: true, data },
  });
}
