/**
 * What somebody else put into an object of ours. Server-side apply repairs the fields that Corelane sets, but leaves
 * a field that somebody *added* (an extra env variable by `kubectl set env`, say). The API server knows who owns which
 * field (metadata.managedFields), so those are found and taken out without comparing with defaults.
 */
import { MANAGER } from '../api/names.ts';
import type { FieldSet, KubeObject } from './types.ts';

/** Parts of an object that are Corelane's alone; labels, annotations and status are everybody's. */
const OWN_ROOTS = ['f:spec', 'f:data', 'f:binaryData'];
/** `kubectl rollout restart` sets an annotation of the pod template: it must go on working. */
const SHARED_PATH = ['f:spec', 'f:template', 'f:metadata', 'f:annotations'];

/** A path in an object as keys of a FieldSet. */
export type FieldPath = string[];

/** A field that somebody else has put into an object of ours. */
export interface ForeignField {
  path: FieldPath;
  /** Who, as the API server knows it: `kubectl-edit`, `kube-vip`. */
  manager: string;
}

/** Fields below spec or data that others own and Corelane does not apply. */
export function foreignFields(object: KubeObject): ForeignField[] {
  const entries = object.metadata.managedFields ?? [];
  const ours = entries.find(({ manager, operation }) => manager === MANAGER && operation === 'Apply')?.fieldsV1;
  if (ours === undefined) return [];
  return (
    entries
      // A field that we took away and that came back with its default counts as updated by us.
      .filter((entry) => entry.manager !== MANAGER && !entry.subresource)
      .flatMap((entry) =>
        OWN_ROOTS.filter((root) => entry.fieldsV1?.[root]).flatMap((root) =>
          onlyIn(entry.fieldsV1?.[root] as FieldSet, ours[root] ?? {}, [root]).map((path) => ({
            path,
            manager: entry.manager ?? '',
          })),
        ),
      )
  );
}

/** The path as people write it: `spec.ports[{"port":80}].nodePort`. */
export function fieldText(path: FieldPath): string {
  return path
    .map((key) => (key.startsWith('f:') ? `.${key.slice(2)}` : `[${key.slice(2)}]`))
    .join('')
    .slice(1);
}

/** Who of the others has written last to spec or data of an object of ours. */
export function lastWriter({ metadata }: KubeObject): string | undefined {
  const others = (metadata.managedFields ?? []).filter(
    ({ manager, subresource, fieldsV1 }) =>
      manager !== MANAGER && !subresource && OWN_ROOTS.some((root) => fieldsV1?.[root]),
  );
  return others.toSorted((one, other) => (one.time ?? '').localeCompare(other.time ?? '')).at(-1)?.manager;
}

function onlyIn(theirs: FieldSet, ours: FieldSet, path: FieldPath): FieldPath[] {
  if (SHARED_PATH.length === path.length && SHARED_PATH.every((key, index) => path[index] === key)) return [];
  return Object.entries(theirs).flatMap(([key, below]) => {
    if (key === '.') return [];
    const own = ours[key];
    return own === undefined ? [[...path, key]] : onlyIn(below, own, [...path, key]);
  });
}

/**
 * `live` as it should be, for a PUT: without the fields at `paths`, and with all that `desired` says beside metadata.
 * Lists are those of `desired`; what the API server has filled in elsewhere (a cluster IP) stays.
 */
export function purged(live: KubeObject, paths: FieldPath[], desired: KubeObject): KubeObject {
  const { metadata: _unused, ...content } = desired;
  return overlay(withoutFields(live, paths), content) as KubeObject;
}

function overlay(base: unknown, over: unknown): unknown {
  if (!isMap(base) || !isMap(over)) return over;
  const merged = Object.entries(over).map(([key, value]) => [key, overlay(base[key], value)]);
  return { ...base, ...Object.fromEntries(merged) };
}

function isMap(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A copy of `object` without the fields at `paths`. */
export function withoutFields(object: KubeObject, paths: FieldPath[]): KubeObject {
  const copy = structuredClone(object);
  for (const path of paths) remove(copy, path);
  return copy;
}

function remove(root: unknown, path: FieldPath): void {
  const parent = path.slice(0, -1).reduce<unknown>((node, key) => child(node, key), root);
  const last = path.at(-1) as string;
  if (Array.isArray(parent)) {
    const index = indexOf(parent, last);
    if (index >= 0) parent.splice(index, 1);
  } else if (typeof parent === 'object' && parent !== null) {
    delete (parent as Record<string, unknown>)[last.slice(2)];
  }
}

function child(node: unknown, key: string): unknown {
  if (Array.isArray(node)) return node[indexOf(node, key)];
  if (typeof node !== 'object' || node === null) return undefined;
  return (node as Record<string, unknown>)[key.slice(2)];
}

/** Index of the list item that `k:{"name":"a"}`, `v:"a"` or `i:0` speaks of, or -1. */
function indexOf(list: unknown[], key: string): number {
  const kind = key.slice(0, 2);
  if (kind === 'i:') return Number(key.slice(2));
  const wanted: unknown = JSON.parse(key.slice(2));
  if (kind === 'v:') return list.findIndex((item) => JSON.stringify(item) === JSON.stringify(wanted));
  const fields = Object.entries(wanted as Record<string, unknown>);
  return list.findIndex((item) => fields.every(([name, value]) => (item as Record<string, unknown>)[name] === value));
}
