/** Which fields this version of the schema has. Computes only. */
import { type RenderServiceSpecInput, specShape } from '../../operator/src/api/spec.ts';

type LaterSpec = Partial<RenderServiceSpecInput>;

/** A spec that is not typed by the schema, which may lack its fields: `unknownFields` tells. */
export function laterSpec(fields: { [field: string]: unknown }): LaterSpec {
  return fields as LaterSpec;
}

const TEMPLATE = { spec: { containers: [{ name: 'worker', image: 'a' }] } };

/**
 * Paths of the fields of `spec` that the schema does not know, such as `cache.shared`.
 * @throws Error for anything else that is wrong with it
 */
export function unknownFields(spec: LaterSpec): string[] {
  const { error } = specShape.safeParse({ template: TEMPLATE, ...spec });
  return (error?.issues ?? []).flatMap((issue) => {
    if (issue.code !== 'unrecognized_keys') throw new Error(`${issue.path.join('.')}: ${issue.message}`);
    return issue.keys.map((key) => [...issue.path, key].join('.'));
  });
}
