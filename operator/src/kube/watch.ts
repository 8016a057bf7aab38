/** The changes of a collection as the API server streams them: one JSON object a line. */
import { setTimeout } from 'node:timers';
import { ApiError, type Rest, TooLongError } from './rest.ts';
import type { KubeObject } from './types.ts';

/**
 * A connection that is quiet for so long may be dead without a word; the API server sends a bookmark about once a
 * minute.
 */
const QUIET_MS = 90_000;
/** No object is larger than 3 MB. */
const LINE_BYTES_MAX = 8 * 1024 ** 2;

/** A change, or with BOOKMARK only the resource version up to which there was none. */
export interface WatchEvent {
  type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK';
  object: KubeObject;
}

interface ErrorEvent {
  type: 'ERROR';
  object: { code?: number; reason?: string; message?: string };
}

/**
 * Yields the changes from `query.resourceVersion` on, and returns when the API server ends the watch, or has been quiet
 * for so long that its connection may be dead: whoever watches goes on from the last resource version then.
 * @throws ApiError with status 410 when the history from there on is gone: list anew
 */
export async function* watch(
  rest: Rest,
  path: string,
  query: Record<string, string>,
  signal: AbortSignal,
  quietMs = QUIET_MS,
): AsyncGenerator<WatchEvent> {
  const quiet = new AbortController();
  const timer = setTimeout(() => quiet.abort(), quietMs).unref();
  try {
    const options = { ...query, watch: 'true', allowWatchBookmarks: 'true' };
    const body = await rest.stream(path, options, AbortSignal.any([signal, quiet.signal]));
    for await (const line of lines(body, path, () => timer.refresh())) {
      const event = JSON.parse(line) as WatchEvent | ErrorEvent;
      if (event.type === 'ERROR') {
        const { code = 0, reason = 'Unknown', message = line } = event.object;
        throw new ApiError(code, reason, message);
      }
      yield event;
    }
  } catch (error) {
    if (!quiet.signal.aborted) throw error;
  } finally {
    clearTimeout(timer);
  }
}

/** Splits a body into its lines. `onChunk` is called for each piece that comes. */
async function* lines(
  body: AsyncIterable<Uint8Array>,
  path: string,
  onChunk: () => void,
): AsyncGenerator<string, void, undefined> {
  let parts: string[] = [];
  let length = 0;
  const decoder = new TextDecoder();
  for await (const chunk of body) {
    onChunk();
    const [first = '', ...others] = decoder.decode(chunk, { stream: true }).split('\n');
    parts.push(first);
    length += first.length;
    for (const other of others) {
      yield parts.join('');
      parts = [other];
      length = other.length;
    }
    if (length > LINE_BYTES_MAX) throw new TooLongError('GET', path, LINE_BYTES_MAX);
  }
}
