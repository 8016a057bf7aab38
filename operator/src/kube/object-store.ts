/** Objects of one kind by namespace and name. */
import type { KubeObject } from './types.ts';

export class ObjectStore<T extends KubeObject> {
  #byNamespace = new Map<string, Map<string, T>>();

  get(namespace: string, name: string): T | undefined {
    return this.#byNamespace.get(namespace)?.get(name);
  }

  /** Those of a namespace, or all. */
  list(namespace?: string): T[] {
    if (namespace !== undefined) return [...(this.#byNamespace.get(namespace)?.values() ?? [])];
    return [...this.#byNamespace.values()].flatMap((objects) => [...objects.values()]);
  }

  set(object: T): void {
    const { namespace = '', name } = object.metadata;
    const objects = this.#byNamespace.get(namespace) ?? new Map<string, T>();
    objects.set(name, object);
    this.#byNamespace.set(namespace, objects);
  }

  delete({ metadata: { namespace = '', name } }: KubeObject): void {
    const objects = this.#byNamespace.get(namespace);
    objects?.delete(name);
    if (objects?.size === 0) this.#byNamespace.delete(namespace);
  }

  /** Holds `items` and nothing else from now on. Returns what is new, another version or gone. */
  replace(items: T[]): T[] {
    const before = this.#byNamespace;
    this.#byNamespace = new Map();
    for (const item of items) this.set(item);
    const changed = items.filter(({ metadata: { namespace = '', name, resourceVersion } }) => {
      return before.get(namespace)?.get(name)?.metadata.resourceVersion !== resourceVersion || !resourceVersion;
    });
    const gone = [...before.values()].flatMap((objects) =>
      [...objects.values()].filter(({ metadata: { namespace = '', name } }) => !this.get(namespace, name)),
    );
    return [...changed, ...gone];
  }
}
