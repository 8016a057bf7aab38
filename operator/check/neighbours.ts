/** C012: volumes, other containers and the host. What the API server refuses of them comes from refusals.ts. */
import type { V1Container } from '@kubernetes/client-node';
import type { Finding } from './finding.ts';
import { type Rule, type Workload, workerOf } from './workload.ts';

const ONE_NODE = ['ReadWriteOnce', 'ReadWriteOncePod'];
const ISTIO_LABEL = 'sidecar.istio.io/inject';

function* claims({ spec, object, surroundings }: Workload): Generator<Finding> {
  for (const [index, { persistentVolumeClaim: claim }] of (spec.template.spec?.volumes ?? []).entries()) {
    if (!claim) continue;
    const known = surroundings.claims.find(({ metadata }) => metadata?.name === claim.claimName);
    const modes = known?.spec?.accessModes;
    const isShared = modes?.some((mode) => !ONE_NODE.includes(mode));
    if (isShared) continue;
    yield {
      code: 'C012',
      level: modes ? 'error' : 'decide',
      object,
      path: `spec.template.spec.volumes[${index}].persistentVolumeClaim`,
      what: modes
        ? `claim ${claim.claimName} is ${modes.join(', ')}`
        : `how often claim ${claim.claimName} can be mounted is not known`,
      why: 'Pods are on several nodes and overlap in a rollout: with ReadWriteOnce all but those of one node stay Pending',
      wayOut: `${modes ? 'Use' : 'Nothing to do with ReadWriteMany or ReadOnlyMany; else use'} a ReadWriteMany claim, an emptyDir, or a store outside of the pods.`,
    };
  }
}

/** Containers beside the worker, with their paths. */
function others(workload: Workload): { container: V1Container; path: string }[] {
  const { worker } = workerOf(workload);
  return (['containers', 'initContainers'] as const).flatMap((list) =>
    (workload.spec.template.spec?.[list] ?? [])
      .map((container, index) => ({ container, path: `spec.template.spec.${list}[${index}]` }))
      .filter(({ container }) => container !== worker),
  );
}

function* hostPorts(workload: Workload): Generator<Finding> {
  for (const { container, path } of others(workload)) {
    const index = container.ports?.findIndex(({ hostPort }) => hostPort !== undefined) ?? -1;
    if (index < 0) continue;
    yield {
      code: 'C012',
      level: 'warning',
      object: workload.object,
      path: `${path}.ports[${index}].hostPort`,
      what: `container ${container.name} takes a port of the node`,
      why: 'A node holds one such pod, and in a rollout the new one waits until the old one has gone',
      wayOut: 'Leave hostPort out and use a Service.',
    };
  }
}

function* mesh(workload: Workload): Generator<Finding> {
  const { metadata } = workload.spec.template;
  const inject = metadata?.labels?.[ISTIO_LABEL] ?? metadata?.annotations?.[ISTIO_LABEL];
  const proxy = others(workload).find(({ container }) => /^(istio|linkerd)-proxy$/.test(container.name));
  if (inject !== 'true' && !proxy) return;
  yield {
    code: 'C012',
    level: 'warning',
    object: workload.object,
    path: proxy?.path ?? 'spec.template.metadata',
    what: 'a service mesh takes the traffic of the pod',
    why: 'Corelane is not tested behind one: what pods ask each other (port 9001) passes it, too',
    wayOut:
      'Try it with two pods first; leave ports 8998 and 9001 out of the mesh (excludeInboundPorts, skip-inbound-ports).',
  };
}

export const neighboursRule: Rule = {
  codes: ['C012'],
  find: (workload) => [...claims(workload), ...hostPorts(workload), ...mesh(workload)],
};
