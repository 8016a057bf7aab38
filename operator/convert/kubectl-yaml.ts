/**
 * YAML as kubectl reads it (sigs.k8s.io/yaml, which is go-yaml 2): YAML 1.1, in which `on`, `No` and `y` are booleans
 * and 0644 is an octal number, but without its dates, sets and numbers to the base of 60. And JSON objects one after
 * the other. Every command that reads a manifest reads it here.
 */
import {
  type Document,
  isAlias,
  isCollection,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  parseAllDocuments,
  Scalar,
  type ScalarTag,
  type Tags,
  visit,
} from 'yaml';
import { writtenOut } from './written-out.ts';

/** A file that cannot be used; the message says why, and the way out. */
export class ManifestError extends Error {}

/** More than the API server stores of one object (1.5 MB), times what a file may reasonably hold of them. */
export const TEXT_LENGTH_MAX = 8_000_000;
/** Of a document with aliases, when these are written out: some 200 MB. */
const WRITTEN_OUT_MAX = 500_000;
/** Anchors and aliases of a document. The library looks for the anchor of each alias among all of both. */
const REFERENCES_MAX = 20_000;

/** A document of a file. */
export interface YamlDocument {
  /** As it was written, with comments. */
  document: Document;
  /** As plain values; null for an empty document. */
  value: unknown;
  /** Whether it has aliases or merges. */
  hasAliases: boolean;
}

const KNOWN_TAGS = /:(map|seq|str|null|bool|int|float|merge)$/;
/** Numbers by their format. The library's own expressions take "." and "e3" for numbers as well. */
const FORMATS: Record<string, RegExp> = {
  BIN: /^[-+]?0b_*[01][01_]*$/i,
  OCT: /^[-+]?0o?_*[0-7][0-7_]*$/i,
  HEX: /^[-+]?0x_*[0-9a-f][0-9a-f_]*$/i,
  EXP: /^[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9]+)e[-+]?[0-9]+$/i,
};
const FLOAT = /^[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9]+)$/;

/** The library's tags of YAML 1.1, as far as kubectl knows them, and as it reads them. */
function kubectlTags(tags: Tags): Tags {
  return tags.flatMap((tag) => {
    if (typeof tag === 'string' || tag.format === 'TIME' || !KNOWN_TAGS.test(tag.tag)) return [];
    return [tag.collection ? tag : asKubectl(tag)];
  });
}

function asKubectl(tag: ScalarTag): ScalarTag {
  const test = FORMATS[tag.format ?? ''] ?? (tag.test?.test('.5') ? FLOAT : tag.test);
  if (tag.tag.endsWith(':merge')) return { ...tag, resolve: mergeKey };
  // 0o17 as well as 017.
  if (tag.format === 'OCT')
    return { ...tag, test, resolve: (text, ...more) => tag.resolve(text.replace(/o/i, ''), ...more) };
  if (tag.format === 'EXP') return { ...tag, test, resolve: finiteOrText };
  return { ...tag, ...(test && { test }) };
}

/** The hash 1e4000 is no number for Go. */
function finiteOrText(text: string): number | string {
  const value = Number(text.replaceAll('_', ''));
  return Number.isFinite(value) ? value : text;
}

type AddToMap = NonNullable<Scalar['addToJSMap']>;

function mergeKey(): Scalar {
  return Object.assign(new Scalar(Symbol('<<')), { addToJSMap: addMerged });
}

/**
 * go-yaml writes what is merged into the map at the place of `<<`: it wins over fields before it and loses against
 * those behind it. Of several maps in a list the first wins.
 */
const addMerged: AddToMap = (context, map, value) => {
  for (const source of isSeq(value) ? value.items.toReversed() : [value]) {
    const merged = context && isAlias(source) ? source.resolve(context.doc, context) : source;
    if (!isMap(merged)) throw new Error('what << merges must be a map, or a list of maps');
    for (const [key, field] of Object.entries(merged.toJSON(null, context)))
      Object.defineProperty(map, key, { value: field, writable: true, enumerable: true, configurable: true });
  }
};

function isMergeKey(key: unknown): boolean {
  return isScalar(key) && typeof key.value === 'symbol';
}

export const YAML_OPTIONS = {
  schema: 'yaml-1.1',
  customTags: kubectlTags,
  resolveKnownTags: false,
  logLevel: 'error',
} as const;

/**
 * The documents of a text. A key that stands twice in a map is refused: kubectl would take the last one without a word.
 * @param file its name, for messages
 * @param lines learns where the lines of the text begin
 * @throws ManifestError with the place of what is wrong
 */
