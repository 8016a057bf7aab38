/** C012: volumes, other containers and the host. What the API server refuses of them comes from refusals.ts. */
import type { V1Container } from '@kubernetes/client-node';
import type { Finding } from './finding.ts';
import { type Rule, type Workload, workerOf } from './workload.ts';

const ONE_NODE = ['ReadWriteOnce', 'ReadWriteOncePod'];
/** Labels and annotations of a pod template by which a mesh takes it, with their values. */
const MESHES: [key: string, value: RegExp][] = [
  ['sidecar.istio.io/inject', /^true$/],
  ['istio.io/dataplane-mode', /^ambient$/],
  ['linkerd.io/inject', /^(enabled|ingress)$/],
];

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
  const said = { ...metadata?.annotations, ...metadata?.labels };
  const isTaken = MESHES.some(([key, value]) => value.test(said[key] ?? ''));
  const proxy = others(workload).find(({ container }) => /^(istio|linkerd)-proxy$/.test(container.name));
  if (!isTaken && !proxy) return;
  yield {
    code: 'C012',
    level: 'warning',
    object: workload.object,
    path: proxy?.path ?? 'spec.template.metadata',
    what: 'a service mesh takes the traffic of the pod',
    why: 'Where it wants mutual TLS it refuses the operator and Prometheus, which read port 8999 from outside of the mesh; and a proxy that is no native sidecar ends while workers still render',
    wayOut: 'Except port 8999, and have the mesh inject native sidecars (docs/meshes.md says how, and what was tried).',
  };
}

/** kubelet runs all preStop hooks when a pod begins to stop, and sends SIGTERM to a container behind its own one. */
function* stops(workload: Workload): Generator<Finding> {
  const ordinary = others(workload).filter(({ path }) => path.startsWith('spec.template.spec.containers'));
  const late = 'a container that workers need to the very end belongs into initContainers, with restartPolicy: Always';
  for (const { container, path } of ordinary) {
    if (!container.lifecycle?.preStop) continue;
    yield {
      code: 'C012',
      level: 'warning',
      object: workload.object,
      path: `${path}.lifecycle.preStop`,
      what: `container ${container.name} may end while workers still render`,
      why: 'Its own hook runs when the drain begins, and SIGTERM follows it',
      wayOut: `Leave the hook out, and it waits for the drain as the workers do; ${late}.`,
    };
  }
  const [first, ...rest] = ordinary.filter((one) => !one.container.lifecycle?.preStop);
  if (!first) return;
  const more = rest.length > 0 ? ` and ${rest.length} more` : '';
  yield {
    code: 'C012',
    level: 'info',
    object: workload.object,
    path: first.path,
    ...(rest.length > 0 && { also: rest.map(({ path }) => path) }),
    what: `container ${first.container.name}${more}: SIGTERM comes together with that of the workers`,
    why: 'Corelane adds a preStop hook that waits until the pod has drained',
    wayOut: `Nothing to do for what pages need; ${late}.`,
  };
}

export const neighboursRule: Rule = {
  codes: ['C012'],
  find: (workload) => [...claims(workload), ...hostPorts(workload), ...mesh(workload), ...stops(workload)],
};
