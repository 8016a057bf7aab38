/**
 * Brings one object of the plan into the cluster: server-side apply, only when something differs, and never over
 * an object that belongs to somebody else.
 */
import { createHash } from 'node:crypto';
import { ANNOTATION_ADMITTED_HASH, ANNOTATION_APPLIED_HASH, KIND, MANAGER } from '../api/names.ts';
import type { Cache } from './cache.ts';
import { type FieldPath, foreignFields, purged } from './drift.ts';
import { collectionPath, objectPath } from './kinds.ts';
import { controllerOf } from './owner.ts';
import { digestOf } from './packed.ts';
import { APPLY_PATCH, ApiError, isNotFound, JSON_PATCH, type Rest } from './rest.ts';
import { type Deviation, deviations } from './subset.ts';
import type { KubeObject } from './types.ts';

/** Digits of a hash that tells one state of an object from another. */
const HASH_LENGTH = 16;

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
export async function readLive(rest: Rest, cache: Cache, desired: KubeObject): Promise<KubeObject | undefined> {
  const { namespace = '', name } = desired.metadata;
  const cached = cache.get(namespace, name);
  if (cached) return cached;
  try {
    return await rest.request<KubeObject>('GET', objectPath(cache.kind, namespace, name));
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
  const controller = controllerOf(live);
  if (controller?.uid === owner?.uid) return;
  if (controller?.kind === owner?.kind && controller?.name === owner?.name) {
    throw new Error(`${live.kind} "${live.metadata.name}" of a deleted ${owner?.kind} is still being collected`);
  }
  throw new NotOwnedError(live);
}

/** What is to be done so that `live` becomes `desired`. */
export type Difference =
  | 'none'
  | 'missing'
  | 'changed' // the plan asks for something else than before
  | 'edited' // somebody has changed a field of ours
  | 'foreign-fields'; // somebody has added one

/**
 * Compares without a call. `desired` carries its own hash, which tells fields that the plan no longer has. What
 * mutating admission has made of it counts as applied: to write it again would end the same way.
 */
export function difference(live: KubeObject | undefined, desired: KubeObject): Difference {
  if (live === undefined) return 'missing';
  if (!isApplied(live)) return 'changed';
  const fields = deviations(desired, live);
  if (fields.length > 0 && !isAdmitted(live, desired, fields))
    return appliedHash(live) === appliedHash(desired) ? 'edited' : 'changed';
  return foreignFields(live).length > 0 ? 'foreign-fields' : 'none';
}

function appliedHash({ metadata }: KubeObject): string | undefined {
  return metadata.annotations?.[ANNOTATION_APPLIED_HASH];
}

/** Whether `live` is noted to be what admission makes of `desired`. */
function isAdmitted(live: KubeObject, desired: KubeObject, fields: Deviation[]): boolean {
  return live.metadata.annotations?.[ANNOTATION_ADMITTED_HASH] === hashOfAdmitted(desired, fields);
}

/** Fields of `desired` that mutating admission has changed, as is noted in `live`. */
export function admittedFields(desired: KubeObject, live: KubeObject): Deviation[] {
  if (live.metadata.annotations?.[ANNOTATION_ADMITTED_HASH] === undefined) return [];
  const fields = deviations(desired, live);
  return isAdmitted(live, desired, fields) ? fields : [];
}

/** Whether two objects deviate from `desired` in the same way. */
export function deviateAlike(desired: KubeObject, one: KubeObject, other: KubeObject): boolean {
  const [first, second] = [one, other].map((object) => hashOfAdmitted(desired, deviations(desired, object)));
  return first === second;
}

/** Hash of a plan and of what admission has made of it; the same for whole objects and for those of a cache. */
function hashOfAdmitted(desired: KubeObject, fields: Deviation[]): string {
  const made = fields.map(({ path, live }) => [path, digestOf(live)]);
  return createHash('sha256')
    .update(JSON.stringify([appliedHash(desired), made]))
    .digest('hex')
    .slice(0, HASH_LENGTH);
}

/**
 * Writes `desired` and returns what the API server made of it.
 * @throws ApiError 409 when the object was replaced by another of the same name meanwhile, or somebody has made one
 */
export async function apply(rest: Rest, cache: Cache, desired: KubeObject, live?: KubeObject): Promise<KubeObject> {
  const result = live ? await change(rest, cache, desired, live) : await create(rest, cache, desired);
  cache.remember(result);
  return result;
}

async function change(rest: Rest, cache: Cache, desired: KubeObject, live: KubeObject): Promise<KubeObject> {
  const path = objectPath(cache.kind, desired.metadata.namespace ?? '', desired.metadata.name);
  if (foreignFields(live).length > 0 || !isApplied(live)) await makeOurs(rest, path, desired);
  const made = await patch(rest, path, desired, live.metadata.uid);
  return (await noteAdmission(rest, path, desired, made)) ?? made;
}

async function patch(rest: Rest, path: string, desired: KubeObject, uid: string | undefined): Promise<KubeObject> {
  return await rest.request<KubeObject>('PATCH', path, {
    query: { fieldManager: MANAGER, force: 'true' },
    contentType: APPLY_PATCH,
    // With the uid the API server refuses when the object is another one by now.
    body: { ...desired, metadata: { ...desired.metadata, uid } },
  });
}

/**
 * Where the API server has answered a write with another object than `desired`, notes on it what it is, so that nobody
 * takes that for an edit. Another apply without the note takes it away again.
 * @param made the answer to the write itself: a later look might show what somebody has done since
 */
async function noteAdmission(
  rest: Rest,
  path: string,
  desired: KubeObject,
  made: KubeObject,
): Promise<KubeObject | undefined> {
  const fields = deviations(desired, made);
  if (fields.length === 0) return undefined;
  const { metadata } = desired;
  const annotations = { ...metadata.annotations, [ANNOTATION_ADMITTED_HASH]: hashOfAdmitted(desired, fields) };
  return await patch(rest, path, { ...desired, metadata: { ...metadata, annotations } }, made.metadata.uid);
}

/**
 * Takes out what others have put into it, and makes what is ours count as applied. The whole object is asked for: a
 * cache has neither all of its fields nor all of their owners.
 */
async function makeOurs(rest: Rest, path: string, desired: KubeObject): Promise<void> {
  const live = await rest.request<KubeObject>('GET', path);
  assertOwned(live, desired);
  const fields = foreignFields(live)
    .map(({ path: field }) => field)
    .filter((field) => !isAnnotationOf(desired, field));
  if (fields.length > 0) {
    // Before the apply, because a foreign field can exclude one of ours (minAvailable and maxUnavailable, two ports of
    // one name): the object with both would be refused. The resource version in it makes a stale view a conflict.
    await rest.request<KubeObject>('PUT', path, {
      query: { fieldManager: MANAGER },
      body: purged(live, fields, desired),
    });
  }
  if (!isApplied(live)) await becomeApplied(rest, path, live);
}

/** The apply takes these back. The operator reads them, so an object must never be without, not even in between. */
function isAnnotationOf({ metadata }: KubeObject, [root, , key = '']: FieldPath): boolean {
  return root === 'f:metadata' && metadata.annotations?.[key.slice(2)] !== undefined;
}

/** By POST: to apply an object that somebody has made a moment ago would be to take it over. */
async function create(rest: Rest, cache: Cache, desired: KubeObject): Promise<KubeObject> {
  const { namespace = '', name } = desired.metadata;
  const created = await rest.request<KubeObject>('POST', collectionPath(cache.kind, namespace), {
    query: { fieldManager: MANAGER },
    body: desired,
  });
  const path = objectPath(cache.kind, namespace, name);
  const applied = await becomeApplied(rest, path, created);
  return (await noteAdmission(rest, path, desired, created)) ?? applied;
}

/** Whether the fields that we own are those that we have applied. */
function isApplied({ metadata: { managedFields = [] } }: KubeObject): boolean {
  return managedFields.some(({ manager, operation }) => manager === MANAGER && operation === 'Apply');
}

/** Times that others may write an object while we tell whose its fields are: controllers look at a new one at once. */
const TRIES = 5;

/**
 * What we have created counts as updated by us, and a later apply could not take any of it away: from here on it counts
 * as applied. client-go's csaupgrade does the same for objects that were made before there was server-side apply. Only
 * our entry is touched.
 * @throws Error when others were faster each time; a retry of the reconcile goes on from here
 */
async function becomeApplied(rest: Rest, path: string, created: KubeObject): Promise<KubeObject> {
  let live = created;
  for (let n = 0; n < TRIES; n += 1) {
    const index = (live.metadata.managedFields ?? []).findIndex(
      ({ manager, operation, subresource }) => manager === MANAGER && operation === 'Update' && !subresource,
    );
    if (index < 0) return live;
    const entry = `/metadata/managedFields/${index}`;
    const body = [
      { op: 'test', path: `${entry}/manager`, value: MANAGER },
      { op: 'test', path: `${entry}/operation`, value: 'Update' },
      { op: 'replace', path: `${entry}/operation`, value: 'Apply' },
    ];
    try {
      const query = { fieldManager: MANAGER };
      return await rest.request<KubeObject>('PATCH', path, { query, contentType: JSON_PATCH, body });
    } catch (error) {
      if (!(error instanceof ApiError && [409, 422].includes(error.status))) throw error;
    }
    live = await rest.request<KubeObject>('GET', path);
  }
  throw new Error(`${created.kind} "${created.metadata.name}" is written by others all the time`);
}
