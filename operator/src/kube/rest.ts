/**
 * JSON requests to the API server. The library's typed calls drop every field that their bundled models do not know,
 * in pod templates too, so objects travel as they are.
 */
import { fetch } from 'undici';
import type { PooledKubeConfig } from './config.ts';
import { requestContext } from './context.ts';

/** Longest time for one call. There is none by default, and a hanging call would hold its worker for ever. */
const REQUEST_TIMEOUT_MS = 15_000;

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export interface RequestOptions {
  query?: Record<string, string>;
  body?: unknown;
  contentType?: string;
  timeoutMs?: number;
  /** Longest answer that is read. */
  bytesMax?: number;
  /** Called with the length of an answer that was read. */
  onBytes?: (bytes: number) => void;
}

/** No object is larger than 3 MB; only lists are. */
const BYTES_MAX = 8 * 1024 ** 2;

/** Content types of the patches that the API server knows and the operator uses. */
export const APPLY_PATCH = 'application/apply-patch+yaml';
export const MERGE_PATCH = 'application/merge-patch+json';
export const JSON_PATCH = 'application/json-patch+json';

/** An answer of the API server other than 2xx. `message` is the API server's own sentence. */
export class ApiError extends Error {
  readonly status: number;
  /** Reason in one word, such as NotFound, Conflict, Invalid. */
  readonly reason: string;

  constructor(status: number, reason: string, message: string) {
    super(message);
    this.name = 'ApiError';
    this.status = status;
    this.reason = reason;
  }
}

/** The answer is longer than the caller wants to read. */
export class TooLongError extends Error {
  constructor(method: Method, path: string, bytesMax: number) {
    super(`${method} ${path}: the answer is longer than ${bytesMax} bytes`);
    this.name = 'TooLongError';
  }
}

/** There was no whole answer in time. */
export class NoAnswerError extends Error {
  constructor(method: Method, path: string, timeoutMs: number) {
    super(`${method} ${path}: no answer within ${timeoutMs / 1000} s`);
    this.name = 'NoAnswerError';
  }
}

/** Whether `error` says that the object does not exist. */
export function isNotFound(error: unknown): boolean {
  return error instanceof ApiError && error.status === 404;
}

/** Called once per finished request, for metrics. `code` is the HTTP status, or 0 when there was no answer. */
export type RequestObserver = (method: Method, path: string, code: number, seconds: number) => void;

/** Client of one API server. */
export class Rest {
  readonly config: PooledKubeConfig;
  readonly #observe: RequestObserver;
  readonly #writeMs: () => number;

  /**
   * @param writeMs asked before every request that is no read: for how long it may take at most, in whole milliseconds;
   *   0 where this process may not write
   */
  constructor(config: PooledKubeConfig, observe: RequestObserver = () => {}, writeMs: () => number = () => Infinity) {
    this.config = config;
    this.#observe = observe;
    this.#writeMs = writeMs;
  }

  /**
   * One request; resolves with the decoded body.
   * @throws ApiError for an answer other than 2xx, TooLongError for one beyond `bytesMax`, NoAnswerError when none has
   *   come in time, CredentialsError without credentials, TypeError when the connection failed, Error when this process
   *   may not write
   */
  async request<T>(method: Method, path: string, options: RequestOptions = {}): Promise<T> {
    const {
      query = {},
      body,
      contentType = 'application/json',
      timeoutMs: wantedMs = REQUEST_TIMEOUT_MS,
      bytesMax = BYTES_MAX,
      onBytes,
    } = options;
    const started = performance.now();
    const deadline = AbortSignal.timeout(wantedMs);
    let timeoutMs = wantedMs;
    let signal = deadline;
    let code = 0;
    try {
      const { url, headers, dispatcher } = await requestContext(this.config, path, query, deadline);
      if (method !== 'GET') {
        // Not before there are credentials, which may take their time: the lead may be lost meanwhile.
        timeoutMs = Math.min(wantedMs, this.#writeMs());
        if (timeoutMs <= 0) throw new Error(`${method} ${path}: this process no longer leads`);
        if (timeoutMs < wantedMs) {
          signal = AbortSignal.any([deadline, AbortSignal.timeout(timeoutMs)]);
          // The API server may have begun with what this process has given up.
          url.searchParams.set('timeout', `${timeoutMs}ms`);
        }
      }
      const response = await fetch(url, {
        method,
        headers: { ...headers, accept: 'application/json', ...(body !== undefined && { 'content-type': contentType }) },
        ...(body !== undefined && { body: JSON.stringify(body) }),
        dispatcher,
        signal,
      });
      code = response.status;
      if (code === 401) this.config.forgetCredentials();
      const text = await readText(response.body, bytesMax, onBytes);
      if (text === undefined) throw new TooLongError(method, path, bytesMax);
      if (!response.ok) throw apiError(code, text);
      return JSON.parse(text) as T;
    } catch (error) {
      if (error === signal.reason) throw new NoAnswerError(method, path, timeoutMs);
      throw error;
    } finally {
      this.#observe(method, path, code, (performance.now() - started) / 1000);
    }
  }

  /**
   * The body of a GET as it comes, without an end in time; for watches.
   * @throws ApiError for an answer other than 2xx, CredentialsError without credentials, TypeError when there is none
   */
  async stream(path: string, query: Record<string, string>, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const { url, headers, dispatcher } = await requestContext(this.config, path, query, signal);
    const response = await fetch(url, {
      headers: { ...headers, accept: 'application/json' },
      dispatcher: this.config.streams ?? dispatcher,
      signal,
    });
    if (response.status === 401) this.config.forgetCredentials();
    if (!response.ok || !response.body) {
      throw apiError(response.status, (await readText(response.body, BYTES_MAX)) ?? '');
    }
    return response.body;
  }
}

/** All of a body, or undefined as soon as it is longer than `bytesMax`; its connection is closed then. */
async function readText(
  body: AsyncIterable<Uint8Array> | null,
  bytesMax: number,
  onBytes: (bytes: number) => void = () => undefined,
): Promise<string | undefined> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.length;
    if (bytes > bytesMax) return undefined;
    chunks.push(chunk);
  }
  onBytes(bytes);
  return Buffer.concat(chunks).toString();
}

function apiError(code: number, text: string): ApiError {
  try {
    const status = JSON.parse(text) as { reason?: string; message?: string };
    return new ApiError(code, status.reason ?? 'Unknown', status.message ?? text);
  } catch {
    return new ApiError(code, 'Unknown', text.slice(0, 1000)); // a proxy in between answers with a page, say
  }
}
