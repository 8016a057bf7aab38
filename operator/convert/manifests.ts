/** The Kubernetes objects of a file, each with its place, so that comments can stay and messages can name a line. */
import { Document, isMap, isScalar, isSeq, LineCounter } from 'yaml';
import { quotesMissing } from '../src/api/quotes.ts';
import { ManifestError, readYaml, YAML_OPTIONS, type YamlDocument } from './kubectl-yaml.ts';

const OBJECTS_MAX = 2_000;

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

/**
 * The objects of a text: of all its documents, and of Lists in it.
 * @param file its name, for messages
 * @throws ManifestError with the place of what is wrong
 */
export function parseManifests(text: string, file: string): Manifest[] {
  const lines = new LineCounter();
  const found = readYaml(text, file, lines)
    .filter(({ value }) => value !== null && value !== undefined)
    .flatMap((whole) => withoutLists(whole.value, whole.document.contents).map((part) => ({ whole, part })));
  if (found.length > OBJECTS_MAX) throw new ManifestError(`${file} has more than ${OBJECTS_MAX} objects`);
  const about = { file, hasFlatLists: hasFlatLists(text), lineOf: (offset: number) => lines.linePos(offset).line };
  return found.map(({ whole, part }) => manifestAt(whole, part, about));
}

/** Line by line: one expression for both lines would read a long line once for each colon in it. */
function hasFlatLists(text: string): boolean {
  const lines = text.split('\n');
  return lines.some((line, index) => {
    const [, indent] = /^( *)[^\s#-]/.exec(line) ?? [];
    return indent !== undefined && lines[index + 1]?.startsWith(`${indent}- `) && /:[ \t]*(#[^\n]*)?$/.test(line);
  });
}

/** A value of a document, and the node that it was read from; none where an alias leads to it. */
interface Part {
  value: unknown;
  node?: unknown;
}

/** The items of a List, and of Lists in it; any other value is itself. */
export function withoutLists(value: unknown, node?: unknown): Part[] {
  if (!isRecord(value) || !isList(value)) return [{ value, node }];
  const nodes = isMap(node) ? node.get('items', true) : undefined;
  return ((value.items ?? []) as unknown[]).flatMap((item, index) =>
    withoutLists(itemOf(value, item), isSeq(nodes) ? nodes.items[index] : undefined),
  );
}

function isList({ kind, items }: Record<string, unknown>): boolean {
  return typeof kind === 'string' && kind.endsWith('List') && (Array.isArray(items) || items === null);
}

/** An API server says the kind of a RenderServiceList's items only once, as that of the list. */
function itemOf({ apiVersion, kind }: Record<string, unknown>, item: unknown): unknown {
  if (!isRecord(item) || item.kind !== undefined || item.apiVersion !== undefined) return item;
  return { ...item, apiVersion, kind: String(kind).replace(/List$/, '') };
}

function manifestAt(
  { document, hasAliases }: YamlDocument,
  { value, node }: Part,
  about: Pick<Manifest, 'file' | 'hasFlatLists' | 'lineOf'>,
): Manifest {
  const offset = rangeStart(node);
  const where = offset === undefined ? about.file : `${about.file}:${about.lineOf(offset)}`;
  if (!isRecord(value)) throw new ManifestError(`${where} is no Kubernetes object`);
  const { kind } = value;
  if (typeof kind !== 'string' || kind === '')
    throw new ManifestError(`${where} has no "kind": is it a Kubernetes object?`);
  const metadata = isRecord(value.metadata) ? value.metadata : {};
  // An API server ends the second one itself.
  const name = metadata.name ?? metadata.generateName;
  const wrong = quotesMissing(name);
  if (wrong) throw new ManifestError(`${where}: metadata.name of the ${kind} ${wrong}`);
  if (typeof name !== 'string' || name === '') throw new ManifestError(`${where}: ${kind} has no metadata.name`);
  const isWhole = node === document.contents;
  // An alias may lead out of an item.
  const own = hasAliases ? rebuilt(value, isWhole ? document.commentBefore : null) : isWhole ? document : partOf(node);
  return { ...about, isRebuilt: hasAliases, document: own, value, kind, name };
}

/** An item of a List as a document. */
function partOf(node: unknown): Document {
  const part = new Document(undefined, YAML_OPTIONS);
  part.contents = node as typeof part.contents;
  return part;
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

/** Parts of a document with anchors cannot be moved, so it is written anew, without the comments inside. */
function rebuilt(value: Record<string, unknown>, commentBefore: string | null): Document {
  const copy = new Document(value, { ...YAML_OPTIONS, aliasDuplicateObjects: false });
  copy.commentBefore = commentBefore;
  return copy;
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
