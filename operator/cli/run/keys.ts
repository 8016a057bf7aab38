/** Single keys of a terminal. */
import type { ReadStream } from 'node:tty';

const CTRL_C = '\u0003';

/** Calls `onKey` for each key until the answer is called; Ctrl-C is `q`. */
export function readKeys(stream: ReadStream, onKey: (key: string) => void): () => void {
  if (!stream.isTTY) return () => {};
  const onData = (text: string) => {
    for (const key of text) onKey(key === CTRL_C ? 'q' : key);
  };
  stream.setRawMode(true);
  stream.setEncoding('utf8').on('data', onData).resume();
  return () => {
    stream.off('data', onData).setRawMode(false);
    stream.pause();
  };
}
