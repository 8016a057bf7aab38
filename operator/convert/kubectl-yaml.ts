/**
 * YAML as kubectl reads it (sigs.k8s.io/yaml, which is go-yaml 2): YAML 1.1, in which `on`, `No` and `y` are booleans
 * and 0644 is an octal number, but without its dates, sets and numbers to the base of 60. And JSON objects one after
 * the other. Every command that reads a manifest reads it here.
 */
import {
  type Alias,
  Composer,
  type Document,
  isAlias,
  isCollection,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  Parser,
  Scalar,
  type ScalarTag,
  Schema,
  type Tags,
  type YAMLMap,
} from 'yaml';

/** A file that cannot be used; the message says why, and the way out. */
export class ManifestError extends Error {}

/** More than the API server stores of one object (1.5 MB), times what a file may reasonably hold of them. */
export const TEXT_LENGTH_MAX = 8_000_000;
/** Documents of a file, with the empty ones that Helm leaves. A million lines of "---" would fill the memory. */
const DOCUMENTS_MAX = 10_000;
/** Values of a document with aliases, when these are written out: some 200 MB. */
const WRITTEN_OUT_MAX = 500_000;
/** Anchors and aliases of a document. The library looks for the anchor of each alias among all of both. */
const REFERENCES_MAX = 20_000;

const TOO_DEEP = 'it is nested too deeply';

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
/** Numbers by their format, where the library's own expressions take other things for numbers: "e3", but not 0o17. */
const FORMATS: Record<string, RegExp> = {
  OCT: /^[-+]?0o?_*[0-7][0-7_]*$/i,
  EXP: /^[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9]+)e[-+]?[0-9]+$/i,
};
/** Without ".", which the library takes for a number. */
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
    if (!isMap(merged)) throw new Error('the value of << must be a map, or a list of maps');
    // A plain assignment of "__proto__" would set the prototype.
    for (const [key, field] of Object.entries(merged.toJSON(null, context)))
      Object.defineProperty(map, key, { value: field, writable: true, enumerable: true, configurable: true });
  }
};

/** With one schema for all documents: the library would make one for each. */
export const YAML_OPTIONS = {
  schema: new Schema({ schema: 'yaml-1.1', customTags: kubectlTags }),
  logLevel: 'error',
} as const;

/** Makes an error with the place of a node, or of an offset. */
type Fault = (what: string, at: unknown) => ManifestError;

/**
 * The documents of a text. A key that stands twice in a map is refused: kubectl would take the last one without a word.
 * @param file its name, for messages
 * @param lines learns where the lines of the text begin
 * @throws ManifestError with the place of what is wrong
 */
export function readYaml(text: string, file: string, lines = new LineCounter()): YamlDocument[] {
  if (text.length > TEXT_LENGTH_MAX) throw new ManifestError(`${file} is larger than ${TEXT_LENGTH_MAX / 1e6} MB`);
  const hint = text.includes('{{') ? ' (a template of Helm? Render it first: helm template RELEASE CHART)' : '';
  const fault: Fault = (what, at) => {
    const offset = typeof at === 'number' ? at : ((at as { range?: number[] }).range?.[0] ?? 0);
    const { line, col } = lines.linePos(offset);
    return new ManifestError(`${file} is no YAML: ${what} at line ${line}, column ${col}${hint}`);
  };
  // The library would compare each key with all others of its map: minutes for 100,000.
  const composer = new Composer({ ...YAML_OPTIONS, uniqueKeys: false });
  const found: YamlDocument[] = [];
  try {
    for (const document of composer.compose(new Parser(lines.addNewLine).parse(withMarkers(text)))) {
      if (found.length === DOCUMENTS_MAX) throw new Error(`it has more than ${DOCUMENTS_MAX} documents`);
      found.push(read(document, fault));
    }
  } catch (error) {
    if (error instanceof ManifestError) throw error;
    // The parser calls itself for each level. Some thousand levels use up the stack.
    const why = error instanceof RangeError ? TOO_DEEP : (error as Error).message;
    throw new ManifestError(`${file} cannot be read: ${why}`);
  }
  return found;
}

/** kubectl takes JSON objects one after the other, as jq prints them. In JSON such lines can stand nowhere else. */
function withMarkers(text: string): string {
  if (!/^\s*\{/.test(text) || /^---/m.test(text)) return text;
  return text.replace(/(\}[ \t\r]*\n(?:[ \t\r]*\n)*)[ \t]*\{/g, '$1--- {');
}

function read(document: Document, fault: Fault): YamlDocument {
  const [broken] = document.errors;
  if (broken)
    throw fault(
      broken.code === 'RESOURCE_EXHAUSTION' ? TOO_DEEP : (broken.message.split('\n')[0] ?? ''),
      broken.pos[0],
    );
  const hasAliases = inspect(document, fault);
  // The library bounds how many aliases there are, and not what each of them brings; `inspect` bounds both.
  return { document, value: document.toJS({ maxAliasCount: -1 }), hasAliases };
}

/**
 * Looks at each node once, without the library's `visit`, which copies the way to each of them.
 * @returns whether there are aliases or merges
 * @throws ManifestError for a key that cannot be, and for an alias that leads nowhere; Error for too many aliases
 */
function inspect(document: Document, fault: Fault): boolean {
  /** Values that an anchor stands for; undefined within it. */
  const sizes = new Map<string, number | undefined>();
  let references = 0;
  let hasAliases = false;
  const sizeOfAlias = (alias: Alias): number => {
    references += 1;
    hasAliases = true;
    const { source } = alias;
    const size = sizes.get(source);
    if (size !== undefined) return size;
    throw fault(sizes.has(source) ? `&${source} contains itself` : `there is no &${source} before this alias`, alias);
  };
  const sizeOf = (node: unknown): number => {
    if (isAlias(node)) return sizeOfAlias(node);
    const { anchor } = (node ?? {}) as { anchor?: string };
    if (anchor !== undefined) sizes.set(anchor, undefined);
    if (isMap(node) && checkKeys(node, fault)) hasAliases = true;
    let size = 1;
    for (const part of partsOf(node)) size += sizeOf(part);
    if (anchor === undefined) return size;
    references += 1;
    sizes.set(anchor, size);
    return size;
  };
  const size = sizeOf(document.contents);
  if (!hasAliases) return false;
  if (references > REFERENCES_MAX) throw new Error(`it has more than ${REFERENCES_MAX} anchors and aliases`);
  if (size > WRITTEN_OUT_MAX) throw new Error(`its aliases stand for more than ${WRITTEN_OUT_MAX} values`);
  return true;
}

function partsOf(node: unknown): unknown[] {
  if (isMap(node)) return node.items.flatMap(({ key, value }) => [key, value]);
  return isSeq(node) ? node.items : [];
}

/** However a key is written: `on` and `"true"` are one. @returns whether one is `<<` */
function checkKeys({ items }: YAMLMap, fault: Fault): boolean {
  const seen = new Set<string>();
  let hasMerge = false;
  for (const { key } of items) {
    // What `name: {{ .Values.name }}` looks like to YAML.
    if (isCollection(key)) throw fault('a key that is no text', key);
    if (!isScalar(key)) continue;
    if (typeof key.value === 'symbol') {
      hasMerge = true;
      continue;
    }
    if (key.value === null) throw fault('a field without a name', key);
    const name = String(key.value);
    if (seen.has(name)) throw fault('Map keys must be unique', key);
    seen.add(name);
  }
  return hasMerge;
}
