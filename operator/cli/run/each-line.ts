/** Lines of a stream whose writer may never end one. */
import type { Readable } from 'node:stream';
import { finished } from 'node:stream/promises';

/**
 * Calls `onLine` for each line; of one that is longer than that for its beginning, the rest is passed over.
 */
export function eachLine(stream: Readable, lengthMax: number, onLine: (line: string) => void): void {
  let begun = '';
  const take = (text: string) => {
    begun += text.slice(0, lengthMax - begun.length);
  };
  stream.setEncoding('utf8');
  stream.on('data', (chunk: string) => {
    const [first = '', ...others] = chunk.split(/\r\n|[\r\n]/);
    take(first);
    for (const text of others) {
      onLine(begun);
      begun = '';
      take(text);
    }
  });
  stream.once('end', () => begun !== '' && onLine(begun));
}

/** The same, until the stream has ended. @throws what the stream fails with */
export async function linesOf(stream: Readable, lengthMax: number, onLine: (line: string) => void): Promise<void> {
  eachLine(stream, lengthMax, onLine);
  await finished(stream);
}
