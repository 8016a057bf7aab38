/**
 * JSON requests to the API server. The library's typed calls drop every field that their bundled models do not know,
 * in pod templates too, so objects travel as they are.
 */
import { type Dispatcher, fetch } from 'undici';
import type { PooledKubeConfig, Purpose } from './config.ts';
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

/** This process may not write: it does not lead, or is about to give the lead up. */
class NotLeadingError extends Error {
  constructor(method: Method, path: string) {
    super(`${method} ${path}: this process no longer leads`);
    this.name = 'NotLeadingError';
  }
}

/** Whether `error` says that the object does not exist. */
export function isNotFound(error: unknown): boolean {
  return error instanceof ApiError && error.status === 404;
}

/** Called once per finished request, for metrics. `code` is the HTTP status, or 0 when there was no answer. */
export type RequestObserver = (method: Method, path: string, code: number, seconds: number) => void;

export interface RestOptions {
  observe?: RequestObserver;
  /**
   * Asked before every request that is no read: for how long it may take at most, in whole milliseconds; 0 where this
   * process may not write.
   */
  writeMs?: () => number;
  /** Whose connections its requests use; watches have their own. */
  purpose?: Exclude<Purpose, 'watches'>;
}

/** A write that is under way. */
interface Write {
  /** Ends it when its time is over, or when the lead is lost. */
  signal: AbortSignal;
  timeoutMs: number;
  giveUp: () => void;
  end: () => void;
  ended: Promise<void>;
}

/** Client of one API server. */
export class Rest {
  readonly config: PooledKubeConfig;
  readonly #options: Required<RestOptions>;
  readonly #writes = new Set<Write>();
  #hasEndedWrites = false;

  constructor(config: PooledKubeConfig, options: RestOptions = {}) {
    this.config = config;
    this.#options = { observe: () => {}, writeMs: () => Infinity, purpose: 'calls', ...options };
  }

  /**
   * Sends no write from now on, and resolves when those that are under way have ended. Another process may lead only
   * after that.
   * @param how `finish` waits for their answers, `abort` closes their connections
   */
  async endWrites(how: 'finish' | 'abort'): Promise<void> {
    this.#hasEndedWrites = true;
    const writes = [...this.#writes];
    if (how === 'abort') for (const { giveUp } of writes) giveUp();
    await Promise.all(writes.map(({ ended }) => ended));
  }

  /**
   * One request; resolves with the decoded body.
   * @throws ApiError for an answer other than 2xx, TooLongError for one beyond `bytesMax`, NoAnswerError when none has
   *   come in time, CredentialsError without credentials, TypeError when the connection failed, NotLeadingError when
   *   this process may not write
   */
  async request<T>(method: Method, path: string, options: RequestOptions = {}): Promise<T> {
    const {
      query = {},
      body,
      contentType = 'application/json',
      timeoutMs = REQUEST_TIMEOUT_MS,
      bytesMax = BYTES_MAX,
      onBytes,
    } = options;
    const { purpose, observe } = this.#options;
    const started = performance.now();
    const deadline = AbortSignal.timeout(timeoutMs);
    let write: Write | undefined;
    let code = 0;
    try {
      const { url, headers, dispatcher } = await requestContext(this.config, path, query, deadline, purpose);
      // Not before there are credentials, which may take their time: the lead may be lost meanwhile.
      if (method !== 'GET') write = this.#beginWrite(method, path, timeoutMs, deadline);
      if (write) limitIn(url, write.timeoutMs, timeoutMs);
      const response = await fetch(url, {
        method,
        ...withBody({ ...headers, accept: 'application/json' }, contentType, body),
        dispatcher: write ? checkedWhenSent(dispatcher, () => this.#assertMayWrite(method, path)) : dispatcher,
        signal: write?.signal ?? deadline,
      });
      code = response.status;
      if (code === 401) this.config.forgetCredentials();
      const text = await readText(response.body, bytesMax, onBytes);
      if (text === undefined) throw new TooLongError(method, path, bytesMax);
      if (!response.ok) throw apiError(code, text);
      return JSON.parse(text) as T;
    } catch (error) {
      const isOver = error === (write?.signal ?? deadline).reason && !(error instanceof NotLeadingError);
      if (isOver) throw new NoAnswerError(method, path, write?.timeoutMs ?? timeoutMs);
      throw refusalIn(error) ?? error;
    } finally {
      write?.end();
      observe(method, path, code, (performance.now() - started) / 1000);
    }
  }

  #assertMayWrite(method: Method, path: string): void {
    if (this.#hasEndedWrites || this.#options.writeMs() <= 0) throw new NotLeadingError(method, path);
  }

  /** @throws NotLeadingError */
  #beginWrite(method: Method, path: string, wantedMs: number, deadline: AbortSignal): Write {
    this.#assertMayWrite(method, path);
    const timeoutMs = Math.min(wantedMs, this.#options.writeMs());
    const lost = new AbortController();
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    const write: Write = {
      signal: AbortSignal.any([deadline, AbortSignal.timeout(timeoutMs), lost.signal]),
      timeoutMs,
      giveUp: () => lost.abort(new NotLeadingError(method, path)),
      end: () => {
        this.#writes.delete(write);
        resolve();
      },
      ended,
    };
    this.#writes.add(write);
    return write;
  }

  /**
   * The body of a GET as it comes, without an end in time; for watches.
   * @throws ApiError for an answer other than 2xx, CredentialsError without credentials, TypeError when there is none
   */
  async stream(path: string, query: Record<string, string>, signal: AbortSignal): Promise<AsyncIterable<Uint8Array>> {
    const { url, headers, dispatcher } = await requestContext(this.config, path, query, signal, 'watches');
    const response = await fetch(url, {
      headers: { ...headers, accept: 'application/json' },
      dispatcher,
      signal,
    });
    if (response.status === 401) this.config.forgetCredentials();
    if (!response.ok || !response.body) {
      throw apiError(response.status, (await readText(response.body, BYTES_MAX)) ?? '');
    }
    return response.body;
  }
}

function withBody(headers: Record<string, string>, contentType: string, body: unknown) {
  if (body === undefined) return { headers };
  return { headers: { ...headers, 'content-type': contentType }, body: JSON.stringify(body) };
}

/** Tells the API server, which may have begun with what this process gives up. */
function limitIn(url: URL, timeoutMs: number, wantedMs: number): void {
  if (timeoutMs < wantedMs) url.searchParams.set('timeout', `${timeoutMs}ms`);
}

/** What `checkedWhenSent` has thrown, where `fetch` failed because of it. */
function refusalIn(error: unknown): NotLeadingError | undefined {
  const { cause } = error as Error;
  return cause instanceof NotLeadingError ? cause : undefined;
}

/**
 * Calls `check` when a connection is free for a request, right before its first byte. A request may wait for a
 * connection, and a process that was frozen meanwhile (SIGSTOP, a hanging node) handles answers before timers: no
 * AbortSignal would be in time.
 * @param check what it throws is the cause of the error of `fetch`, and nothing is sent
 */
function checkedWhenSent(dispatcher: Dispatcher, check: () => void): Dispatcher {
  return dispatcher.compose((dispatch) => (options, handler) => {
    const start = handler.onRequestStart?.bind(handler);
    handler.onRequestStart = (controller, context) => {
      check();
      start?.(controller, context);
    };
    return dispatch(options, handler);
  });
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
