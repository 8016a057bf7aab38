/**
 * YAML as kubectl reads it: documents, Lists, YAML 1.1 (an octal `0644`, `yes` as a boolean), and each object with its
 * place in the file, so that comments can stay and messages can name a line.
 */
import {
  Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  LineCounter,
  parseAllDocuments,
  type ScalarTag,
  type Tags,
  visit,
} from 'yaml';
import { writtenOut } from './written-out.ts';

/** A file that cannot be used; the message says why, and the way out. */
export class ManifestError extends Error {}

/** More than the API server stores of one object (1.5 MB), times what a file may reasonably hold of them. */
export const TEXT_LENGTH_MAX = 8_000_000;
const OBJECTS_MAX = 2_000;
/** Of a document with aliases, when these are written out: some 200 MB. */
const WRITTEN_OUT_MAX = 500_000;

/** A Kubernetes object as it was read. */
export interface Manifest {
  /** As it was written, with comments. */
  document: Document;
  /** As plain values. */
  value: Record<string, unknown>;
  kind: string;
  name: string;
  file: string;
  /** Line of an offset in the file, from 1. */
  lineOf(offset: number): number;
  /** Whether it had anchors, and was written anew without them and without its comments. */
  isRebuilt: boolean;
  /** Whether lists stand below their key without being indented. */
  hasFlatLists: boolean;
}

/** kubectl knows these as booleans; the library adds `y` and `n`, which kubectl takes for text. */
const BOOLEAN = { true: /^(?:[Yy]es|YES|[Tt]rue|TRUE|[Oo]n|ON)$/, false: /^(?:[Nn]o|NO|[Ff]alse|FALSE|[Oo]ff|OFF)$/ };

/** The tags of YAML 1.1 that Kubernetes knows: no dates, no numbers to the base of 60, no sets. */
function kubectlTags(tags: Tags): Tags {
  return tags.filter((tag) => isOfKubectl(tag)).map((tag) => (isBoolean(tag) ? asKubectl(tag) : tag));
}

function isOfKubectl(tag: Tags[number]): boolean {
  if (typeof tag === 'string') return true;
  return !/(timestamp|binary|omap|pairs|set)$/.test(tag.tag) && (tag as ScalarTag).format !== 'TIME';
}

function isBoolean(tag: Tags[number]): tag is ScalarTag {
  return typeof tag !== 'string' && tag.tag === 'tag:yaml.org,2002:bool';
}

function asKubectl(tag: ScalarTag): ScalarTag {
  return { ...tag, test: tag.test?.test('yes') ? BOOLEAN.true : BOOLEAN.false };
}

export const YAML_OPTIONS = { schema: 'yaml-1.1', customTags: kubectlTags, merge: true, logLevel: 'error' } as const;

/**
 * The objects of a text: of all its documents, and of Lists in it.
 * @param file its name, for messages
 * @throws ManifestError with the place of what is wrong
 */
export function parseManifests(text: string, file: string): Manifest[] {
  if (text.length > TEXT_LENGTH_MAX) throw new ManifestError(`${file} is larger than ${TEXT_LENGTH_MAX / 1e6} MB`);
  const lines = new LineCounter();
  const documents = parse(text, file, lines);
  const broken = documents.find(({ errors }) => errors.length > 0)?.errors[0];
  const placeOf = (offset: number) => {
    const { line, col } = lines.linePos(offset);
    return `line ${line}, column ${col}`;
  };
  if (broken)
    throw new ManifestError(
      `${file} is no YAML: ${broken.message.split('\n')[0]} at ${placeOf(broken.pos[0])}${templateHint(text)}`,
    );
  const repeated = documents.map((document) => repeatedKey(document)).find((offset) => offset !== undefined);
  if (repeated !== undefined)
    throw new ManifestError(`${file} is no YAML: Map keys must be unique at ${placeOf(repeated)}`);
  const about = {
    file,
    hasFlatLists: hasFlatLists(text),
    isRebuilt: false,
    lineOf: (offset: number) => lines.linePos(offset).line,
  };
  const manifests = documents.flatMap((document) => objectsOf(document, about));
  if (manifests.length > OBJECTS_MAX) throw new ManifestError(`${file} has more than ${OBJECTS_MAX} objects`);
  return manifests;
}

