/** Lines as a terminal draws them. */
import type { Line } from '../../live/lanes.ts';
import { bold, dim } from '../run/screen.ts';
import { visible } from '../visible.ts';

const ESCAPE = '\u001b';
const STYLES: Record<Line['style'], (text: string) => string> = {
  title: bold,
  head: dim,
  dim,
  alarm: (text) => `${ESCAPE}[31m${text}${ESCAPE}[0m`,
  chosen: (text) => `${ESCAPE}[7m${text}${ESCAPE}[0m`,
  plain: (text) => text,
};

/** A line for a terminal: what strangers have chosen moves nothing. https://no-color.org */
export function drawn({ text, style }: Line): string {
  const plain = visible(text);
  return process.env.NO_COLOR ? plain : STYLES[style](plain);
}
