/**
 * What the head of a request, and that of a response, may have. Both proxies and Node.js take the same, in both
 * directions (docs/adr/0057-heads.md).
 */
import { headerBytesMax } from '../../api/header-size.ts';
import type { RenderServiceSpec } from '../../api/spec.ts';

const KIB = 1024;
/** Of a head, for one line. */
const LINE_SHARE = 1 / 2;
/**
 * nginx begins a buffer with the line that did not fit into the one before. So two neighbours have more than a buffer
 * holds, and a head of two buffers' size always fits into three.
 */
const REQUEST_BUFFERS = 3;
/**
 * What both proxies add to a head is less. HAProxy reads 1 KiB less than its buffer holds (tune.maxrewrite): that is
 * for its rules.
 */
const ADDED_BYTES = 4 * KIB;

export interface Heads {
  /** Of the first line, names and values; with 8 bytes for each header of a request, as HAProxy keeps it. */
  bytesMax: number;
  /** Of one line. */
  lineBytesMax: number;
  /** Buffers of a line's size that nginx may have for the head of a request. */
  requestBuffers: number;
  /** With all that the proxies add. */
  bufferBytes: number;
}

/** The bounds for a defaulted spec. */
export function heads(spec: RenderServiceSpec): Heads {
  const bytesMax = headerBytesMax(spec);
  return {
    bytesMax,
    lineBytesMax: Math.floor(LINE_SHARE * bytesMax),
    requestBuffers: REQUEST_BUFFERS,
    bufferBytes: bytesMax + ADDED_BYTES,
  };
}
