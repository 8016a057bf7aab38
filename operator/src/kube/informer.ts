/**
 * A cache of one kind, kept by list and watch. The library's ListWatch does the work; this adds what it lacks
 * (client-node 2.0.1): it stops for good at any error but 410 and time-out, a handler that throws ends the process,
 * `stop()` during its back-off opens one more watch, and nothing tells when the first list is in.
 */
import { type KubernetesObject, ListWatch, Watch } from '@kubernetes/client-node';
import { collectionPath, type Kind } from './kinds.ts';
import { type Rest, TooLongError } from './rest.ts';
import type { KubeList, KubeObject } from './types.ts';

const RETRY_MIN_MS = 200;
const RETRY_MAX_MS = 15_000;
/** A watch that is this far behind is broken; believing a write for longer could hide a deletion for ever. */
const WRITTEN_MS = 30_000;
/** A list is split so that 10,000 pods do not become one answer of 100 MB. */
const PAGE_SIZE = 500;
/** Of one page: 500 ordinary pods are 5 MB. Objects of 1 MB, of whoever has put our label on them, come by a few at a time. */
const PAGE_BYTES_MAX = 8 * 1024 ** 2;

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

export type ChangeHandler = (object: KubeObject) => void;

export class Informer<T extends KubeObject = KubeObject> {
  readonly kind: Kind;
  readonly #options: InformerOptions;
  readonly #cache: ListWatch<KubernetesObject>;
  /** Objects that a write has returned and the watch has not yet. */
  readonly #written = new Map<string, { object: T; untilMs: number }>();
  readonly #firstList = Promise.withResolvers<void>();
  #stopped = false;
  #retryMs = RETRY_MIN_MS;
  #retryTimer: NodeJS.Timeout | undefined;

  constructor(options: InformerOptions) {
    this.#options = options;
    this.kind = options.kind;
    const path = `${collectionPath(options.kind, options.namespace)}?allowWatchBookmarks=true`;
    this.#cache = new ListWatch(path, this.#watch(), () => this.#list() as never, false, options.labelSelector);
    this.#cache.on('error', (error) => this.#retry(error));
    this.#cache.on('delete', (object) => this.#written.delete(keyOf(asKube(object))));
  }

  /** Calls `handler` for every object that is added, changed or deleted. It should only enqueue. */
  onChange(handler: ChangeHandler): void {
    this.#cache.on('change', (object) => {
      try {
        handler(asKube(object));
      } catch (error) {
        this.#options.onError(this.kind, error);
      }
    });
  }

  /** Resolves when the first list is in the cache. */
  async start(): Promise<void> {
    void this.#cache.start();
    await this.#firstList.promise;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#retryTimer);
    await this.#cache.stop();
  }

  /** The object as last seen or written, whichever is newer. */
  get(namespace: string, name: string): T | undefined {
    const cached = this.#cache.get(name, namespace) as unknown as T | undefined;
    const key = `${namespace}/${name}`;
    const written = this.#written.get(key);
    if (written === undefined) return cached;
    const isRecent = performance.now() < written.untilMs;
    if (isRecent && (cached === undefined || isNewer(written.object, cached))) return written.object;
    this.#written.delete(key);
    return cached;
  }

  /** All objects seen, of one namespace or of all. */
  list(namespace?: string): T[] {
    return this.#cache.list(namespace) as unknown as T[];
  }

  /** Remembers what a write returned until the watch has it, so that a reconcile in between does not act on old state. */
  remember(object: T): void {
    this.#written.set(keyOf(object), { object, untilMs: performance.now() + WRITTEN_MS });
  }

  /** Forgets an object that a call found missing. */
  forget(namespace: string, name: string): void {
    this.#written.delete(`${namespace}/${name}`);
  }

  /** All objects of a namespace as the API server has them now, reduced like those in the cache. */
  async listNow(namespace: string): Promise<KubeObject[]> {
    return (await this.#list(namespace)).items;
  }

  async #list(namespace = this.#options.namespace): Promise<KubeList> {
    const { rest, kind, labelSelector } = this.#options;
    const items: KubeObject[] = [];
    let page: KubeList | undefined;
    let limit = PAGE_SIZE;
    do {
      const query = {
        limit: String(limit),
        ...(labelSelector !== undefined && { labelSelector }),
        ...(page?.metadata.continue && { continue: page.metadata.continue }),
      };
      try {
        const options = { query, bytesMax: PAGE_BYTES_MAX };
        page = await rest.request<KubeList>('GET', collectionPath(kind, namespace), options);
      } catch (error) {
        if (!(error instanceof TooLongError) || limit === 1) throw error;
        limit = Math.ceil(limit / 8);
        continue;
      }
      limit = Math.min(PAGE_SIZE, 2 * limit);
      // Items of a list carry neither apiVersion nor kind.
      items.push(...page.items.map((item) => this.#reduce({ ...item, apiVersion: kind.apiVersion, kind: kind.kind })));
    } while (!page || page.metadata.continue);
    return { ...page, items };
  }

  #reduce(object: KubeObject): KubeObject {
    return this.#options.reduce ? this.#options.reduce(object) : object;
  }

  /** The library's watch, with objects reduced on the way; that it is called at all means that the list is in. */
  #watch(): Watch {
    const watch = new Watch(this.#options.rest.config);
    const original = watch.watch.bind(watch);
    watch.watch = (path, query, callback, done) => {
      if (this.#stopped) return Promise.resolve(new AbortController());
      this.#firstList.resolve();
      return original(
        path,
        query,
        (phase, object, event) => {
          this.#retryMs = RETRY_MIN_MS;
          callback(phase, isData(phase) ? this.#reduce(object as KubeObject) : object, event);
        },
        done,
      );
    };
    return watch;
  }

  #retry(error: unknown): void {
    if (this.#stopped) return;
    this.#options.onError(this.kind, error);
    // Jitter of 50 %: after an API-server restart not all informers should come back in the same instant.
    const delayMs = this.#retryMs * (0.5 + Math.random());
    this.#retryMs = Math.min(this.#retryMs * 2, RETRY_MAX_MS);
    this.#retryTimer = setTimeout(() => void this.#cache.start(), delayMs);
  }
}

function isData(phase: string): boolean {
  return phase === 'ADDED' || phase === 'MODIFIED' || phase === 'DELETED';
}

/** The library's type has dates where JSON has strings. */
function asKube(object: KubernetesObject): KubeObject {
  return object as unknown as KubeObject;
}

function keyOf({ metadata }: KubeObject): string {
  return `${metadata.namespace}/${metadata.name}`;
}

/** Resource versions of one kind are comparable as integers since Kubernetes 1.35, and were in practice before. */
function isNewer(one: KubeObject, other: KubeObject): boolean {
  return BigInt(one.metadata.resourceVersion ?? 0) > BigInt(other.metadata.resourceVersion ?? 0);
}
