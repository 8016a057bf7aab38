/**
 * A cache of one kind, kept by list and watch, after client-go's reflector: list, watch from there on, go on from the
 * last resource version when a watch ends, list anew when the history from there is gone.
 */
import { setTimeout } from 'node:timers/promises';
import { errorLine } from './error-line.ts';
import { collectionPath, type Kind } from './kinds.ts';
import { list } from './list.ts';
import { ObjectStore } from './object-store.ts';
import { controllerOf } from './owner.ts';
import { ApiError, type Rest } from './rest.ts';
import type { KubeObject } from './types.ts';
import { type WatchEvent, watch } from './watch.ts';

const RETRY_MIN_MS = 200;
const RETRY_MAX_MS = 15_000;
/** A watch that ends sooner was none: what follows it waits, or a broken API server would be asked without end. */
const WATCH_MIN_MS = 1_000;
/** A watch that is this far behind is broken; believing a write for longer could hide a deletion for ever. */
const WRITTEN_MS = 30_000;
/** Deletions to remember: an event that is late by more of them brings its object back until the next list. */
const DELETIONS_MAX = 1_000;

export interface InformerOptions {
  rest: Rest;
  kind: Kind;
  /** One namespace, or undefined for all. */
  namespace?: string | undefined;
  labelSelector?: string;
  /** Keeps of an object what the operator needs, to save memory. */
  reduce?: (object: KubeObject) => KubeObject;
  onError: (kind: Kind, error: unknown) => void;
}

/** @param before what was in the cache of it */
export type ChangeHandler = (object: KubeObject, before?: KubeObject) => void;

export class Informer<T extends KubeObject = KubeObject> {
  readonly kind: Kind;
  readonly #options: InformerOptions;
  readonly #store = new ObjectStore<T>();
  /** Objects that a write has returned and the watch has not yet. */
  readonly #written = new Map<string, { object: T; untilMs: number }>();
  /** Resource versions of the deletions since the last list, by key, the oldest first. */
  readonly #deletions = new Map<string, string>();
  /** Resource version of the last list. */
  #listed: string | undefined;
  readonly #handlers: ChangeHandler[] = [];
  readonly #firstList = Promise.withResolvers<void>();
  #isFilled = false;
  /** Why the last list or watch has failed. */
  #failure: unknown;
  readonly #stop = new AbortController();
  /** What has been seen, or undefined when all of it is to be listed. */
  #version: string | undefined;
  #retryMs = RETRY_MIN_MS;
  /** Called when a list that has begun since is in the cache. */
  readonly #refreshing: (() => void)[] = [];
  /** Ends the watch, or the pause before the next try, so that all is listed. */
  #watching = new AbortController();

  constructor(options: InformerOptions) {
    this.#options = options;
    this.kind = options.kind;
  }

  /** Calls `handler` for every object that is added, changed or deleted. It should only enqueue. */
  onChange(handler: ChangeHandler): void {
    this.#handlers.push(handler);
  }

  /** Resolves when the first list is in the cache. */
  async start(): Promise<void> {
    void this.#run();
    await this.#firstList.promise;
  }

