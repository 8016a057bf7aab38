/** What the operator asks of the cache of a kind, and one cache over several namespaces. */
import type { ChangeHandler, Informer } from './informer.ts';
import type { Kind } from './kinds.ts';
import type { KubeObject } from './types.ts';

/** A cache of one kind: of one namespace, of all, or of some. */
export type Cache<T extends KubeObject = KubeObject> = Pick<
  Informer<T>,
  | 'kind'
  | 'onChange'
  | 'start'
  | 'refresh'
  | 'stop'
  | 'obstacle'
  | 'get'
  | 'list'
  | 'ownedBy'
  | 'remember'
  | 'forget'
  | 'listNow'
>;

/**
 * One cache of several, each of a namespace. With rights in these namespaces only, there is no list or watch over all:
 * the API server would refuse it.
 */
export class NamespacesCache<T extends KubeObject> implements Cache<T> {
  readonly kind: Kind;
  readonly #byNamespace: ReadonlyMap<string, Informer<T>>;

  constructor(kind: Kind, namespaces: string[], informer: (namespace: string) => Informer<T>) {
    this.kind = kind;
    this.#byNamespace = new Map(namespaces.map((namespace) => [namespace, informer(namespace)]));
  }

  onChange(handler: ChangeHandler): void {
    for (const cache of this.#byNamespace.values()) cache.onChange(handler);
  }

  async start(): Promise<void> {
    await Promise.all([...this.#byNamespace.values()].map((cache) => cache.start()));
  }

  async refresh(): Promise<void> {
    await Promise.all([...this.#byNamespace.values()].map((cache) => cache.refresh()));
  }

  stop(): void {
    for (const cache of this.#byNamespace.values()) cache.stop();
  }

  get obstacle(): string | undefined {
    for (const { obstacle } of this.#byNamespace.values()) if (obstacle !== undefined) return obstacle;
    return undefined;
  }

  get(namespace: string, name: string): T | undefined {
    return this.#byNamespace.get(namespace)?.get(namespace, name);
  }

  list(namespace?: string): T[] {
    if (namespace !== undefined) return this.#byNamespace.get(namespace)?.list(namespace) ?? [];
    return [...this.#byNamespace.values()].flatMap((cache) => cache.list());
  }

  ownedBy(namespace: string, uid: string): T[] {
    return this.#byNamespace.get(namespace)?.ownedBy(namespace, uid) ?? [];
  }

  remember(object: KubeObject): void {
    this.#byNamespace.get(object.metadata.namespace ?? '')?.remember(object);
  }

  forget(namespace: string, name: string): void {
    this.#byNamespace.get(namespace)?.forget(namespace, name);
  }

  async listNow(namespace: string): Promise<T[]> {
    return (await this.#byNamespace.get(namespace)?.listNow(namespace)) ?? [];
  }
}
