/** Makes the CustomResourceDefinition out of the zod schema. */
import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { GROUP, KIND, PLURAL, VERSION } from '../src/api/names.ts';
import { renderServiceStatus, resourceRules } from '../src/api/resource.ts';
import { POD_TEMPLATE_MARK } from '../src/api/spec/pod-template.ts';
import { renderServiceSpec } from '../src/api/validated-spec.ts';

/** A node of an OpenAPI v3 schema. */
export type Schema = Record<string, unknown> & { properties?: Record<string, Schema> };

const podTemplate = JSON.parse(readFileSync(new URL('pod-template.generated.json', import.meta.url), 'utf8')) as Schema;

/** zod writes the bounds of a double for integers without bounds. */
const SAFE_INTEGER = 2 ** 53 - 1;

/** What zod writes, turned into what the API server calls structural. Key order is kept: it is the reference's. */
function structural(node: Schema): Schema {
  if (node[POD_TEMPLATE_MARK]) return { ...podTemplate, description: node.description };
  const result: Schema = {};
  for (const [key, value] of Object.entries(node)) {
    if (isDropped(key, value, node)) continue;
    result[key] = value;
  }
  if (node.properties) {
    result.properties = Object.fromEntries(
      Object.entries(node.properties).map(([name, child]) => [name, structural(child)]),
    );
  }
  if (node.items) result.items = structural(node.items as Schema);
  if (typeof node.additionalProperties === 'object')
    result.additionalProperties = structural(node.additionalProperties as Schema);
  return result;
}

function isDropped(key: string, value: unknown, node: Schema): boolean {
  const hasRule = 'x-kubernetes-validations' in node;
  if (key === 'pattern') return hasRule; // the rule has the message that says what to do
  if (key === 'anyOf' || key === 'oneOf') return 'x-kubernetes-int-or-string' in node;
  if (key === 'additionalProperties') return value === false; // unknown fields are pruned or refused anyway
  if (key === 'propertyNames') return true; // not structural
  if (key === 'maximum' || key === 'minimum') return Math.abs(value as number) >= SAFE_INTEGER;
  return false;
}

function toStructural(schema: z.ZodType): Schema {
  return structural(z.toJSONSchema(schema, { target: 'openapi-3.0', io: 'input', unrepresentable: 'any' }) as Schema);
}

/**
 * Without defaults inside the items of lists. Whoever compares what he has applied with what there is takes a list for
 * one value (kubectl apply, and Argo CD with ServerSideApply), so an item to which the API server adds a field would
 * differ for ever. The operator fills these fields in by itself.
 */
function withoutItemDefaults(node: Schema, isInItem = false): Schema {
  const { properties, items, additionalProperties } = node;
  const below = (child: Schema) => withoutItemDefaults(child, isInItem);
  return {
    ...Object.fromEntries(Object.entries(node).filter(([key]) => key !== 'default' || !isInItem)),
    ...(properties && {
      properties: Object.fromEntries(Object.entries(properties).map(([name, child]) => [name, below(child)])),
    }),
    ...(items !== undefined && { items: withoutItemDefaults(items as Schema, true) }),
    ...(typeof additionalProperties === 'object' && { additionalProperties: below(additionalProperties as Schema) }),
  };
}

const column = (name: string, type: string, jsonPath: string, description: string, priority = 0) => ({
  name,
  type,
  jsonPath,
  description,
  ...(priority > 0 && { priority }),
});

/** The OpenAPI schema of the resource, with all defaults: those that the API server fills in, and the operator's. */
export function resourceSchema(): Schema {
  return {
    type: 'object',
    description: 'A fleet of CPU-bound render workers behind a buffering, queueing proxy.',
    required: ['spec'],
    properties: {
      apiVersion: { type: 'string', description: 'corelane.dev/v1alpha1' },
      kind: { type: 'string', description: 'RenderService' },
      metadata: { type: 'object', properties: { name: { type: 'string' } } },
      spec: toStructural(renderServiceSpec),
      status: toStructural(renderServiceStatus),
    },
    'x-kubernetes-validations': resourceRules,
  };
}

/** The CustomResourceDefinition as a plain object. */
export function customResourceDefinition() {
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${PLURAL}.${GROUP}` },
    spec: {
      group: GROUP,
      scope: 'Namespaced',
      names: {
        kind: KIND,
        listKind: `${KIND}List`,
        plural: PLURAL,
        singular: KIND.toLowerCase(),
        shortNames: ['rsvc'],
        categories: ['all'],
      },
      versions: [
        {
          name: VERSION,
          served: true,
          storage: true,
          subresources: {
            status: {},
            scale: {
              specReplicasPath: '.spec.replicas',
              statusReplicasPath: '.status.replicas',
              labelSelectorPath: '.status.selector',
            },
          },
          additionalPrinterColumns: [
            column('Ready', 'string', '.status.conditions[?(@.type=="Ready")].status', 'Whether the fleet serves.'),
            column('Pods', 'integer', '.status.readyReplicas', 'Pods that are ready.'),
            column('Wanted', 'integer', '.spec.replicas', 'Pods that are wanted.'),
            column('Workers', 'integer', '.status.workers.ready', 'Workers that are ready.'),
            column('Age', 'date', '.metadata.creationTimestamp', 'Time since creation.'),
            column(
              'Reason',
              'string',
              '.status.conditions[?(@.type=="Ready")].reason',
              'Reason of the Ready condition.',
              1,
            ),
            column(
              'Message',
              'string',
              '.status.conditions[?(@.type=="Ready")].message',
              'Message of the Ready condition.',
              1,
            ),
          ],
          schema: { openAPIV3Schema: withoutItemDefaults(resourceSchema()) },
        },
      ],
    },
  };
}
