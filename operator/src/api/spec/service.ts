/** Fields of the Service in front of the pods, in the words of Kubernetes' own Service. */
import { z } from 'zod';
import { LABEL_KEY, labelMap } from '../labels.ts';
import { cidr } from '../scalars.ts';

const LABELS_MAX = 16;
const SOURCE_RANGES_MAX = 64;

/** A name with a domain before it, or without: what Kubernetes calls a qualified name. */
const qualifiedName = (message: string) =>
  z
    .string()
    .min(1)
    .max(317)
    .regex(LABEL_KEY, message)
    .meta({ 'x-kubernetes-validations': [{ rule: `self.matches('${LABEL_KEY.source}')`, message }] });

export const service = z
  .strictObject({
    type: z.enum(['ClusterIP', 'NodePort', 'LoadBalancer']).default('ClusterIP').describe('Type of the Service.'),
    port: z.int().min(1).max(65_535).default(80).describe('Port of the Service.'),
    appProtocol: qualifiedName('must be a protocol such as http, or example.com/http')
      .optional()
      .describe(
        'The protocol of the port, for gateways and meshes that read this field: http, or kubernetes.io/ws for WebSockets. Pods speak HTTP/1.1 without TLS, so the API server refuses kubernetes.io/h2c and http2 (docs/gateways.md).',
      ),
    labels: z
      .record(z.string().max(317), z.string().max(63))
      .refine(labelMap.check, labelMap.message)
      .optional()
      .meta({ ...labelMap.meta, maxProperties: LABELS_MAX })
      .describe('Labels of the Service, for what selects Services: a ServiceMonitor, external-dns.'),
    annotations: z
      .record(z.string().max(317), z.string().max(4096))
      .optional()
      .describe('Annotations of the Service, for cloud load balancers for example.'),
    externalTrafficPolicy: z
      .enum(['Cluster', 'Local'])
      .optional()
      .describe(
        "Local keeps the client's address (docs/edge.md) and spares a hop: only nodes with a pod that is ready answer from outside. Needs type NodePort or LoadBalancer.",
      ),
    internalTrafficPolicy: z
      .enum(['Cluster', 'Local'])
      .optional()
      .describe('Local: clients in the cluster reach pods on their own node only, and none where there is none.'),
    trafficDistribution: z
      .enum(['PreferClose', 'PreferSameZone', 'PreferSameNode'])
      .optional()
      .describe(
        'Whether clients in the cluster reach pods in their zone, or on their node, first. PreferSameZone is the newer name of PreferClose; it and PreferSameNode need Kubernetes 1.34.',
      ),
    ipFamilyPolicy: z
      .enum(['SingleStack', 'PreferDualStack', 'RequireDualStack'])
      .optional()
      .describe(
        'How many families of addresses the Service has. PreferDualStack: IPv4 and IPv6 where the cluster has both. RequireDualStack: both, and the API server refuses the Service where the cluster has one. Kubernetes takes SingleStack when left out.',
      ),
    ipFamilies: z
      .array(z.enum(['IPv4', 'IPv6']))
      .min(1)
      .max(2)
      .optional()
      .describe(
        'Which families, the preferred one first: both with PreferDualStack and RequireDualStack, else one. The order is that of the cluster when left out. Kubernetes lets nobody change the first one of a Service that exists.',
      ),
    loadBalancerClass: qualifiedName('must be a name such as service.k8s.aws/nlb')
      .optional()
      .describe(
        'Which controller makes the load balancer, where there are several. Kubernetes lets nobody change it while type is LoadBalancer.',
      ),
    loadBalancerSourceRanges: z
      .array(cidr())
      .max(SOURCE_RANGES_MAX)
      .optional()
      .describe('Whom the load balancer lets in; everybody when left out. Not all load balancers heed it.'),
  })
  .prefault({})
  .describe('The Service in front of all pods.');
