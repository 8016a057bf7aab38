/** Objects of one kind by namespace and name, and by who owns them. */
import { controllerOf } from './owner.ts';
import type { KubeObject } from './types.ts';

/** Of one namespace. Anybody may name an owner of another one, which is none. */
interface Objects<T> {
  byName: Map<string, T>;
  /** By the uid of the controller. */
  byOwner: Map<string, T[]>;
}

export class ObjectStore<T extends KubeObject> {
  #byNamespace = new Map<string, Objects<T>>();

  get(namespace: string, name: string): T | undefined {
    return this.#byNamespace.get(namespace)?.byName.get(name);
  }

  /** Those of a namespace, or all. */
  list(namespace?: string): T[] {
    if (namespace !== undefined) return [...(this.#byNamespace.get(namespace)?.byName.values() ?? [])];
    return [...this.#byNamespace.values()].flatMap(({ byName }) => [...byName.values()]);
  }

  /** Those of a namespace whose controller has this uid. */
  ownedBy(namespace: string, uid: string): readonly T[] {
    return this.#byNamespace.get(namespace)?.byOwner.get(uid) ?? [];
  }

  set(object: T): void {
    const { namespace = '', name } = object.metadata;
    const objects = this.#byNamespace.get(namespace) ?? { byName: new Map(), byOwner: new Map() };
    this.#byNamespace.set(namespace, objects);
    const before = objects.byName.get(name);
    objects.byName.set(name, object);
    const owner = controllerOf(object)?.uid;
    const isOfSame = before && controllerOf(before)?.uid === owner;
    if (before && !isOfSame) disown(objects, before);
    if (owner === undefined) return;
    const siblings = objects.byOwner.get(owner) ?? [];
    objects.byOwner.set(owner, siblings);
    // In its place: what status says of the first pod that has a problem must not change with every event.
    if (isOfSame) siblings[siblings.indexOf(before)] = object;
    else siblings.push(object);
  }

  delete({ metadata: { namespace = '', name } }: KubeObject): void {
    const objects = this.#byNamespace.get(namespace);
    const before = objects?.byName.get(name);
    if (!objects || !before) return;
    disown(objects, before);
    objects.byName.delete(name);
    if (objects.byName.size === 0) this.#byNamespace.delete(namespace);
  }

  /** Holds `items` and nothing else from now on. Returns what is new, another version or gone. */
  replace(items: T[]): T[] {
    const before = this.#byNamespace;
    this.#byNamespace = new Map();
    for (const item of items) this.set(item);
    const changed = items.filter(({ metadata: { namespace = '', name, resourceVersion } }) => {
      const old = before.get(namespace)?.byName.get(name);
      return old?.metadata.resourceVersion !== resourceVersion || !resourceVersion;
    });
    const gone = [...before.values()].flatMap(({ byName }) =>
      [...byName.values()].filter(({ metadata: { namespace = '', name } }) => !this.get(namespace, name)),
    );
    return [...changed, ...gone];
  }
}

/** Takes an object out of those of its owner. */
function disown<T extends KubeObject>({ byOwner }: Objects<T>, object: T): void {
  const owner = controllerOf(object)?.uid ?? '';
  const siblings = byOwner.get(owner) ?? [];
  const index = siblings.indexOf(object);
  if (index >= 0) siblings.splice(index, 1);
  if (siblings.length === 0) byOwner.delete(owner);
}
