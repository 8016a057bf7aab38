/** Whether the API server's copy of an object still has all that was applied. */
import { parseQuantity } from '../api/scalars.ts';
import { Packed, TextDigest } from './packed.ts';

/** Only below these fields "1000m" and "1" are the same; in an environment variable they are not. */
const QUANTITY_FIELDS = new Set(['requests', 'limits', 'sizeLimit', 'divisor', 'overhead']);
/** Pointers in Go: the API server keeps false and 0 here, and their absence means something else. */
const KEPT_WHEN_EMPTY = new Set([
  'allowPrivilegeEscalation',
  'automountServiceAccountToken',
  'enableServiceLinks',
  'hostUsers',
  'privileged',
  'readOnlyRootFilesystem',
  'runAsGroup',
  'runAsNonRoot',
  'runAsUser',
]);

/** A field of an applied object of which the API server's copy has another value. */
export interface Deviation {
  /** In the words of metadata.managedFields: `f:spec`, `k:{"name":"worker-0"}` (drift.ts). */
  path: string[];
  /** The value that was applied; undefined for a list item that somebody else has added. */
  desired: unknown;
  live: unknown;
}

/** Of most values there are none: they share this list. */
const NONE: Deviation[] = [];

/**
 * True when every field of `desired` stands in `live` with the same value. `live` may have more (defaults). What
 * the API server normalises counts as equal: empty values that it drops, and quantities (1000m and 1, 1024Mi and 1Gi).
 * Parts of `live` may be packed, as caches keep them.
 */
export function isSubset(desired: unknown, live: unknown): boolean {
  return deviations(desired, live).length === 0;
}

/** Fields of `desired` that `live` does not have, or not with the same value: none where `isSubset`. */
export function deviations(desired: unknown, live: unknown, inQuantity = false): Deviation[] {
  if (live instanceof Packed) return deviations(desired, live.value, inQuantity);
  if (isAlike(desired, live, inQuantity)) return NONE;
  if (!isComposite(desired) || !isComposite(live)) return whole(desired, live);
  if (!Array.isArray(desired)) return ofMaps(desired, live as Record<string, unknown>, inQuantity);
  return Array.isArray(live) ? ofLists(desired, live, inQuantity) : whole(desired, live);
}

/** Whether two values are equal without a look into them. */
function isAlike(desired: unknown, live: unknown, inQuantity: boolean): boolean {
  if (live instanceof TextDigest) return typeof desired === 'string' && live.isOf(desired);
  if (isEmpty(desired) && (live === undefined || live === null || isEmpty(live))) return true;
  return desired === live || (inQuantity && sameQuantity(desired, live));
}

/** A map or a list. */
function isComposite(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !(value instanceof TextDigest);
}

/** The value itself is another one. */
function whole(desired: unknown, live: unknown): Deviation[] {
  return [{ path: [], desired, live }];
}

function ofMaps(desired: object, live: Record<string, unknown>, inQuantity: boolean): Deviation[] {
  const found: Deviation[] = [];
  for (const [key, value] of Object.entries(desired))
    addBelow(found, `f:${key}`, ofField(key, value, live[key], inQuantity));
  return found;
}

function ofField(key: string, desired: unknown, live: unknown, inQuantity: boolean): Deviation[] {
  if (KEPT_WHEN_EMPTY.has(key) && live === undefined)
    return desired === undefined || desired === null ? NONE : whole(desired, live);
  return deviations(desired, live, inQuantity || QUANTITY_FIELDS.has(key));
}

/** Lists are equal item by item, in this order. Where they are not, their items are told apart by name. */
function ofLists(desired: unknown[], live: unknown[], inQuantity: boolean): Deviation[] {
  const isEqual =
    live.length === desired.length &&
    desired.every((item, index) => deviations(item, live[index], inQuantity).length === 0);
  if (isEqual) return NONE;
  const [ours, theirs] = [byName(desired), byName(live)];
  if (!ours || !theirs) return whole(desired, live);
  const found: Deviation[] = [];
  for (const [name, item] of ours) {
    const other = theirs.get(name);
    addBelow(found, itemKey(name), other ? deviations(item, other, inQuantity) : whole(item, undefined));
  }
  for (const [name, item] of theirs) if (!ours.has(name)) addBelow(found, itemKey(name), whole(undefined, item));
  // The list itself deviates where it has the same items in another order.
  return found.length > 0 ? found : whole(desired, live);
}

function itemKey(name: string): string {
  return `k:${JSON.stringify({ name })}`;
}

/** Items by their names; undefined where one has none, or two have the same. */
function byName(list: unknown[]): Map<string, unknown> | undefined {
  const items = new Map<string, unknown>();
  for (const item of list) {
    const name = (item as { name?: unknown } | null | undefined)?.name;
    if (typeof name !== 'string' || items.has(name)) return undefined;
    items.set(name, item);
  }
  return items;
}

function addBelow(found: Deviation[], key: string, below: Deviation[]): void {
  for (const one of below) found.push({ ...one, path: [key, ...one.path] });
}

/** Values that Go's omitempty leaves out. */
function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === '' || value === false || value === 0) return true;
  return typeof value === 'object' && Object.keys(value).length === 0;
}

function sameQuantity(one: unknown, other: unknown): boolean {
  const [a, b] = [one, other].map((value) => (isComposite(value) ? undefined : parseQuantity(String(value))));
  return a !== undefined && a === b;
}
