/** Texts of strangers (names in a file, paths, answers of a server) for a terminal. Computes only. */

/** What moves the cursor, changes the title, or turns the direction of what is written. */
const ACTING = '\\p{Cc}\\u2028\\u2029\\u202a-\\u202e\\u2066-\\u2069';

/** One line that stays one. */
export function visible(text: string): string {
  return text.replaceAll(new RegExp(`[${ACTING}]+`, 'gu'), ' ');
}

/** Several lines; a tab may stay. */
export function visibleLines(text: string): string {
  return text.replaceAll(new RegExp(`(?![\\n\\t])[${ACTING}]`, 'gu'), ' ');
}
