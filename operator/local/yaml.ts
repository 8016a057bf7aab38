/** Documents of a YAML file. Computes only. */
import { type Document, isScalar, parseAllDocuments, visit } from 'yaml';

/**
 * The library compares each key with all others of its map, and looks at the whole line for each error: minutes for
 * 100,000 of either. What is longer has errors without the line that they are in.
 */
const SHORT_LENGTH_MAX = 64 * 1024;

/** @throws Error with what is wrong */
export function parseYaml(text: string): unknown[] {
  const isShort = text.length <= SHORT_LENGTH_MAX;
  const parsed = parseAllDocuments(text, { uniqueKeys: isShort, prettyErrors: isShort });
  const all: Document[] = 'empty' in parsed ? [] : parsed;
  const [error] = all.flatMap(({ errors }) => errors.slice(0, 1));
  if (error) throw new Error(error.message.trim());
  if (!isShort && all.some(hasRepeatedKey)) throw new Error('Map keys must be unique');
  return all.map((document) => document.toJS()); // fails for aliases without end
}

function hasRepeatedKey(document: Document): boolean {
  let isFound = false;
  visit(document, {
    Map(_key, { items }) {
      const keys = items.map(({ key }) => (isScalar(key) ? key.value : key));
      isFound ||= new Set(keys).size < keys.length;
      return isFound ? visit.BREAK : undefined;
    },
  });
  return isFound;
}
