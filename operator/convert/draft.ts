/** A RenderService that is being written, with what is said about it. */
import type { V1Container, V1PodTemplateSpec } from '@kubernetes/client-node';
import { CST, Document, isMap, isNode, isPair, isScalar, isSeq, type Pair, Parser, type YAMLMap } from 'yaml';
import type { Finding } from '../check/finding.ts';
import { API_VERSION, KIND } from '../src/api/names.ts';
import { YAML_OPTIONS } from './kubectl-yaml.ts';
import { type Manifest, type Path, pathText } from './manifests.ts';

/** What a step says of a field; the object is the one that is converted unless it says another one. */
export type Said = Omit<Finding, 'path' | 'object'> & { object?: string };

/** Order of the fields of a RenderService, as people write them; the template, which is long, comes last. */
const SPEC_ORDER = ['workersPerPod', 'replicas', 'scaling', 'service', 'networkPolicy', 'rollout', 'disruptionBudget'];

/** `metadata` and `spec.template` stay, empty or not. */
const EMPTY_DEPTH_MIN: Record<string, number> = { metadata: 1, spec: 2 };
/** Fields of metadata that go over; all others are of the object that was read. */
const METADATA_FIELDS = ['name', 'namespace', 'labels', 'annotations'];

const ANCHORS: Said = {
  code: 'C016',
  level: 'info',
  what: 'anchors and aliases are written out, and comments are left out',
  why: 'A part of a document that others refer to cannot be moved alone',
  wayOut: 'Nothing to do.',
};

/**
 * The document takes the nodes of the source over, so comments, order and quotes stay as they are. The paths of the
 * template are those of the source.
 */
export class Draft {
  readonly source: Manifest;
  /** `Deployment/storefront` */
  readonly object: string;
  readonly findings: Finding[] = [];
  #isRefused = false;
  readonly #document: Document;
  readonly #spec = new Map<string, unknown>();

  constructor(source: Manifest) {
    this.source = source;
    this.object = `${source.kind}/${source.name}`;
    // A copy: the places of what is taken out are still needed for messages.
    const copy = source.document.clone();
    this.#document = new Document({ apiVersion: API_VERSION, kind: KIND, metadata: {}, spec: {} }, YAML_OPTIONS);
    this.#document.commentBefore = copy.commentBefore;
    const contents = copy.contents as YAMLMap;
    if (contents.commentBefore) (this.#document.contents as YAMLMap).commentBefore = contents.commentBefore;
    const metadata = this.#document.getIn(['metadata'], true) as YAMLMap;
    for (const field of METADATA_FIELDS) {
      const pair = pairOf(copy.get('metadata', true), field);
      if (pair) metadata.items.push(pair as (typeof metadata.items)[number]);
    }
    if (source.isRebuilt) this.say('', ANCHORS);
    const template = pairOf(copy.get('spec', true), 'template');
    const spec = this.#document.getIn(['spec'], true) as YAMLMap;
    if (template) spec.items.push(template as (typeof spec.items)[number]);
  }

  /** A path as messages have it: variables by their names, since indices change when one is taken out. */
  pathOf(path: Path): string {
    return pathText(
      path.map((step, index) => {
        if (path[index - 1] !== 'env' || typeof step !== 'number') return step;
        const name = this.#document.getIn([...path.slice(0, index + 1), 'name']);
        return typeof name === 'string' ? name : step;
      }),
    );
  }

  say(path: Path | string, { object = this.object, ...said }: Said): void {
    this.findings.push({ ...said, object, path: typeof path === 'string' ? path : this.pathOf(path) });
  }

  /** Says why no RenderService may be written. */
  refuse(path: Path | string, said: Omit<Said, 'level'>): void {
    this.#isRefused = true;
    this.say(path, { ...said, level: 'error' });
  }

  /** Whether no RenderService may be written: it would open or delete something. */
  get isRefused(): boolean {
    return this.#isRefused;
  }

  /** Takes a field out, and says why. */
  remove(path: Path, said: Said): void {
    const text = this.pathOf(path);
    this.#delete(path);
    this.say(text, said);
  }

  /** Takes fields out of which one sentence says all. */
  removeAll(paths: Path[], said: Said): void {
    const [first, ...rest] = paths.map((path) => this.pathOf(path));
    if (first === undefined) return;
    // Last ones first: an index behind a removed one means something else.
    for (const path of paths.toReversed()) this.#delete(path);
    this.say(first, rest.length > 0 ? { ...said, also: rest } : said);
  }

  /** Deletes a field, and lists and maps around it that have become empty; those say nothing. */
  #delete(path: Path): void {
    this.#document.deleteIn(path);
    for (let length = path.length - 1; length > (EMPTY_DEPTH_MIN[path[0] ?? ''] ?? 2); length--) {
      const parent = path.slice(0, length);
      const rest = this.#document.getIn(parent, true);
      closeUp(rest);
      const isEmpty = (isMap(rest) || isSeq(rest)) && rest.items.length === 0;
      // An empty item of a list is not taken out: the indices behind it must stay what they are.
      if (!isEmpty || typeof parent.at(-1) === 'number') return;
      this.#document.deleteIn(parent);
    }
  }

