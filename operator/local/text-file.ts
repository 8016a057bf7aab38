/** A file as text, up to a size: a name may stand for something without an end (/dev/zero, a pipe). */
import { closeSync, openSync, readSync } from 'node:fs';

const CHUNK_BYTES = 64 * 1024;

/**
 * @param file a path, or a descriptor, which stays open
 * @returns undefined for what has more bytes than that
 */
export function textOf(file: string | number, bytesMax: number): string | undefined {
  const descriptor = typeof file === 'number' ? file : openSync(file, 'r');
  const chunks: Buffer[] = [];
  let bytes = 0;
  try {
    for (;;) {
      const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
      const read = readSync(descriptor, chunk);
      if (read === 0) return Buffer.concat(chunks).toString();
      bytes += read;
      if (bytes > bytesMax) return undefined;
      chunks.push(chunk.subarray(0, read));
    }
  } finally {
    if (descriptor !== file) closeSync(descriptor);
  }
}
