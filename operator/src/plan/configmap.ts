/**
 * The proxies' configuration, in two ConfigMaps: what changes while pods run, and all the rest. The name of the rest
 * has the hash of its content and it is immutable: a pod that restarts a proxy long after a change, or a rollback,
 * still finds the configuration that its template was made for.
 */
import type { RenderService } from '../api/resource.ts';
import { renderConfig } from '../render/index.ts';
import { type LiveCanary, renderLive } from '../render/live.ts';
import { contentHash, type PlannedObject, plannedObject } from './objects.ts';

/** ConfigMap with nginx.conf and haproxy.cfg: the same whatever the live settings are. */
export function configMap(renderService: RenderService): PlannedObject {
  const data = renderConfig(renderService.spec);
  return plannedObject(renderService, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    name: `${renderService.metadata.name}-${contentHash(data)}`,
    content: { immutable: true, data },
  });
}

/** Name of the ConfigMap with the live settings. */
export function liveName({ metadata }: RenderService): string {
  return `${metadata.name}-live`;
}

/**
 * ConfigMap with the live settings: one for pods of all revisions, and it changes.
 * @param median see `renderLive`
 * @param resting likewise
 * @param canary likewise
 */
export function liveConfigMap(
  renderService: RenderService,
  median?: number,
  resting?: string,
  canary?: LiveCanary,
): PlannedObject {
  return plannedObject(renderService, {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    name: liveName(renderService),
    content: { data: renderLive(renderService.spec, median, resting, canary) },
  });
}