  /**
   * Lists anew, and resolves when a list that has begun after this call is in the cache: the API server answers one
   * with what it has stored by then, where a watch may be late. It tries until it can, or `stop`.
   */
  async refresh(): Promise<void> {
    this.#failure = undefined;
    const listed = new Promise<void>((resolve) => this.#refreshing.push(resolve));
    this.#watching.abort();
    await listed;
  }

  stop(): void {
    this.#stop.abort();
  }

  /**
   * Why the first list is not in the cache yet, or that of a refresh which has failed so far, in one line; undefined
   * when it is.
   */
  get obstacle(): string | undefined {
    const hasFailed = this.#refreshing.length > 0 && this.#failure !== undefined;
    if (this.#isFilled && !hasFailed) return undefined;
    const { kind, namespace } = this.#options;
    const why = this.#failure === undefined ? 'no answer yet' : errorLine(this.#failure);
    return `cannot list ${kind.plural}${namespace === undefined ? '' : ` in namespace ${namespace}`}: ${why}`;
  }

  /** The object as last seen or written, whichever is newer. */
  get(namespace: string, name: string): T | undefined {
    const cached = this.#store.get(namespace, name);
    if (this.#written.size === 0) return cached;
    const key = `${namespace}/${name}`;
    const written = this.#written.get(key);
    if (written === undefined) return cached;
    const isRecent = performance.now() < written.untilMs;
    if (isRecent && !this.#hasSeen(written.object)) return written.object;
    this.#written.delete(key);
    return cached;
  }

  /**
   * Whether the watch has come so far: what it has said since then counts. The answer to a write may come after the
   * deletion of what it has made, and nothing would make that anew.
   */
  #hasSeen(written: T): boolean {
    const { namespace = '', name } = written.metadata;
    const cached = this.#store.get(namespace, name);
    if (this.#version !== undefined) return !isNewer(written.metadata.resourceVersion, this.#version);
    return cached !== undefined && !isNewer(written.metadata.resourceVersion, cached.metadata.resourceVersion);
  }

  /** All objects seen, of one namespace or of all. */
  list(namespace?: string): T[] {
    return this.#store.list(namespace);
  }

  /**
   * Those of a namespace whose controller has this uid, each as last seen or written. What is decided from the watch
   * alone is decided again until that has it, with another time in it: a watch that is late for a second would have all
   * of it written once a second, and each write makes it later.
   */
  ownedBy(namespace: string, uid: string): T[] {
    const seen = this.#store.ownedBy(namespace, uid).map((one) => this.get(namespace, one.metadata.name) ?? one);
    if (this.#written.size === 0) return seen;
    return [...seen, ...this.#unseenOf(namespace, uid)];
  }

  /** Those that a write has returned, and of which the watch has said nothing yet. */
  #unseenOf(namespace: string, uid: string): T[] {
    return [...this.#written.values()].flatMap(({ object }) => {
      const { namespace: own = '', name } = object.metadata;
      if (own !== namespace || controllerOf(object)?.uid !== uid || this.#store.get(namespace, name)) return [];
      return this.get(namespace, name) ?? [];
    });
  }

  /**
   * Remembers what a write returned until the watch has it, so that a reconcile in between does not act on old state.
   */
  remember(written: KubeObject): void {
    const object = this.#reduce(written);
    this.#written.set(keyOf(object), { object, untilMs: performance.now() + WRITTEN_MS });
  }

  /** Forgets an object that a call found missing. */
  forget(namespace: string, name: string): void {
    this.#written.delete(`${namespace}/${name}`);
  }

  /** All objects of a namespace as the API server has them now, reduced like those in the cache. */
  async listNow(namespace: string): Promise<T[]> {
    return (await this.#list(namespace)).items;
  }

  /** Lists and watches until `stop`. */
  async #run(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      const startedMs = performance.now();
      await this.#listAndWatch().catch((error) => {
        if (signal.aborted || this.#watching.signal.aborted) return;
        this.#failure = error;
        if (isGone(error)) this.#version = undefined;
        else this.#options.onError(this.kind, error);
      });
      if (performance.now() - startedMs > WATCH_MIN_MS || this.#watching.signal.aborted) continue;
      // Jitter of 50 %: after an API-server restart not all informers should come back in the same instant.
      const woken = AbortSignal.any([signal, this.#watching.signal]);
      await setTimeout(this.#retryMs * (0.5 + Math.random()), undefined, { signal: woken }).catch(() => {});
      this.#retryMs = Math.min(this.#retryMs * 2, RETRY_MAX_MS);
    }
  }

  /** Resolves when the API server has ended the watch. */
  async #listAndWatch(): Promise<void> {
    this.#watching = new AbortController();
    if (this.#refreshing.length > 0) await this.#refresh();
    this.#version ??= await this.#relist();
    for await (const event of this.#watch(this.#version)) {
      const { resourceVersion } = event.object.metadata;
      // A watch that goes on from an older version would say all of it once more.
      if (!isNewer(this.#version, resourceVersion)) this.#version = resourceVersion;
      this.#retryMs = RETRY_MIN_MS;
      if (event.type !== 'BOOKMARK') this.#see(event);
    }
  }

  async #refresh(): Promise<void> {
    // A refresh that is asked for from here on needs a later list.
    const asked = this.#refreshing.length;
    this.#version = await this.#relist();
    for (const resolve of this.#refreshing.splice(0, asked)) resolve();
  }

  #watch(resourceVersion: string): AsyncIterable<WatchEvent> {
    const { rest, kind, namespace, labelSelector } = this.#options;
    const query = { resourceVersion, ...(labelSelector !== undefined && { labelSelector }) };
    const signal = AbortSignal.any([this.#stop.signal, this.#watching.signal]);
    return watch(rest, collectionPath(kind, namespace), query, signal);
  }

  /** Fills the cache anew, tells what has changed, and returns the resource version of the list. */
  async #relist(): Promise<string> {
    const { items, version } = await this.#list();
    const changed = this.#store.replace(items);
    this.#listed = version;
    this.#deletions.clear();
    for (const object of changed) this.#tell(object);
    this.#isFilled = true;
    this.#firstList.resolve();
    return version;
  }

  #see({ type, object }: WatchEvent): void {
    const seen = this.#reduce(object);
    if (this.#isLate(seen)) return;
    const key = keyOf(seen);
    const before = this.#store.get(seen.metadata.namespace ?? '', seen.metadata.name);
    this.#deletions.delete(key);
    if (type === 'DELETED') {
      this.#store.delete(seen);
      this.#rememberDeletion(key, seen.metadata.resourceVersion);
    } else this.#store.set(seen);
    const written = this.#written.get(key);
    if (written && !isNewer(written.object.metadata.resourceVersion, seen.metadata.resourceVersion))
      this.#written.delete(key);
    this.#tell(seen, before);
  }

  /**
   * Whether the cache knows a later state of the object than an event has: proxies and API servers may repeat and
   * reorder events, and the spec of an old one would be applied until the next event. The object may be another one of
   * the same name: resource versions are those of the whole kind.
   */
  #isLate({ metadata }: KubeObject): boolean {
    const { namespace = '', name, resourceVersion } = metadata;
    const deleted = this.#deletions.get(`${metadata.namespace}/${name}`);
    return (
      isNewer(this.#store.get(namespace, name)?.metadata.resourceVersion, resourceVersion) ||
      [this.#listed, deleted].some((known) => isNewer(known, resourceVersion) || isSame(known, resourceVersion))
    );
  }

  #rememberDeletion(key: string, version = ''): void {
    this.#deletions.set(key, version);
    const [oldest = ''] = this.#deletions.keys();
    if (this.#deletions.size > DELETIONS_MAX) this.#deletions.delete(oldest);
  }

  #tell(object: KubeObject, before?: KubeObject): void {
    for (const handler of this.#handlers) {
      try {
        handler(object, before);
      } catch (error) {
        this.#options.onError(this.kind, error);
      }
    }
  }

  #list(namespace = this.#options.namespace): Promise<{ items: T[]; version: string }> {
    const { rest, kind, labelSelector } = this.#options;
    return list(rest, kind, namespace, labelSelector, (object) => this.#reduce(object));
  }

  #reduce(object: KubeObject): T {
    return (this.#options.reduce ? this.#options.reduce(object) : object) as T;
  }
}

/** The history from a resource version on is gone: compacted away, or of another API server. */
function isGone(error: unknown): boolean {
  return error instanceof ApiError && error.status === 410;
}

function keyOf({ metadata }: KubeObject): string {
  return `${metadata.namespace}/${metadata.name}`;
}

const DECIMAL = /^\d+$/;

/**
 * Resource versions of one kind are comparable as integers since Kubernetes 1.35, and were in practice before. False
 * where one of the two is no integer: what comes later counts then.
 */
function isNewer(one = '', other = ''): boolean {
  return DECIMAL.test(one) && DECIMAL.test(other) && BigInt(one) > BigInt(other);
}

function isSame(one = '', other = ''): boolean {
  return DECIMAL.test(one) && one === other;
}
