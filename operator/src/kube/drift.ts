/**
 * What somebody else put into an object of ours. Server-side apply repairs the fields that Corelane sets, but leaves
 * a field that somebody *added* (an extra env variable by `kubectl set env`, say). The API server knows who owns which
 * field (metadata.managedFields), so those are found and taken out without comparing with defaults.
 */
import { GROUP, MANAGER } from '../api/names.ts';
import type { FieldSet, KubeObject, ManagedFieldsEntry } from './types.ts';

/** Parts of an object that are Corelane's alone; labels, other annotations and status are everybody's. */
const OWN_ROOTS = ['f:spec', 'f:data', 'f:binaryData'];
/** Where a writer can have touched something of ours: some labels and annotations are. */
const WRITTEN_ROOTS = [...OWN_ROOTS, 'f:metadata'];
/** `kubectl rollout restart` sets an annotation of the pod template: it must go on working. */
const SHARED_PATH = ['f:spec', 'f:template', 'f:metadata', 'f:annotations'];

/** The operator reads its own annotations: one that it has not applied would be obeyed. */
const ANNOTATIONS = ['f:metadata', 'f:annotations'];
const OWN_ANNOTATION = `f:${GROUP}/`;

/** A path in an object as keys of a FieldSet. */
export type FieldPath = string[];

/** A field that somebody else has put into an object of ours. */
export interface ForeignField {
  path: FieldPath;
  /** Who, as the API server knows it: `kubectl-edit`, `kube-vip`. */
  manager: string;
}

/** Fields below spec or data, and annotations of Corelane's, that others own and Corelane does not apply. */
export function foreignFields(object: KubeObject): ForeignField[] {
  const entries = object.metadata.managedFields ?? [];
  const ours = entries.find(({ manager, operation }) => manager === MANAGER && operation === 'Apply')?.fieldsV1;
  if (ours === undefined) return [];
  return (
    entries
      // A field that we took away and that came back with its default counts as updated by us.
      .filter((entry) => entry.manager !== MANAGER && !entry.subresource)
      .flatMap((entry) =>
        [
          ...OWN_ROOTS.flatMap((root) => onlyIn(entry.fieldsV1?.[root] ?? {}, ours[root] ?? {}, [root])),
          ...foreignAnnotations(entry.fieldsV1 ?? {}, ours),
        ].map((path) => ({ path, manager: entry.manager ?? '' })),
      )
  );
}

function foreignAnnotations(theirs: FieldSet, ours: FieldSet): FieldPath[] {
  const [all = {}, own = {}] = [theirs, ours].map((fields) => fields['f:metadata']?.['f:annotations']);
  const names = Object.keys(all).filter((name) => name.startsWith(OWN_ANNOTATION) && own[name] === undefined);
  return names.map((name) => [...ANNOTATIONS, name]);
}

/**
 * Who owns which field, as far as anybody asks: `foreignFields`, `lastWriter` and whether and by whom an object was
 * applied or scaled are the same with it. Whole it is more than half of a Deployment.
 */
export function reducedOwners(object: KubeObject): ManagedFieldsEntry[] {
  const { managedFields: entries = [] } = object.metadata;
  const ours = entries.find(({ manager, operation }) => manager === MANAGER && operation === 'Apply');
  const foreign = foreignFields(object);
  const others = entries.flatMap((entry): ManagedFieldsEntry[] => {
    const { manager, operation, subresource, time, fieldsV1 = {} } = entry;
    if (subresource) return subresource === 'scale' ? [{ manager, operation, subresource } as ManagedFieldsEntry] : [];
    const roots = WRITTEN_ROOTS.filter((root) => fieldsV1[root]);
    if (manager === MANAGER || roots.length === 0) return [];
    const own = foreign.filter((one) => one.manager === (manager ?? '')).map(({ path }) => path);
    // Two entries of one manager may each have some of them.
    const fields = treeOf([...roots.map((root) => [root]), ...own.filter((path) => isIn(fieldsV1, path))]);
    return [{ manager, operation, time, fieldsV1: fields } as ManagedFieldsEntry];
  });
  if (!ours) return others;
  // Ours as far as there is something foreign below it.
  const fieldsV1 = treeOf(foreign.map(({ path }) => path.slice(0, -1)));
  return [{ manager: MANAGER, operation: 'Apply', fieldsV1 }, ...others];
}