export function readYaml(text: string, file: string, lines = new LineCounter()): YamlDocument[] {
  if (text.length > TEXT_LENGTH_MAX) throw new ManifestError(`${file} is larger than ${TEXT_LENGTH_MAX / 1e6} MB`);
  const documents = parse(withMarkers(text), file, lines);
  const placeOf = (offset: number) => {
    const { line, col } = lines.linePos(offset);
    return `line ${line}, column ${col}`;
  };
  const broken = documents.find(({ errors }) => errors.length > 0)?.errors[0];
  if (broken)
    throw new ManifestError(
      `${file} is no YAML: ${broken.message.split('\n')[0]} at ${placeOf(broken.pos[0])}${templateHint(text)}`,
    );
  const repeated = documents.map((document) => repeatedKey(document)).find((offset) => offset !== undefined);
  if (repeated !== undefined)
    throw new ManifestError(`${file} is no YAML: Map keys must be unique at ${placeOf(repeated)}`);
  return documents.map((document) => {
    const odd = keyWith(document, (key) => isCollection(key) || (isScalar(key) && key.value === null));
    // What `name: {{ .Values.name }}` looks like to YAML.
    if (isCollection(odd)) throw new ManifestError(`${file} has a key that is no text${templateHint('{{')}`);
    if (odd) throw new ManifestError(`${file} has a field without a name`);
    return withValue(document, file);
  });
}

/** kubectl takes JSON objects one after the other, as jq prints them. In JSON such lines can stand nowhere else. */
function withMarkers(text: string): string {
  if (!/^\s*\{/.test(text) || /^---/m.test(text)) return text;
  return text.replace(/(\}[ \t\r]*\n(?:[ \t\r]*\n)*)[ \t]*\{/g, '$1--- {');
}

function parse(text: string, file: string, lineCounter: LineCounter): Document[] {
  try {
    // The library compares each key with all others of its map, and looks at the whole line for each error in it:
    // minutes for 100,000 of either.
    const options = { ...YAML_OPTIONS, uniqueKeys: false, prettyErrors: false, lineCounter };
    const documents = parseAllDocuments(text, options);
    return Array.isArray(documents) ? documents : [];
  } catch (error) {
    // A text that is nested a hundred thousand times exhausts the stack.
    throw new ManifestError(`${file} cannot be read: ${(error as Error).message}`);
  }
}

/** Offset of a key that its map has twice, however it is written: `on` and `"true"` are one. */
function repeatedKey(document: Document): number | undefined {
  let found: number | undefined;
  visit(document, {
    Map(_key, { items }) {
      const seen = new Set<string>();
      for (const { key } of items) {
        if (!isScalar(key) || isMergeKey(key)) continue;
        const name = String(key.value);
        if (seen.has(name)) found = key.range?.[0] ?? 0;
        if (found !== undefined) return visit.BREAK;
        seen.add(name);
      }
      return undefined;
    },
  });
  return found;
}

function templateHint(text: string): string {
  return text.includes('{{') ? ' (a template of Helm? Render it first: helm template RELEASE CHART)' : '';
}

/** With plain values. What aliases stand for is bounded here: the library bounds only their number. */
function withValue(document: Document, file: string): YamlDocument {
  try {
    const isReferring = hasAliases(document);
    if (isReferring) {
      if (referencesOf(document) > REFERENCES_MAX)
        throw new Error(`it has more than ${REFERENCES_MAX} anchors and aliases`);
      if (writtenOut(document) > WRITTEN_OUT_MAX)
        throw new Error(`its aliases stand for more than ${WRITTEN_OUT_MAX} values`);
    }
    return { document, value: document.toJS({ maxAliasCount: -1 }), hasAliases: isReferring };
  } catch (error) {
    throw new ManifestError(`${file} cannot be read: ${(error as Error).message}`);
  }
}

function referencesOf(document: Document): number {
  let count = 0;
  visit(document, {
    Node(_key, node) {
      if (isAlias(node) || node.anchor !== undefined) count += 1;
    },
  });
  return count;
}

function hasAliases(document: Document): boolean {
  let found = false;
  visit(document, {
    Alias() {
      found = true;
      return visit.BREAK;
    },
  });
  return found || keyWith(document, isMergeKey) !== undefined;
}

/** The first key of a kind. */
function keyWith(document: Document, isIt: (key: unknown) => boolean): unknown {
  let found: unknown;
  visit(document, {
    Pair(_key, { key }) {
      if (!isIt(key)) return undefined;
      found = key;
      return visit.BREAK;
    },
  });
  return found;
}
