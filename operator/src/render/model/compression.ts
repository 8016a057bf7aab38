/** How nginx compresses, and what of its memory that takes. */
import type { RenderServiceSpec } from '../../api/spec.ts';

const KIB = 1024;

/** What zlib looks back on, and its table of what it has seen. Twice as much saves one byte in a hundred. */
const WINDOW_BYTES = 16 * KIB;
const HASH_BYTES = 64 * KIB;
/** Compressed and not yet sent. */
const BUFFERS = 4;
const BUFFER_BYTES = 8 * KIB;
/** zlib has the window four times, nginx 8 KiB more (ngx_http_gzip_filter_memory). */
const EACH_BYTES = 8 * KIB + 4 * WINDOW_BYTES + HASH_BYTES + BUFFERS * BUFFER_BYTES;
/** Below it the head of the response is most of what is sent. */
const BYTES_MIN = KIB;

export interface Compression {
  level: number;
  bytesMin: number;
  windowBytes: number;
  hashBytes: number;
  buffers: number;
  bufferBytes: number;
}

/** Undefined if nginx compresses nothing. */
export function compression({ compression: { enabled, level } }: RenderServiceSpec): Compression | undefined {
  return enabled
    ? {
        level,
        bytesMin: BYTES_MIN,
        windowBytes: WINDOW_BYTES,
        hashBytes: HASH_BYTES,
        buffers: BUFFERS,
        bufferBytes: BUFFER_BYTES,
      }
    : undefined;
}

/** Memory of one response while it is compressed. */
export function compressionBytes({ compression: { enabled } }: RenderServiceSpec): number {
  return enabled ? EACH_BYTES : 0;
}
