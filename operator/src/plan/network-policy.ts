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
 * The policy, or nothing when the spec turns it off. Probes and hooks need no rule: kubelet reaches the pods of its own
 * node whatever a policy says.
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
            { ports: [tcp(PORTS.http), ...declaredPorts(renderService)] },
            { ports: [tcp(PORTS.peers)], from: [{ podSelector: pods }] },
            {
              ports: [tcp(PORTS.health), tcp(PORTS.stats)],
              from: [operator, ...access.monitoring, ...monitoring],
            },
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
 * Ports that containers beside the worker declare: what they serve was open to all before there was a policy. The
 * worker's own are no ports of the pod: it listens on loopback.
 */
function declaredPorts({ spec }: RenderService): Port[] {
  const { containers = [], initContainers = [] } = spec.template.spec ?? {};
  const worker = workerTemplate(containers);
  const others: V1Container[] = [...containers, ...(initContainers ?? [])].filter((container) => container !== worker);
  const ports = others
    .flatMap(({ ports: declared }) => declared ?? [])
    // An init container that declares a port of ours must not open it.
    .filter(({ containerPort }) => !isReservedPort(containerPort));
  const unique = new Map(
    ports.map(({ protocol = 'TCP', containerPort }) => [
      `${protocol}/${containerPort}`,
      { protocol, port: containerPort },
    ]),
  );
  return [...unique.values()];
}
