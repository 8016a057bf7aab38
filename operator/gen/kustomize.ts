/**
 * Makes the schema by which Kustomize merges lists of a RenderService as it merges those of a Deployment: an item of
 * a patch changes the item of the same name, instead of taking the place of the whole list. A custom schema replaces
 * the one that Kustomize has built in, so it has Kubernetes' own kinds as well, as far as their lists are merged. Run
 * it after a change of the Kubernetes version, or of a list of the RenderService:
 *
 *   node operator/gen/kustomize.ts <kubernetes source>/api/openapi-spec/swagger.json
 *
 * The result is committed: `make verify` must not need the Kubernetes source.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { GROUP, KIND, VERSION } from '../src/api/names.ts';

interface Node {
  $ref?: string;
  type?: string;
  properties?: Record<string, Node>;
  items?: Node;
  additionalProperties?: Node | boolean;
  [extension: `x-kubernetes-${string}`]: unknown;
}

const OUTPUT = fileURLToPath(
  new URL('../../examples/gitops/kustomize/corelane/schema.generated.json', import.meta.url),
);
const DEFINITIONS = '#/definitions/';
const STRATEGY = 'x-kubernetes-patch-strategy';
const MERGE_KEY = 'x-kubernetes-patch-merge-key';
const KINDS = 'x-kubernetes-group-version-kind';
const KEPT = [STRATEGY, MERGE_KEY, 'x-kubernetes-list-map-keys'] as const;
/** Kinds that nobody patches: lists, and those of versions that are not stable. */
const LEFT_OUT = /List$|\.v[0-9]+(alpha|beta)[0-9]+\./;

/** A list whose items have a name. */
const keyed = (key: string): Node => ({ type: 'array', [STRATEGY]: 'merge', [MERGE_KEY]: key, items: {} });
const object = (properties: Record<string, Node>): Node => ({ type: 'object', properties });
const reference = (name: string): Node => ({ $ref: `${DEFINITIONS}${name}` });

const RENDER_SERVICE: Node = {
  ...object({
    metadata: reference('io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta'),
    spec: object({
      template: reference('io.k8s.api.core.v1.PodTemplateSpec'),
      assets: keyed('path'),
      cache: object({ ttl: keyed('pathPrefix') }),
      classes: keyed('name'),
      priority: object({ classes: keyed('name') }),
    }),
  }),
  [KINDS]: [{ group: GROUP, kind: KIND, version: VERSION }],
};

/** What Kustomize needs of Kubernetes' own kinds. */
function mergedKinds(definitions: Record<string, Node>): Record<string, Node> {
  const names = Object.keys(definitions).filter((name) => !LEFT_OUT.test(name));
  const merging = new Set<string>();
  const isMerging = (node: Node): boolean =>
    STRATEGY in node ||
    merging.has(nameOf(node)) ||
    childrenOf(node).some(([name, child]) => name !== 'status' && isMerging(child));
  // Until nothing is found any more: definitions name each other.
  for (let before = -1; before !== merging.size; ) {
    before = merging.size;
    for (const name of names) if (isMerging(definitions[name] as Node)) merging.add(name);
  }
  const reduced = ({ $ref, type, ...node }: Node): Node => {
    const below = childrenOf(node).filter(([name, child]) => name !== 'status' && isMerging(child));
    return {
      ...($ref !== undefined && merging.has(nameOf({ $ref })) && { $ref }),
      ...(type !== undefined && { type }),
      ...Object.fromEntries(KEPT.filter((key) => key in node).map((key) => [key, node[key]])),
      ...(node.properties && below.length > 0 && { properties: reducedEach(below) }),
      ...(node.items && { items: reduced(node.items) }),
      ...(!node.properties &&
        !node.items &&
        below.length > 0 && { additionalProperties: reduced(below[0]?.[1] ?? {}) }),
    };
  };
  const reducedEach = (children: [string, Node][]) =>
    Object.fromEntries(children.map(([name, child]) => [name, reduced(child)]));
  return Object.fromEntries(
    [...merging].sort().map((name) => {
      const definition = definitions[name] as Node;
      return [name, { ...reduced(definition), ...(KINDS in definition && { [KINDS]: definition[KINDS] }) }];
    }),
  );
}

function nameOf({ $ref = '' }: Node): string {
  return $ref.replace(DEFINITIONS, '');
}

/** Fields by their names, or what a list or a map is of. */
function childrenOf({ properties, items, additionalProperties }: Node): [string, Node][] {
  if (properties) return Object.entries(properties);
  if (items) return [['items', items]];
  return typeof additionalProperties === 'object' ? [['values', additionalProperties]] : [];
}

const [file] = process.argv.slice(2);
if (file === undefined) {
  console.error('usage: node operator/gen/kustomize.ts <swagger.json>');
  process.exit(2);
}
const { definitions } = JSON.parse(readFileSync(file, 'utf8')) as { definitions: Record<string, Node> };
const schema = { definitions: { [`dev.${GROUP.split('.')[0]}.${KIND}`]: RENDER_SERVICE, ...mergedKinds(definitions) } };
writeFileSync(OUTPUT, `${JSON.stringify(schema, null, 1)}\n`);
