/** Reads and writes `spec.replicas`: the client of the scale subresource. */
import { MANAGER } from '../api/names.ts';
import type { RenderServiceResource, ResourceMetadata } from '../api/resource.ts';
import { kinds, objectPath } from '../kube/kinds.ts';
import { ApiError, MERGE_PATCH } from '../kube/rest.ts';
import type { KubeObject } from '../kube/types.ts';
import type { Caches } from './caches.ts';

/**
 * Sets spec.replicas unless it is no longer `from`: a `kubectl scale` in between wins.
 * @returns whether it wrote
 */
export async function writeReplicas(
  caches: Caches,
  { metadata }: RenderServiceResource,
  from: number,
  replicas: number,
): Promise<boolean> {
  const write = (resourceVersion: string) =>
    caches.rest.request('PATCH', `${renderServicePath(metadata)}/scale`, {
      query: { fieldManager: MANAGER },
      contentType: MERGE_PATCH,
      // The resource version makes a change in between a conflict.
      body: { metadata: { resourceVersion }, spec: { replicas } },
    });
  try {
    await write(metadata.resourceVersion);
    return true;
  } catch (error) {
    if (!(error instanceof ApiError && error.status === 409)) throw error;
  }
  // Mostly it was but the status that has changed.
  const fresh = await readRenderService(caches, metadata);
  const isSame = fresh.metadata.uid === metadata.uid && replicasOf(fresh) === from;
  if (isSame) await write(fresh.metadata.resourceVersion);
  return isSame;
}

function renderServicePath({ namespace, name }: ResourceMetadata): string {
  return objectPath(kinds.renderService, namespace, name);
}

/** The resource as the API server has it now. */
export function readRenderService(
  { rest }: Caches,
  metadata: ResourceMetadata,
): Promise<KubeObject & RenderServiceResource> {
  return rest.request('GET', renderServicePath(metadata));
}

/** `spec.replicas`, if it is set. */
export function replicasOf({ spec }: RenderServiceResource): number | undefined {
  return (spec as { replicas?: number }).replicas;
}

/** Whether the API server has said that it did not do it; with 5xx it may have (etcd was out of time, say). */
export function isRefusal(error: unknown): boolean {
  return error instanceof ApiError && error.status < 500;
}
