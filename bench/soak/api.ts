/** The API server of the cluster, which a soak ends and freezes: calls are made again until it answers. */
import { setTimeout as delay } from 'node:timers/promises';
import { fetch } from 'undici';
import { KUBECONFIG } from '../../e2e/harness/cluster/cluster.ts';
import { PooledKubeConfig } from '../../operator/src/kube/config.ts';
import { requestContext } from '../../operator/src/kube/context.ts';
import {
  ApiError,
  isNotFound,
  MERGE_PATCH,
  type Method,
  type RequestOptions,
  Rest,
} from '../../operator/src/kube/rest.ts';

const AGAIN_MS = 500;
const PATIENCE_MS = 90_000;
const ANSWER_MS_MAX = 10_000;
/** Without what an object holds: nobody reads Secrets here. */
const METADATA_ONLY = 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1';

export interface Metadata {
  name: string;
  namespace: string;
  uid: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  deletionTimestamp?: string;
  creationTimestamp: string;
}

export class Api {
  readonly #config = new PooledKubeConfig();
  readonly #rest: Rest;

  constructor() {
    this.#config.loadFromFile(KUBECONFIG);
    this.#rest = new Rest(this.#config);
  }

  /**
   * A request, again and again while nobody answers.
   * @throws ApiError when the API server refuses it, what the last try has said when there was no answer for long
   */
  async request<T>(method: Method, path: string, options: RequestOptions = {}): Promise<T> {
    const endMs = performance.now() + PATIENCE_MS;
    for (;;) {
      try {
        return await this.#rest.request<T>(method, path, options);
      } catch (error) {
        const isRefused = error instanceof ApiError && error.status < 500 && error.status !== 429;
        if (isRefused || performance.now() > endMs) throw error;
        await delay(AGAIN_MS);
      }
    }
  }

  /** One try, for who looks again anyway. */
  look<T>(path: string): Promise<T> {
    return this.#rest.request<T>('GET', path, { timeoutMs: ANSWER_MS_MAX });
  }

  /** An object, or undefined where there is none. */
  async find<T>(path: string): Promise<T | undefined> {
    return await this.request<T>('GET', path).catch(unlessGone);
  }

  /** Creates an object. One of this name may be there from a try whose answer got lost. */
  async create(collection: string, body: object): Promise<void> {
    await this.request('POST', collection, { body }).catch((error: unknown) => {
      if (!(error instanceof ApiError && error.reason === 'AlreadyExists')) throw error;
    });
  }

  async patch(path: string, body: object, contentType: string = MERGE_PATCH): Promise<void> {
    await this.request('PATCH', path, { body, contentType });
  }

  /** Deletes an object, which may have gone already. */
  async delete(path: string, body: object = {}): Promise<void> {
    await this.request('DELETE', path, { body }).catch(unlessGone);
  }

  /** Metadata of what is in a collection; nothing else of it is sent. */
  async metadata(collection: string, labelSelector = ''): Promise<Metadata[]> {
    const text = await this.text(`${collection}?labelSelector=${encodeURIComponent(labelSelector)}`, METADATA_ONLY);
    // Of some kinds an empty list is null.
    const { items } = JSON.parse(text) as { items: { metadata: Metadata }[] | null };
    return (items ?? []).map(({ metadata }) => metadata);
  }

  /**
   * A page as it comes.
   * @throws Error with the status and the answer when it is not 2xx
   */
  async text(path: string, accept = '*/*'): Promise<string> {
    const signal = AbortSignal.timeout(ANSWER_MS_MAX);
    const { url, headers, dispatcher } = await requestContext(this.#config, path, {}, signal);
    const response = await fetch(url, { headers: { ...headers, accept }, dispatcher, signal });
    const text = await response.text();
    if (!response.ok) throw new Error(`${path}: ${response.status} ${text.slice(0, 500)}`);
    return text;
  }

  async close(): Promise<void> {
    await this.#config.close();
  }
}

function unlessGone(error: unknown): undefined {
  if (!isNotFound(error)) throw error;
}
