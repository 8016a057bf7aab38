/**
 * Parts that many objects have alike, kept once: pods of a revision have the same labels, the same owner and the same
 * conditions, and JSON.parse makes each of them anew.
 */

/** Longer ones are a foreigner's: they are kept as they are. */
const TEXT_LENGTH_MAX = 1_024;
/** Of each generation. */
const ENTRIES_MAX = 4_096;

/** By their JSON, in two generations: what was not asked for during a whole one is forgotten. */
let young = new Map<string, unknown>();
let old = new Map<string, unknown>();

/** A value of JSON like this one, which must never be changed: mostly one that others have, too. */
export function shared<T>(value: T): T {
  if (value === undefined || value === null) return value;
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  if (text.length > TEXT_LENGTH_MAX) return value;
  // A text that is the JSON of something else is not the same.
  const key = typeof value === 'string' ? `"${text}` : text;
  const known = young.get(key) ?? old.get(key) ?? frozen(value);
  if (young.size >= ENTRIES_MAX) {
    old = young;
    young = new Map();
  }
  young.set(key, known);
  return known as T;
}

function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null) return value;
  for (const part of Object.values(value)) frozen(part);
  return Object.freeze(value);
}
