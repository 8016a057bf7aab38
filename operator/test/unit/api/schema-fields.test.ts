/** Fields that a CustomResourceDefinition lacks. */
import { customResourceDefinition, resourceSchema } from '../../../gen/crd.ts';
import { chosenFields, type FieldSchema, missingFields } from '../../../src/api/schema-fields.ts';

/** The schema of this version, to be taken apart. */
function served(): FieldSchema {
  const [version] = customResourceDefinition().spec.versions;
  return structuredClone(version?.schema.openAPIV3Schema) as FieldSchema;
}

/** The node of a field below the schema, `ttl[]` for the items of `ttl`. */
function at(schema: FieldSchema, ...path: string[]): FieldSchema {
  return path.reduce((node, name) => {
    const field = node.properties?.[name.replace('[]', '')] as FieldSchema;
    return name.endsWith('[]') ? (field.items as FieldSchema) : field;
  }, schema);
}

test('the definition of this version lacks none', () => {
  expect(missingFields(served())).toEqual([]);
});

test('the definition fills in nothing inside the items of lists, which the operator does', () => {
  const filledIn = (schema: FieldSchema, path: string, isInItem: boolean): string[] => [
    ...(isInItem && schema.default !== undefined ? [path] : []),
    ...Object.entries(schema.properties ?? {}).flatMap(([name, field]) => filledIn(field, `${path}.${name}`, isInItem)),
    ...(schema.items ? filledIn(schema.items, `${path}[]`, true) : []),
  ];
  expect(filledIn(served(), '', false)).toEqual([]);
  // As the reference has them.
  const all = filledIn(resourceSchema() as FieldSchema, '', false);
  expect(all).toEqual(expect.arrayContaining(['.spec.classes[].queue.maxLength', '.spec.assets[].maxAge']));
  expect(all).not.toEqual(expect.arrayContaining([expect.stringMatching(/^\.spec\.template\./)]));
});

test('a field that is missing is named, in a list and in the status too, and not what is below it', () => {
  const schema = served();
  delete at(schema, 'spec', 'cache', 'ttl[]').properties?.value;
  delete at(schema, 'spec').properties?.scaling;
  delete at(schema, 'status').properties?.workers;
  expect(missingFields(schema)).toEqual(['spec.scaling', 'spec.cache.ttl[].value', 'status.workers']);
});

test("fields of others do not matter: a newer definition's, and a pod template's of another Kubernetes", () => {
  const schema = served();
  Object.assign(at(schema, 'spec').properties as object, { novelty: { properties: { on: {} } } });
  at(schema, 'spec', 'template').properties = {};
  expect(missingFields(schema)).toEqual([]);
});

describe('fields of a newer definition', () => {
  const level: FieldSchema = { default: 3 };
  const novelty: FieldSchema = { default: {}, properties: { level, name: {} } };
  const served: FieldSchema = {
    properties: {
      spec: { properties: { novelty, list: { items: { properties: { level } } }, order: { default: ['a'] } } },
    },
  };
  const chosen = (spec: object, ...paths: string[]) => chosenFields(served, { spec }, paths);

  test('with what the API server has filled in are chosen by nobody', () => {
    const spec = { novelty: { level: 3 }, list: [{ level: 3 }], order: ['a'] };
    expect(chosen(spec, 'spec.novelty', 'spec.list[0].level', 'spec.order')).toEqual([]);
  });

  test.each([
    [{ novelty: { level: 4 } }, 'spec.novelty'],
    [{ novelty: { level: 3, name: 'x' } }, 'spec.novelty'],
    [{ list: [{ level: 3 }, { level: 4 }] }, 'spec.list[1].level'],
    [{ order: ['b'] }, 'spec.order'],
  ])('%j: %s is', (spec, path) => expect(chosen(spec, path)).toEqual([path]));

  test('that the definition has not are newer than it', () => {
    expect(chosen({ other: 1, novelty: { level: 4 } }, 'spec.novelty', 'spec.other')).toBeUndefined();
  });
});
