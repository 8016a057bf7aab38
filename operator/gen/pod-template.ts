/**
 * Takes Kubernetes' PodTemplateSpec out of its published OpenAPI v3 document and makes it structural, so that it can
 * stand inside a CRD. Its descriptions are left out: `kubectl explain deployment.spec.template` has them, and with them
 * the CRD would be larger than the 256 KiB that `kubectl apply` and Argo CD can keep in an annotation. Run it after a
 * change of the Kubernetes version:
 *
 *   node operator/gen/pod-template.ts <kubernetes source>/api/openapi-spec/v3/apis__apps__v1_openapi.json
 *
 * The result, pod-template.generated.json, is committed: `make verify` must not need the Kubernetes source.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

type Node = Record<string, unknown>;

const OUTPUT = fileURLToPath(new URL('pod-template.generated.json', import.meta.url));
const ROOT = 'io.k8s.api.core.v1.PodTemplateSpec';
/** Keys of a schema node that a structural schema may have. */
const KEPT = [
  'type',
  'format',
  'enum',
  'required',
  'x-kubernetes-list-type',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-map-type',
];
/**
 * Additions. Most are bounds on what CEL rules iterate over or match: without them the API server must assume the
 * largest request body and refuses the rules as too expensive.
 */
const ADDITIONS: Record<string, Node> = {
  '': { required: ['spec'] },
  'spec.containers': { minItems: 1, maxItems: 64 },
  // A Deployment without an image is refused too, but only when the operator applies it.
  'spec.containers[]': { required: ['name', 'image'] },
  'spec.containers[].name': { maxLength: 63 },
  'spec.containers[].ports': { maxItems: 64 },
  'spec.containers[].volumeMounts': { maxItems: 128 },
  'spec.initContainers': { maxItems: 64 },
  'spec.initContainers[].name': { maxLength: 63 },
  'spec.initContainers[].volumeMounts': { maxItems: 128 },
  'spec.volumes': { maxItems: 256 },
  'spec.volumes[].name': { maxLength: 63 },
  'spec.restartPolicy': { maxLength: 16 },
  'metadata.labels': { maxProperties: 256 },
};

/** The API server fails at an applied quantity that is none (500) instead of refusing it, so the schema refuses it. */
const QUANTITY = '^[+-]?([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$';

/** Metadata of a pod template. CRDs drop every metadata field that is not spelled out. */
const METADATA: Node = {
  type: 'object',
  properties: {
    annotations: { type: 'object', additionalProperties: { type: 'string' } },
    // Ignored; manifests made by kubectl create --dry-run have it.
    creationTimestamp: { type: 'string', format: 'date-time', nullable: true },
    finalizers: { type: 'array', items: { type: 'string' } },
    generateName: { type: 'string' },
    labels: { type: 'object', additionalProperties: { type: 'string' } },
    name: { type: 'string' },
    namespace: { type: 'string' },
  },
};

function referenceOf(node: Node): string | undefined {
  return (node.$ref ?? (node.allOf as Node[] | undefined)?.[0]?.$ref) as string | undefined;
}

function resolve(node: Node, schemas: Record<string, Node>): Node {
  const reference = referenceOf(node);
  if (reference === undefined) return node;
  const target = schemas[reference.replace('#/components/schemas/', '')];
  if (target === undefined) throw new Error(`${reference} is not in the document`);
  return target;
}

/**
 * A list whose items have keys. A CRD wants such keys to be required, or to have a default, and inside a list there
 * are no defaults (crd.ts). So a list with an optional key (`protocol` of a port) is one value.
 */
function keyed(list: Node, item: Node): Node {
  const required = (item.required ?? []) as string[];
  const keys = (list['x-kubernetes-list-map-keys'] ?? []) as string[];
  if (keys.every((key) => required.includes(key))) return { ...list, items: item };
  const { 'x-kubernetes-list-type': _type, 'x-kubernetes-list-map-keys': _keys, ...rest } = list;
  return { ...rest, items: item };
}

/** One node, with its references replaced by what they refer to. `path` is that of the field in the template. */
function structural(source: Node, schemas: Record<string, Node>, path: string): Node {
  if (path === 'metadata') return METADATA;
  const node = resolve(source, schemas);
  const additions = ADDITIONS[path] ?? {};
  if (Array.isArray(node.oneOf)) {
    const pattern = referenceOf(source)?.endsWith('.Quantity') && { pattern: QUANTITY };
    return { 'x-kubernetes-int-or-string': true, ...pattern };
  }
  const kept = Object.fromEntries(KEPT.filter((key) => key in node).map((key) => [key, node[key]]));
  const result: Node = { ...kept, ...additions };
  if (node.properties) {
    const entries = Object.entries(node.properties as Record<string, Node>);
    result.properties = Object.fromEntries(
      entries.map(([name, child]) => [name, structural(child, schemas, path === '' ? name : `${path}.${name}`)]),
    );
  }
  if (typeof node.additionalProperties === 'object') {
    result.additionalProperties = structural(node.additionalProperties as Node, schemas, `${path}.*`);
  }
  return node.items ? keyed(result, structural(node.items as Node, schemas, `${path}[]`)) : result;
}

const [file] = process.argv.slice(2);
if (file === undefined) {
  console.error('usage: node operator/gen/pod-template.ts <apis__apps__v1_openapi.json>');
  process.exit(2);
}
const document = JSON.parse(readFileSync(file, 'utf8')) as { components: { schemas: Record<string, Node> } };
const schemas = document.components.schemas;
writeFileSync(OUTPUT, `${JSON.stringify(structural(schemas[ROOT] as Node, schemas, ''), null, 1)}\n`);
