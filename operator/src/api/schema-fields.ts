/**
 * Fields that an API server and this operator do not both know: what one of them lacks it drops, and of what it has
 * alone it fills in the defaults.
 */
import { z } from 'zod';
import { renderServiceStatus } from './resource.ts';
import { renderServiceSpec } from './validated-spec.ts';

/** As much of an OpenAPI schema as leads to fields. */
export interface FieldSchema {
  properties?: Record<string, FieldSchema> | undefined;
  items?: FieldSchema | undefined;
  additionalProperties?: FieldSchema | boolean | undefined;
  default?: unknown;
}

const OWN: FieldSchema = {
  properties: { spec: schemaOf(renderServiceSpec), status: schemaOf(renderServiceStatus) },
};

function schemaOf(type: z.ZodType): FieldSchema {
  return z.toJSONSchema(type, { target: 'openapi-3.0', io: 'input', unrepresentable: 'any' }) as FieldSchema;
}

/**
 * Paths of fields that this operator knows and `served` has not; of a field with fields only the field. What Kubernetes
 * has in a pod template is not looked at.
 * @param served schema of the whole resource
 */
export function missingFields(served: FieldSchema): string[] {
  return missing(OWN, served, '');
}

function missing(own: FieldSchema, served: FieldSchema, path: string): string[] {
  const named = Object.entries(own.properties ?? {}).flatMap(([name, field]) => {
    const at = path === '' ? name : `${path}.${name}`;
    const other = served.properties?.[name];
    return other ? missing(field, other, at) : [at];
  });
  const items = own.items ? missing(own.items, served.items ?? {}, `${path}[]`) : [];
  const { additionalProperties: values } = own;
  const others = served.additionalProperties;
  const valuesOf = typeof others === 'object' ? others : {};
  return [...named, ...items, ...(typeof values === 'object' ? missing(values, valuesOf, `${path}.*`) : [])];
}

/**
 * Of fields that this operator does not know, those that somebody has chosen: every resource has the others, with what
 * the API server has filled in. Undefined if `served` has them not: it is older than the resource.
 * @param resource as it is stored
 * @param paths as `parseStored` names them
 */
export function chosenFields(served: FieldSchema, resource: object, paths: string[]): string[] | undefined {
  const found = paths.map((path) => ({ path, ...fieldAt(served, resource, path) }));
  if (found.some(({ schema }) => schema === undefined)) return undefined;
  return found.filter(({ schema, value }) => !isDefault(schema as FieldSchema, value)).map(({ path }) => path);
}

/** The field at `spec.cache.ttl[0].value`. */
function fieldAt(served: FieldSchema, resource: object, path: string): { schema?: FieldSchema; value: unknown } {
  let schema: FieldSchema | undefined = served;
  let value: unknown = resource;
  for (const part of path.split(/[.[\]]+/).filter(Boolean)) {
    schema = Array.isArray(value) ? schema?.items : schema?.properties?.[part];
    value = (value as Record<string, unknown> | undefined)?.[part];
  }
  return { ...(schema && { schema }), value };
}

function isDefault(schema: FieldSchema, value: unknown): boolean {
  if (schema.default !== undefined && JSON.stringify(schema.default) === JSON.stringify(value)) return true;
  if (typeof value !== 'object' || value === null || Array.isArray(value) || !schema.properties) return false;
  const { properties } = schema;
  return Object.entries(value).every(([name, field]) => properties[name] && isDefault(properties[name], field));
}