function isIn(tree: FieldSet, path: FieldPath): boolean {
  let node: FieldSet | undefined = tree;
  for (const key of path) node = node?.[key];
  return node !== undefined;
}

function treeOf(paths: FieldPath[]): FieldSet {
  const tree: FieldSet = {};
  for (const path of paths) {
    let node = tree;
    for (const key of path) {
      node[key] ??= {};
      node = node[key];
    }
  }
  return tree;
}

/** The path as people write it: `spec.ports[{"port":80}].nodePort`. */
export function fieldText(path: FieldPath): string {
  return path
    .map((key) => (key.startsWith('f:') ? `.${key.slice(2)}` : `[${key.slice(2)}]`))
    .join('')
    .slice(1);
}

/** The manager that wrote last to an object of ours, apart from Corelane. */
export function lastWriter({ metadata }: KubeObject): string | undefined {
  const others = (metadata.managedFields ?? []).filter(
    ({ manager, subresource, fieldsV1 }) =>
      manager !== MANAGER && !subresource && WRITTEN_ROOTS.some((root) => fieldsV1?.[root]),
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

/** What to take out below a field, by its key there. */
type Cuts = Map<string, Cuts | 'whole'>;

/**
 * A copy of `object` without the fields at `paths`. Somebody may have added ten thousand: each list is looked through
 * once.
 */
export function withoutFields(object: KubeObject, paths: FieldPath[]): KubeObject {
  const cuts: Cuts = new Map();
  for (const path of paths) addCut(cuts, path);
  return without(object, cuts) as KubeObject;
}

function addCut(cuts: Cuts, [key = '', ...rest]: FieldPath): void {
  if (rest.length === 0) {
    cuts.set(key, 'whole');
    return;
  }
  const below = cuts.get(key) ?? new Map();
  cuts.set(key, below);
  if (below !== 'whole') addCut(below, rest);
}

function without(node: unknown, cuts: Cuts): unknown {
  const rest = (value: unknown, cut?: Cuts | 'whole') => (cut ? without(value, cut as Cuts) : value);
  if (Array.isArray(node)) {
    const find = finder(node);
    const byIndex = new Map([...cuts].map(([key, cut]) => [find(key), cut] as const));
    return node.flatMap((item, index) => (byIndex.get(index) === 'whole' ? [] : [rest(item, byIndex.get(index))]));
  }
  if (!isMap(node)) return node;
  const fields = Object.entries(node).map(([name, value]) => ({ name, value, cut: cuts.get(`f:${name}`) }));
  const kept = fields.filter(({ cut }) => cut !== 'whole');
  return Object.fromEntries(kept.map(({ name, value, cut }) => [name, rest(value, cut)]));
}

/** Finds the index of the list item that `k:{"name":"a"}`, `v:"a"` or `i:0` speaks of, or -1. */
function finder(list: unknown[]): (key: string) => number {
  /** Of the first item with these values, by the names of the fields that make the key. */
  const indices = new Map<string, Map<string, number>>();
  const indexBy = (names: string, keyOf: (item: unknown) => unknown) => {
    const known = indices.get(names);
    if (known) return known;
    const pairs = list.map((item, index) => [JSON.stringify(keyOf(item)), index] as const);
    const made = new Map(pairs.toReversed());
    indices.set(names, made);
    return made;
  };
  return (key) => {
    const kind = key.slice(0, 2);
    if (kind === 'i:') return Number(key.slice(2));
    const wanted: unknown = JSON.parse(key.slice(2));
    if (kind === 'v:') return indexBy('', (item) => item).get(JSON.stringify(wanted)) ?? -1;
    const names = Object.keys(wanted as Record<string, unknown>);
    const valuesOf = (item: unknown) => names.map((name) => (item as Record<string, unknown>)[name]);
    return indexBy(JSON.stringify(names), valuesOf).get(JSON.stringify(valuesOf(wanted))) ?? -1;
  };
}
