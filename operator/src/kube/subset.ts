/** Whether the API server's copy of an object still has all that was applied. */
import { parseQuantity } from '../api/scalars.ts';
import { Packed, TextDigest } from './packed.ts';

/** Only below these fields "1000m" and "1" are the same; in an environment variable they are not. */
const QUANTITY_FIELDS = new Set(['requests', 'limits', 'sizeLimit', 'divisor', 'overhead']);
/** Pointers in Go: the API server keeps false and 0 here, and their absence means something else. */
const KEPT_WHEN_EMPTY = new Set([
  'allowPrivilegeEscalation',
  'automountServiceAccountToken',
  'hostUsers',
  'privileged',
  'readOnlyRootFilesystem',
  'runAsGroup',
  'runAsNonRoot',
  'runAsUser',
]);

/**
 * True when every field of `desired` stands in `live` with the same value. `live` may have more (defaults). What
 * the API server normalises counts as equal: empty values that it drops, and quantities (1000m and 1, 1024Mi and 1Gi).
 * Parts of `live` may be packed, as caches keep them.
 */
export function isSubset(desired: unknown, live: unknown, inQuantity = false): boolean {
  if (live instanceof Packed) return isSubset(desired, live.value, inQuantity);
  if (live instanceof TextDigest) return typeof desired === 'string' && live.isOf(desired);
  if (isEmpty(desired) && (live === undefined || live === null || isEmpty(live))) return true;
  if (Array.isArray(desired)) {
    return (
      Array.isArray(live) &&
      live.length === desired.length &&
      desired.every((item, index) => isSubset(item, live[index], inQuantity))
    );
  }
  if (typeof desired === 'object' && desired !== null) {
    if (typeof live !== 'object' || live === null) return false;
    return Object.entries(desired).every(([key, value]) =>
      isFieldSubset(key, value, (live as Record<string, unknown>)[key], inQuantity),
    );
  }
  return desired === live || (inQuantity && sameQuantity(desired, live));
}

function isFieldSubset(key: string, desired: unknown, live: unknown, inQuantity: boolean): boolean {
  if (KEPT_WHEN_EMPTY.has(key) && live === undefined) return desired === undefined || desired === null;
  return isSubset(desired, live, inQuantity || QUANTITY_FIELDS.has(key));
}

/** Values that Go's omitempty leaves out. */
function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null || value === '' || value === false || value === 0) return true;
  return typeof value === 'object' && Object.keys(value).length === 0;
}

function sameQuantity(one: unknown, other: unknown): boolean {
  const [a, b] = [one, other].map((value) => parseQuantity(String(value)));
  return a !== undefined && a === b;
}
