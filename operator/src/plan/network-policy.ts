/** NetworkPolicy of the pods: who may reach which of their ports. Egress is left as it is. */
import type { V1Container } from '@kubernetes/client-node';
import { isReservedPort, PORTS } from '../api/names.ts';
import type { NetworkPeer } from '../api/network-policy.ts';
import type { RenderService } from '../api/resource.ts';
import { workerTemplate } from '../api/worker-template.ts';
import { type PlannedObject, plannedObject, selectorLabels } from './objects.ts';

/** Where the operator runs, and who monitors the pods of all RenderServices. */
export interface OperatorAccess {
  namespace: string;
  monitoring: NetworkPeer[];
}

/** An entry of a NetworkPolicy's `ingress[].ports`. */
interface Port {
  protocol: string;
  port: number;
}

/**
 * Ports of the proxies that service meshes put into pods; without a mesh nobody listens there. A mesh sends whatever a
 * pod gets to one of the first two, by mutual TLS: Istio's ambient mode (HBONE), and Linkerd. The policy cannot see
 * then which port of the pod it is for (docs/meshes.md). The others are metrics: Istio's, Envoy's, Linkerd's.
 */
const MESH_PORTS = [15_008, 4_143];
const MESH_METRICS_PORTS = [15_020, 15_090, 4_191];
/** Istio's ambient mode gives what comes from the node itself, kubelet's probes, this address. No pod can have it. */
const AMBIENT_PROBES = '169.254.7.127/32';

/**
 * The policy, or nothing when the spec turns it off. Without Istio's ambient mode probes need no rule: kubelet reaches
 * the pods of its own node whatever a policy says.
 */
export function networkPolicy(renderService: RenderService, access: OperatorAccess): PlannedObject[] {
  const { enabled, monitoring, ingress } = renderService.spec.networkPolicy;
  if (!enabled) return [];
  // Every namespace has this label, and nobody can change it.
  const operator = { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': access.namespace } } };
  const pods = { matchLabels: selectorLabels(renderService) };
  return [
    plannedObject(renderService, {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      name: renderService.metadata.name,
      content: {
        spec: {
          podSelector: pods,
          policyTypes: ['Ingress'],
          ingress: [
            { ports: openPorts(renderService) },
            { ports: [tcp(PORTS.peers)], from: [{ podSelector: pods }] },
            {
              ports: [PORTS.health, PORTS.stats, ...MESH_METRICS_PORTS].map(tcp),
              from: [operator, ...access.monitoring, ...monitoring],
            },
            { from: [{ ipBlock: { cidr: AMBIENT_PROBES } }] },
            ...ingress,
          ],
        },
      },
    }),
  ];
}

function tcp(port: number): Port {
  return { protocol: 'TCP', port };
}

/**
 * Ports for everybody: of requests, and those that containers beside the worker declare, for what they serve was open
 * to all before there was a policy. The worker's own are no ports of the pod: it listens on loopback.
 */
function openPorts({ spec }: RenderService): Port[] {
  const { containers = [], initContainers = [] } = spec.template.spec ?? {};
  const worker = workerTemplate(containers);
  const others: V1Container[] = [...containers, ...(initContainers ?? [])].filter((container) => container !== worker);
  const declared = others
    .flatMap(({ ports }) => ports ?? [])
    // An init container that declares a port of ours must not open it.
    .filter(({ containerPort }) => !isReservedPort(containerPort))
    .map(({ protocol = 'TCP', containerPort }): Port => ({ protocol, port: containerPort }));
  const all = [...[PORTS.http, ...MESH_PORTS].map(tcp), ...declared];
  return [...new Map(all.map((one) => [`${one.protocol}/${one.port}`, one])).values()];
}
