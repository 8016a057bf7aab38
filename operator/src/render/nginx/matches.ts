/** Several things that are to be true of a request, as maps. */
import { block, type Lines } from '../directives.ts';

/** Name, what is looked at, and the pattern by which it is a match. */
export type Field = [name: string, source: string, pattern: string];

/** Maps, and the variable that is empty unless all fields are as they should be. */
export function allOf(fields: Field[], prefix: string): { maps: Lines; variable: string } {
  const variables = fields.map(([field]) => `${prefix}_${field}`);
  const maps = fields.map(([field, source, pattern]) => block(`map ${source} ${prefix}_${field}`, `${pattern} 1;`));
  if (variables.length === 1) return { maps, variable: variables[0] as string };
  const all = block(`map ${variables.join('')} ${prefix}`, `${'1'.repeat(variables.length)} 1;`);
  return { maps: [maps, all], variable: prefix };
}
