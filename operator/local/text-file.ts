/** A file as text, up to a size: a name may stand for something without an end (/dev/zero, a pipe). */
import { closeSync, openSync, readSync } from 'node:fs';
import { InputError } from './documents.ts';

const CHUNK_BYTES = 64 * 1024;
/** Far above any manifest; what is larger is some other file. */
export const INPUT_BYTES_MAX = 4 * 1024 * 1024;

/**
 * What the user runs.
 * @param source what the user calls it
 * @throws InputError when it is too large
 */
export function inputOf(file: string, source: string): string {
  const text = textOf(file, INPUT_BYTES_MAX);
  if (text === undefined)
    throw new InputError(`${source} has more than ${INPUT_BYTES_MAX / 1024 ** 2} MB: no manifest`);
  return text;
}

/**
 * UTF-8, or by its first bytes UTF-16, which Windows writes and kubectl reads.
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
      if (read === 0) return decoded(Buffer.concat(chunks));
      bytes += read;
      if (bytes > bytesMax) return undefined;
      chunks.push(chunk.subarray(0, read));
    }
  } finally {
    if (descriptor !== file) closeSync(descriptor);
  }
}

function decoded(bytes: Buffer): string {
  const mark = bytes.subarray(0, 2).toString('hex');
  return new TextDecoder(mark === 'fffe' ? 'utf-16le' : mark === 'feff' ? 'utf-16be' : 'utf-8').decode(bytes);
}
