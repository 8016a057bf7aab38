/** Who may reach the pods: the fields of `spec.networkPolicy`, in the words of Kubernetes' own NetworkPolicy. */
import { z } from 'zod';
import { LABEL_KEY, LABEL_VALUE, labelMap, rule } from './labels.ts';
import { cidr } from './scalars.ts';

/** Most entries of a list: the rules on them are evaluated by the API server, which allows only so much work. */
const LIST_MAX = 16;

const expressionValues = rule<{ operator: string; values?: string[] }>(
  ({ operator, values = [] }) => operator.endsWith('In') === values.length > 0,
  "(self.operator in ['In', 'NotIn']) == (has(self.values) && self.values.size() > 0)",
  'must have values with the operators In and NotIn, and none with the others',
);

const labelSelector = (what: string) =>
  z
    .strictObject({
      matchLabels: z
        .record(z.string().max(317), z.string().max(63))
        .refine(labelMap.check, labelMap.message)
        .optional()
        .meta({ ...labelMap.meta, maxProperties: LIST_MAX })
        .describe('Labels with their values; all must match.'),
      matchExpressions: z
        .array(
          z
            .strictObject({
              key: z.string().max(317).regex(LABEL_KEY, 'must be a label key').describe('Key of the label.'),
              operator: z.enum(['In', 'NotIn', 'Exists', 'DoesNotExist']).describe('How the label is compared.'),
              values: z
                .array(z.string().max(63).regex(LABEL_VALUE, 'must be a label value'))
                .max(LIST_MAX)
                .optional()
                .describe('Values for In and NotIn.'),
            })
            .refine(expressionValues.check, expressionValues.message)
            .meta(expressionValues.meta),
        )
        .max(LIST_MAX)
        .optional()
        .describe('Conditions on labels; all must hold.'),
    })
    .optional()
    .describe(what);

const peerKind = rule<{ podSelector?: unknown; namespaceSelector?: unknown; ipBlock?: unknown }>(
  ({ podSelector, namespaceSelector, ipBlock }) =>
    (ipBlock === undefined) === (podSelector !== undefined || namespaceSelector !== undefined),
  'has(self.ipBlock) != (has(self.podSelector) || has(self.namespaceSelector))',
  'must have either ipBlock, or podSelector and namespaceSelector (one of them, or both)',
);

/** Whoever may come in: pods by their labels and the labels of their namespace, or addresses. */
export const networkPeer = z
  .strictObject({
    podSelector: labelSelector(
      "Pods by their labels: of the RenderService's own namespace, or of those that namespaceSelector selects.",
    ),
    namespaceSelector: labelSelector(
      'Namespaces by their labels; {} is all. Every namespace has the label kubernetes.io/metadata.name.',
    ),
    ipBlock: z
      .strictObject({
        cidr: cidr().describe('Addresses from outside the cluster, or of nodes.'),
        except: z.array(cidr()).max(LIST_MAX).optional().describe('Parts of cidr that stay outside.'),
      })
      .optional()
      .describe('Addresses instead of pods.'),
  })
  .refine(peerKind.check, peerKind.message)
  .meta(peerKind.meta);

const portRange = rule<{ port: number; endPort?: number }>(
  ({ port, endPort }) => endPort === undefined || endPort >= port,
  '!has(self.endPort) || self.endPort >= self.port',
  'endPort must not be smaller than port',
);

const ingressRule = z.strictObject({
  from: z.array(networkPeer).max(LIST_MAX).optional().describe('Who may come in; everybody when left out.'),
  ports: z
    .array(
      z
        .strictObject({
          port: z.int().min(1).max(65_535).describe('Port of the pod.'),
          endPort: z.int().min(1).max(65_535).optional().describe('Last port, where a whole range is meant.'),
          protocol: z.enum(['TCP', 'UDP', 'SCTP']).default('TCP').describe('Protocol of the port.'),
        })
        .refine(portRange.check, portRange.message)
        .meta(portRange.meta),
    )
    .max(LIST_MAX)
    .optional()
    .describe('Ports that are opened; all when left out, 8998, 8999 and 9001 among them.'),
});

export const networkPolicy = z
  .strictObject({
    enabled: z
      .boolean()
      .default(true)
      .describe(
        'Whether a NetworkPolicy is made. It lets in: everybody at 9000, at ports of a service mesh (15008, 4143) and at ports that containers beside the worker declare, pods of this RenderService at 9001, and the namespace of the operator and monitoring at 8998 and 8999. What pods send is not touched.',
      ),
    monitoring: z
      .array(networkPeer)
      .max(LIST_MAX)
      .default([])
      .describe('Who else may read health and metrics (8998 and 8999), beside those whom the chart names for all.'),
    ingress: z
      .array(ingressRule)
      .max(LIST_MAX)
      .default([])
      .describe('What else may come in: rules as in a NetworkPolicy, beside those above.'),
  })
  .prefault({})
  .describe('Who may reach the pods. It takes a network plug-in that enforces NetworkPolicy (docs/network-policy.md).');

/** An entry of a NetworkPolicy's `from`. */
export type NetworkPeer = z.output<typeof networkPeer>;