  /** Sets a value in place of one that is there, whose comment stays. */
  replace(path: Path, value: unknown): void {
    const old = this.#document.getIn(path, true);
    const next = this.#document.createNode(value);
    if (isScalar(old)) {
      next.comment = old.comment;
      next.commentBefore = old.commentBefore;
    }
    this.#document.setIn(path, next);
  }

  /** Sets a field of the spec. */
  set(field: string, value: unknown): void {
    this.#spec.set(field, value);
  }

  get(path: Path): unknown {
    const node = this.#document.getIn(path, true) as { toJS?(document: Document): unknown } | undefined;
    return typeof node?.toJS === 'function' ? node.toJS(this.#document) : node;
  }

  template(): V1PodTemplateSpec {
    return this.get(['spec', 'template']) as V1PodTemplateSpec;
  }

  container(index: number): V1Container {
    return this.template().spec?.containers[index] as V1Container;
  }

  /** The whole as a value. */
  value(): { metadata: Record<string, unknown>; spec: Record<string, unknown> } {
    return this.#finished().toJS();
  }

  /** The whole as YAML. */
  text(): string {
    return withTightLists(this.#finished().toString({ lineWidth: 0, indentSeq: !this.source.hasFlatLists }));
  }

  #finished(): Document {
    const document = this.#document.clone();
    const spec = document.getIn(['spec'], true) as YAMLMap;
    const template = spec.items;
    const fields = [...this.#spec].filter(([, value]) => value !== undefined);
    const place = (field: string) => SPEC_ORDER.indexOf(field);
    fields.sort(([one], [other]) => place(one) - place(other));
    spec.items = [
      ...fields.map(([field, value]) => document.createPair(field, value)),
      ...template,
    ] as typeof spec.items;
    return document;
  }
}

function pairOf(node: unknown, key: string): Pair | undefined {
  if (!isMap(node)) return undefined;
  return node.items.find((pair) => isScalar(pair.key) && pair.key.value === key) as Pair | undefined;
}

/** An empty line before what is now the first of a list or map means nothing any more. */
function closeUp(collection: unknown): void {
  if (!isMap(collection) && !isSeq(collection)) return;
  const [first] = collection.items as unknown[];
  const node = isPair(first) ? first.key : first;
  if (isNode(node)) node.spaceBefore = false;
}

/** `[a, b]` as people write it; the library pads either both `{ }` and `[ ]`, or none. */
function withTightLists(text: string): string {
  const tokens = [...new Parser().parse(text)];
  for (const token of tokens) {
    if (token.type !== 'document') continue;
    CST.visit(token, ({ value }) => {
      if (value?.type !== 'flow-collection' || value.start.type !== 'flow-seq-start') return;
      const [first] = value.items;
      const last = value.items.at(-1);
      if (first) first.start = withoutSpace(first.start);
      // What stands before the bracket belongs to an item of its own, or to the list or map that ends there.
      if (last && !last.key && !last.value) last.start = withoutSpace(last.start);
      if (last?.value && 'end' in last.value && last.value.end) last.value.end = withoutSpace(last.value.end, 'behind');
      value.end = withoutSpace(value.end, 'before');
    });
  }
  return tokens.map((token) => CST.stringify(token)).join('');
}

/** Tokens without their blanks; `before` and `behind` the bracket that is among them. */
function withoutSpace(tokens: CST.SourceToken[], side?: 'before' | 'behind'): CST.SourceToken[] {
  if (tokens.some(({ type }) => type === 'comment' || type === 'newline')) return tokens;
  const bracket = tokens.findIndex(({ type }) => type === 'flow-seq-end' || type === 'flow-map-end');
  const isOnSide = (index: number) =>
    side === 'before' ? index < bracket : side === 'behind' ? index > bracket : true;
  return tokens.filter(({ type }, index) => type !== 'space' || !isOnSide(index));
}
