/** JSON schemas for kubeconform, made from what the API server itself publishes: no schema has to be downloaded. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

type Node = Record<string, unknown>;

interface OpenApi {
  definitions: Record<string, Node>;
}

/** Quantity and int-or-string are written as strings in OpenAPI v2, and numbers are fine for both. */
const STRING_OR_NUMBER = new Set([
  'io.k8s.apimachinery.pkg.util.intstr.IntOrString',
  'io.k8s.apimachinery.pkg.api.resource.Quantity',
]);

/** Unknown fields are errors, so that a typo in a template is seen. */
function strict(name: string, definition: Node): Node {
  if (STRING_OR_NUMBER.has(name)) return { oneOf: [{ type: 'string' }, { type: 'number' }] };
  return definition.properties ? { ...definition, additionalProperties: false } : definition;
}

function withLocalReferences(value: unknown): unknown {
  const text = JSON.stringify(value).replaceAll('"#/definitions/', '"_definitions.json#/definitions/');
  return JSON.parse(text);
}

/**
 * Writes one file per kind into `folder`, and returns the schema location for kubeconform.
 * @param openapi text of the API server's /openapi/v2
 */
export function writeSchemas(openapi: string, folder: string): string {
  const { definitions } = JSON.parse(openapi) as OpenApi;
  const all = Object.fromEntries(
    Object.entries(definitions).map(([name, definition]) => [name, strict(name, definition)]),
  );
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, '_definitions.json'), JSON.stringify(withLocalReferences({ definitions: all })));
  for (const [name, definition] of Object.entries(all)) {
    const kinds = (definition['x-kubernetes-group-version-kind'] ?? []) as {
      group: string;
      version: string;
      kind: string;
    }[];
    for (const { group, version, kind } of kinds) {
      const suffix = [kind, group.split('.')[0], version].filter(Boolean).join('-').toLowerCase();
      writeFileSync(join(folder, `${suffix}.json`), JSON.stringify({ $ref: `_definitions.json#/definitions/${name}` }));
    }
  }
  return `${folder}/{{ .ResourceKind }}{{ .KindSuffix }}.json`;
}
