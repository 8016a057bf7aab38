/** JSON for programs. */
import { visible, visibleLines } from './visible.ts';

/** Indented; what strangers have chosen, be it a value or a key, moves no terminal, should it get to one. */
export function json(value: unknown): string {
  return visibleLines(JSON.stringify(value, (_key, one) => (typeof one === 'string' ? visible(one) : one), 2));
}
