/**
 * Whether the Deployment of a spec can be stored at all. Each worker is a copy of the template's container, so a large
 * one grows fast.
 */

import type { RenderServiceSpec } from './spec.ts';
import { workerTemplate } from './worker-template.ts';

/**
 * What etcd takes as one object by default (--max-request-bytes), less some room for what we and the API server add.
 */
const DEPLOYMENT_BYTES_MAX = 1_400_000;

/**
 * A sentence with the size, the bound and the way out if the pods' template is too large to be stored; else undefined.
 */
export function templateTooLarge({ template, workersPerPod }: RenderServiceSpec): string | undefined {
  const worker = workerTemplate(template.spec?.containers ?? []);
  const workerBytes = storedBytes(worker ?? {});
  const bytes = storedBytes(template) + (workersPerPod - 1) * workerBytes;
  if (bytes <= DEPLOYMENT_BYTES_MAX) return undefined;
  return (
    `makes a Deployment of some ${kilobytes(bytes)}, and the API server stores ${kilobytes(DEPLOYMENT_BYTES_MAX)}: each of ` +
    `${workersPerPod} workers has a copy of its container (${kilobytes(workerBytes)}). Keep large values and long lists in a ConfigMap (envFrom, a volume), or set fewer workersPerPod`
  );
}

/**
 * Bytes that a part of the template takes: itself, and whose its fields are. An API server that cannot store both
 * stores a new object without the second, and then refuses every apply of it.
 */
function storedBytes(part: object): number {
  return JSON.stringify(part).length + ownershipBytes(part);
}

/**
 * Bytes of `value` in metadata.managedFields (FieldsV1): a list of objects is a map by their names, any other list a
 * leaf.
 */
function ownershipBytes(value: unknown): number {
  if (Array.isArray(value)) {
    const items = value.filter((item) => typeof item === 'object' && item !== null);
    return items.reduce(
      (sum, item) => sum + JSON.stringify({ [`k:${nameOf(item)}`]: { '.': {} } }).length + ownershipBytes(item),
      2,
    );
  }
  if (typeof value !== 'object' || value === null) return 2;
  return Object.entries(value).reduce((sum, [key, field]) => sum + `"f:${key}":,`.length + ownershipBytes(field), 2);
}

function nameOf(item: { name?: unknown }): string {
  return JSON.stringify({ name: item.name });
}

function kilobytes(bytes: number): string {
  return `${Math.ceil(bytes / 1_000)} kB`;
}
