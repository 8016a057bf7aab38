/**
 * Brings one object of the plan into the cluster: server-side apply, only when something differs, and never over
 * an object that belongs to somebody else.
 */
import { ANNOTATION_APPLIED_HASH, KIND, MANAGER } from '../api/names.ts';
import { foreignFields, purged } from './drift.ts';
import type { Informer } from './informer.ts';
import { objectPath } from './kinds.ts';
import { APPLY_PATCH, isNotFound, type Rest } from './rest.ts';
import { isSubset } from './subset.ts';
import type { KubeObject } from './types.ts';

/** An object of this name exists and is not the RenderService's. */
export class NotOwnedError extends Error {
  constructor({ kind, metadata }: KubeObject) {
    const other = metadata.ownerReferences?.find(({ controller, kind: of }) => controller && of === KIND);
    super(
      other
        ? `${kind} "${metadata.name}" belongs to RenderService "${other.name}" (each has a Service of its own name, and ` +
            'one with "-peers" behind it); give one of the two RenderServices another name.'
        : `${kind} "${metadata.name}" exists and does not belong to this RenderService; it is left alone. ` +
            'Delete or rename it, or give the RenderService another name.',
    );
    this.name = 'NotOwnedError';
  }
}

/** The live object, or undefined when there is none. The cache only has objects with our label, so a miss asks. */
export async function readLive(rest: Rest, informer: Informer, desired: KubeObject): Promise<KubeObject | undefined> {
  const { namespace = '', name } = desired.metadata;
  const cached = informer.get(namespace, name);
  if (cached) return cached;
  try {
    return await rest.request<KubeObject>('GET', objectPath(informer.kind, namespace, name));
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

/**
 * @throws NotOwnedError unless `live` is controlled by the owner that `desired` names
 * @throws Error when it is left of an owner of the same name that was deleted: a retry finds it collected
 */
export function assertOwned(live: KubeObject, desired: KubeObject): void {
  const owner = desired.metadata.ownerReferences?.[0];
  const controller = live.metadata.ownerReferences?.find((reference) => reference.controller);
  if (controller?.uid === owner?.uid) return;
  if (controller?.kind === owner?.kind && controller?.name === owner?.name) {
    throw new Error(`${live.kind} "${live.metadata.name}" of a deleted ${owner?.kind} is still being collected`);
  }
  throw new NotOwnedError(live);
}

/** What is to be done so that `live` becomes `desired`. */
export type Difference = 'none' | 'missing' | 'changed' | 'foreign-fields';

/** Compares without a call. `desired` carries its own hash, which tells fields that the plan no longer has. */
export function difference(live: KubeObject | undefined, desired: KubeObject): Difference {
  if (live === undefined) return 'missing';
  const hash = (object: KubeObject) => object.metadata.annotations?.[ANNOTATION_APPLIED_HASH];
  if (hash(live) !== hash(desired)) return 'changed';
  if (!isSubset(desired, live)) return 'changed';
  return foreignFields(live).length > 0 ? 'foreign-fields' : 'none';
}

/**
 * Writes `desired` and returns what the API server made of it.
 * @throws ApiError 409 when the object was replaced by another of the same name meanwhile
 */
export async function apply(
  rest: Rest,
  informer: Informer,
  desired: KubeObject,
  live?: KubeObject,
): Promise<KubeObject> {
  const path = objectPath(informer.kind, desired.metadata.namespace ?? '', desired.metadata.name);
  const fieldManager = MANAGER;
  const foreign = live ? foreignFields(live) : [];
  if (live && foreign.length > 0) {
    // Before the apply, because a foreign field can exclude one of ours (minAvailable and maxUnavailable, two ports of one
    // name): the object with both would be refused. The resource version in it makes a stale view a conflict.
    await rest.request<KubeObject>('PUT', path, { query: { fieldManager }, body: purged(live, foreign, desired) });
  }
  // With the uid the API server refuses when the object is another one by now.
  const body = live ? { ...desired, metadata: { ...desired.metadata, uid: live.metadata.uid } } : desired;
  const result = await rest.request<KubeObject>('PATCH', path, {
    query: { fieldManager, force: 'true' },
    contentType: APPLY_PATCH,
    body,
  });
  informer.remember(result);
  return result;
}