/** Line by line: one expression for both lines would read a long line once for each colon in it. */
function hasFlatLists(text: string): boolean {
  const lines = text.split('\n');
  return lines.some((line, index) => {
    const [, indent] = /^( *)[^\s#-]/.exec(line) ?? [];
    return indent !== undefined && lines[index + 1]?.startsWith(`${indent}- `) && /:[ \t]*(#[^\n]*)?$/.test(line);
  });
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

/** Offset of a key that its map has twice. `<<` may stand there more than once. */
function repeatedKey(document: Document): number | undefined {
  let found: number | undefined;
  visit(document, {
    Map(_key, { items }) {
      const seen = new Set<unknown>();
      for (const { key } of items) {
        if (!isScalar(key) || key.value === '<<') continue;
        if (seen.has(key.value)) found = key.range?.[0] ?? 0;
        if (found !== undefined) return visit.BREAK;
        seen.add(key.value);
      }
      return undefined;
    },
  });
  return found;
}

function templateHint(text: string): string {
  return text.includes('{{')
    ? ' (a template of Helm? Render it first: helm template RELEASE CHART | corelane convert -f -)'
    : '';
}

type About = Pick<Manifest, 'file' | 'hasFlatLists' | 'lineOf' | 'isRebuilt'>;

function objectsOf(document: Document, about: About): Manifest[] {
  // What `name: {{ .Values.name }}` looks like to YAML.
  const hasOddKeys = has(document, { key: (key) => !isScalar(key) && !isAlias(key) });
  if (hasOddKeys) throw new ManifestError(`${about.file} has a key that is no text${templateHint('{{')}`);
  const value = plain(document, about.file);
  if (value === null || value === undefined) return [];
  const at = document.contents?.range ? `:${about.lineOf(document.contents.range[0])}` : '';
  const where = `${about.file}${at}`;
  if (!isRecord(value)) throw new ManifestError(`${where} is no Kubernetes object`);
  const { kind, items } = value;
  if (typeof kind !== 'string') throw new ManifestError(`${where} has no "kind": is it a Kubernetes object?`);
  if (kind.endsWith('List') && Array.isArray(items)) {
    const nodes = document.get('items', true);
    // An alias may lead out of its item.
    const isRebuilt = about.isRebuilt || hasAliases(document);
    return items.flatMap((_item, index) => {
      const part = new Document(undefined, YAML_OPTIONS);
      const node = isRebuilt ? part.createNode(items[index]) : isSeq(nodes) ? nodes.items[index] : null;
      part.contents = node as typeof part.contents;
      return objectsOf(part, { ...about, isRebuilt });
    });
  }
  const metadata = isRecord(value.metadata) ? value.metadata : {};
  const name = typeof metadata.name === 'string' ? metadata.name : '';
  if (name === '') throw new ManifestError(`${where}: ${kind} has no metadata.name`);
  const isRebuilt = about.isRebuilt || hasAliases(document);
  return [{ ...about, isRebuilt, document: isRebuilt ? rebuilt(document, value) : document, value, kind, name }];
}

/** An object that comes from an API server. @param file what a message calls that */
export function manifestOf(value: Record<string, unknown>, file: string): Manifest {
  const document = new Document(value, { ...YAML_OPTIONS, aliasDuplicateObjects: false });
  const metadata = isRecord(value.metadata) ? value.metadata : {};
  return {
    document,
    value,
    kind: String(value.kind),
    name: String(metadata.name),
    file,
    hasFlatLists: false,
    isRebuilt: false,
    lineOf: () => 0,
  };
}

/** Plain values of a document. Aliases that multiply ("billion laughs") are refused by the library, long ones here. */
function plain(document: Document, file: string): unknown {
  try {
    if (hasAliases(document) && writtenOut(document) > WRITTEN_OUT_MAX)
      throw new Error(`its aliases stand for more than ${WRITTEN_OUT_MAX} values`);
    return document.toJS({ maxAliasCount: 100 });
  } catch (error) {
    throw new ManifestError(`${file} cannot be read: ${(error as Error).message}`);
  }
}

/** Parts of a document with anchors cannot be moved, so it is written anew, without the comments inside. */
function rebuilt(document: Document, value: unknown): Document {
  const copy = new Document(value, { ...YAML_OPTIONS, aliasDuplicateObjects: false });
  copy.commentBefore = document.commentBefore;
  return copy;
}

function hasAliases(document: Document): boolean {
  return has(document, {
    node: (node) => isAlias(node),
    key: (key) => isScalar(key) && key.value === '<<',
  });
}

/** Whether a document has a node, or a key, of a kind. */
function has(
  document: Document,
  { node, key }: { node?(node: unknown): boolean; key?(key: unknown): boolean },
): boolean {
  let found = false;
  const stop = (isFound: boolean | undefined) => {
    found ||= isFound === true;
    return found ? visit.BREAK : undefined;
  };
  visit(document, { Node: (_key, one) => stop(node?.(one)), Pair: (_key, pair) => stop(key?.(pair.key)) });
  return found;
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Steps to a field: `['spec', 'containers', 0, 'env']`. */
export type Path = (string | number)[];

/** A path as kubectl prints it; a variable by its name: `containers[0].env[PORT]`. */
export function pathText(path: Path): string {
  return path
    .map((step, index) => {
      const isPlain = typeof step === 'string' && /^[\w-]+$/.test(step) && path[index - 1] !== 'env';
      return isPlain ? `.${step}` : `[${step}]`;
    })
    .join('')
    .replace(/^\./, '');
}

/** The steps of a path as kubectl prints it. */
export function pathSteps(text: string): Path {
  return [...text.matchAll(/([\w-]+)|\[([^\]]*)\]/g)].map(([, name, index = '']) =>
    name !== undefined ? name : /^[0-9]+$/.test(index) ? Number(index) : index,
  );
}

/** The step from a node to a part of it: a key, an index, or the name of an item of a list. */
function childOf(parent: unknown, step: string | number): { place: unknown; node: unknown } | undefined {
  if (isMap(parent)) {
    const pair = parent.items.find(({ key }) => isScalar(key) && key.value === step);
    return pair && { place: pair.key, node: pair.value };
  }
  if (!isSeq(parent)) return undefined;
  const node =
    typeof step === 'number'
      ? parent.items[step]
      : parent.items.find((item) => isMap(item) && item.get('name') === step);
  return node === undefined ? undefined : { place: node, node };
}

/** Line of a field in its file, or of what is nearest around it; undefined where the object comes from a cluster. */
export function lineOfField({ document, lineOf }: Manifest, path: Path): number | undefined {
  let node: unknown = document.contents;
  let offset = rangeStart(node);
  for (const step of path) {
    const child = childOf(node, step);
    if (!child) break;
    offset = rangeStart(child.place) ?? offset;
    node = child.node;
  }
  return offset === undefined ? undefined : lineOf(offset);
}

function rangeStart(node: unknown): number | undefined {
  return (node as { range?: [number, number, number] } | undefined)?.range?.[0];
}
