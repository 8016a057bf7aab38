/** Makes docs/reference.md out of the CRD's schema: one table row per field. */

import { type Reach, reachOf } from '../src/api/live.ts';
import { API_VERSION, KIND } from '../src/api/names.ts';
import { resourceSchema, type Schema } from './crd.ts';

interface Row {
  path: string;
  type: string;
  default: string;
  description: string;
  /** How a change gets to where it counts; what has fields has none of its own. */
  reach?: string;
}

const REACH: Record<Reach, string> = { live: 'live', rolling: 'rolls', operator: 'at once' };

function reachText(path: string): string {
  const [reach, but] = reachOf(path.replace(/^spec[.]/, ''));
  return REACH[reach] + (but ? `; ${but}` : '');
}

function typeOf(node: Schema): string {
  if (node['x-kubernetes-int-or-string'])
    return boundsOf(node).includes('percentage') ? 'integer or percentage' : 'integer or Auto';
  if (node.enum) return (node.enum as string[]).join(' \\| ');
  if (node.type === 'integer' || node.type === 'number') {
    const bounds = node.maximum === undefined ? '' : ` ${node.minimum ?? 0}..${node.maximum}`;
    return `${node.type}${bounds}`;
  }
  if (node.additionalProperties) return 'map of strings';
  return String(node.type ?? 'object');
}

function boundsOf(node: Schema): string {
  const rules = (node['x-kubernetes-validations'] ?? []) as { message: string }[];
  const scalar = node.type !== 'object' && rules[0] ? ` It ${rules[0].message}.` : '';
  return scalar;
}

/** A field whose default is an object takes its default from the fields inside. */
function defaultOf(node: Schema): string {
  return node.default === undefined || typeof node.default === 'object' ? '' : `\`${node.default}\``;
}

function rows(node: Schema, path: string): Row[] {
  if (node.type === 'array') return rows(node.items as Schema, `${path}[]`);
  return Object.entries(node.properties ?? {}).flatMap(([name, child]) => {
    const here = path === '' ? name : `${path}.${name}`;
    const own = {
      path: here,
      type: typeOf(child),
      default: defaultOf(child),
      description: `${child.description ?? ''}${boundsOf(child)}`,
      reach: child.properties || (child.items as Schema | undefined)?.properties ? '' : reachText(here),
    };
    return here === 'spec.template'
      ? [{ ...own, type: 'PodTemplateSpec', reach: reachText(here) }]
      : [own, ...rows(child, here)];
  });
}

function table(lines: Row[], withReach = false): string {
  const body = lines.map((row) => {
    const cells = [`\`${row.path}\``, row.type, row.default, ...(withReach ? [row.reach] : []), row.description];
    return `| ${cells.join(' | ')} |`;
  });
  const head = ['field', 'type', 'default', ...(withReach ? ['a change'] : []), 'meaning'];
  return [`| ${head.join(' | ')} |`, `|${'---|'.repeat(head.length)}`, ...body].join('\n');
}

/** The whole page as Markdown. */
export function referencePage(): string {
  const schema = resourceSchema();
  const { spec, status } = schema.properties as { spec: Schema; status: Schema };
  const rules = (spec['x-kubernetes-validations'] as { fieldPath: string; message: string }[]).map(
    ({ fieldPath, message }) => `- \`spec${fieldPath}\`: ${message}`,
  );
  const nameRule = (schema['x-kubernetes-validations'] as { message: string }[]).map(
    ({ message }) => `- \`metadata.name\`: ${message}`,
  );
  return `<!-- Made by "make generate" from operator/src/api; do not edit. -->
# Reference: ${KIND} (\`${API_VERSION}\`)

\`kubectl explain renderservice.spec\` shows the same. Short name: \`rsvc\`. Only \`spec.template\` is required.

## Spec

A change is **live** (in pods that run, within seconds: [live settings](live-settings.md)), **rolls** (other pods take the place of those that run), or counts **at once**,
because it is not about the inside of pods.

${table(rows(spec, 'spec'), true)}

## Rules between fields

${[...nameRule, ...rules].join('\n')}

## Status

${table(rows(status, 'status'))}
`;
}
