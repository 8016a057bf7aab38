/** Single keys of a terminal. */
import type { ReadStream } from 'node:tty';

const CTRL_C = '\u0003';

/** What a terminal sends for the arrows, in either of its modes. */
const ARROWS: Record<string, string> = { A: 'up', B: 'down', C: 'right', D: 'left' };

/** Keys in what a terminal has sent at once: characters, `up`, `down`, `left`, `right`. */
export function keysOf(text: string): string[] {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: that is how an arrow begins
  return [...text.matchAll(/\u001b[[O]([A-D])|./gsu)].map(([key, arrow]) => (arrow && ARROWS[arrow]) || key);
}

/** Calls `onKey` for each key until the answer is called; Ctrl-C is `q`. */
export function readKeys(stream: ReadStream, onKey: (key: string) => void): () => void {
  if (!stream.isTTY) return () => {};
  const onData = (text: string) => {
    for (const key of keysOf(text)) onKey(key === CTRL_C ? 'q' : key);
  };
  stream.setRawMode(true);
  stream.setEncoding('utf8').on('data', onData).resume();
  return () => {
    stream.off('data', onData).setRawMode(false);
    stream.pause();
  };
}
