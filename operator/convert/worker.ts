/** The container that renders: which one it is, and what of it Corelane does itself. */
import type { V1Container, V1PodSpec } from '@kubernetes/client-node';
import { httpPort, PORT_VARIABLES, secondPorts } from '../check/ports.ts';
import {
  ASSETS_CONTAINER,
  HAPROXY_CONTAINER,
  NGINX_CONTAINER,
  RUNTIME_CONTAINER,
  WORKER_CONTAINER,
} from '../src/api/names.ts';
import type { Draft, Said } from './draft.ts';
import { isFront } from './fronts.ts';
import { ManifestError } from './kubectl-yaml.ts';
import { isRecord, type Path } from './manifests.ts';

/** Containers that stand beside an application, by their usual names. */
const SIDECARS =
  /(^|-)(istio-proxy|linkerd-proxy|envoy|cloud-?sql-proxy|nginx|haproxy|oauth2?-proxy|vault-agent|fluent-?bit|fluentd|filebeat|promtail|vector|otel-collector|opentelemetry-collector|datadog-agent|statsd-exporter|[a-z]+-exporter|redis|memcached|log(ger|s|-shipper)?|metrics)(-|$)/;
const RESERVED = new RegExp(
  `^(${NGINX_CONTAINER}|${HAPROXY_CONTAINER}|${RUNTIME_CONTAINER}|${ASSETS_CONTAINER}|${WORKER_CONTAINER}-[0-9]+)$`,
);

const CONTAINERS: Path = ['spec', 'template', 'spec', 'containers'];

export interface Choice {
  /** Name that the user gave. */
  container?: string;
  /** Name of the Deployment. */
  name: string;
  /** Port that the Service leads to. */
  targetPort?: string | number;
}

/**
 * Index of the container that renders.
 * @throws ManifestError where the user names one that is not there
 */
export function chooseWorker(draft: Draft, { container, name, targetPort }: Choice): number {
  const containers = draft.template().spec?.containers ?? [];
  if (container !== undefined) {
    const index = containers.findIndex((one) => one.name === container);
    const names = containers.map((one) => one.name).join(', ');
    if (index < 0) throw new ManifestError(`${draft.object} has no container ${container}; it has ${names}`);
    return index;
  }
  if (containers.length === 1) return 0;
  const own = containers.filter((one) => !SIDECARS.test(one.name) && !isFront(one));
  const candidates = own.length > 0 ? own : containers;
  const hasPort = (one: V1Container) =>
    one.ports?.some(
      (port) => targetPort !== undefined && (port.name === targetPort || port.containerPort === targetPort),
    );
  const chosen =
    candidates.find((one) => one.name === WORKER_CONTAINER) ??
    candidates.find((one) => hasPort(one)) ??
    candidates.find((one) => one.name === name) ??
    candidates[0];
  const index = containers.indexOf(chosen as V1Container);
  draft.say([...CONTAINERS, index], {
    code: 'C016',
    level: candidates.length > 1 && chosen?.name !== WORKER_CONTAINER ? 'decide' : 'info',
    what: `container ${chosen?.name} becomes the workers`,
    why: `Of ${containers.length} containers it looks like the one that renders; the others stay beside the workers`,
    wayOut: 'Choose another one with --container.',
  });
  return index;
}

/**
 * Renames containers: the worker where there are several, and those whose names are Corelane's.
 * @returns new names of those beside the worker, by the old ones
 */
export function renameContainers(draft: Draft, worker: number): Map<string, string> {
  const spec = draft.template().spec as V1PodSpec;
  const taken = new Set([...spec.containers, ...(spec.initContainers ?? [])].map(({ name }) => name));
  const renamed = new Map<string, string>();
  for (const list of ['containers', 'initContainers'] as const) {
    for (const [index, { name }] of (spec[list] ?? []).entries()) {
      const isWorker = list === 'containers' && index === worker;
      const path: Path = ['spec', 'template', 'spec', list, index, 'name'];
      if (isWorker) renameWorker(draft, path, name, spec.containers.length);
      else if (RESERVED.test(name) || (name === WORKER_CONTAINER && list === 'containers'))
        renamed.set(name, renameOther(draft, path, name, taken));
    }
  }
  return renamed;
}

function renameWorker(draft: Draft, path: Path, name: string, containers: number): void {
  if (name === WORKER_CONTAINER || (containers === 1 && !RESERVED.test(name))) return;
  draft.replace(path, WORKER_CONTAINER);
  draft.say(path, {
    code: 'C016',
    level: 'info',
    what: `${name} is now ${WORKER_CONTAINER}`,
    why: 'By that name Corelane knows the container that it repeats; in the pods it is worker-0, worker-1 and so on',
    wayOut: 'Use these names in kubectl logs -c, alerts and dashboards.',
  });
}

function renameOther(draft: Draft, path: Path, name: string, taken: Set<string>): string {
  const next = [`own-${name}`, ...Array.from({ length: 99 }, (_unused, index) => `own-${name}-${index + 2}`)].find(
    (candidate) => !taken.has(candidate),
  ) as string;
  taken.add(next);
  draft.replace(path, next);
  const isProxy = name === NGINX_CONTAINER || name === HAPROXY_CONTAINER;
  draft.say(path, {
    code: 'C012',
    level: 'decide',
    what: `${name} is now ${next}`,
    why: `Corelane adds a container named ${name} to the pod`,
    wayOut: isProxy
      ? 'Remove it if it only passes requests on to the application: nothing leads to it any more.'
      : 'Use that name in kubectl logs -c.',
  });
  return next;
}

const REMOVED = {
  readinessProbe: 'Corelane checks the workers through HAProxy, and a probe would wait behind a render',
  livenessProbe:
    'A worker that hangs is noticed and started again by its supervisor, and a probe would wait behind a render',
  startupProbe: 'A worker gets requests when it listens; how long that takes does not matter',
} as const;

/** Takes out of the worker what Corelane does itself. */
export function removeTakenOver(draft: Draft, index: number, targetPort?: string | number): void {
  const container = draft.container(index);
  const path = [...CONTAINERS, index];
  for (const [field, why] of Object.entries(REMOVED) as [keyof typeof REMOVED, string][]) {
    if (container[field] === undefined) continue;
    draft.remove([...path, field], {
      code: 'C001',
      level: 'info',
      what: 'removed',
      why,
      wayOut: wayOut(field, container),
    });
  }
  removeLifecycle(draft, container, path);
  removePorts(draft, container, path, targetPort);
  sayPortInValues(draft, container, path, httpPort(container.ports, targetPort) ?? targetPort);
  removePort(draft, container, path);
}

type Hook = Pick<Said, 'level' | 'why' | 'wayOut'>;

/** Hooks whose work nobody does in the pods of a RenderService. */
const HOOKS: Record<string, Hook> = {
  preStop: {
    level: 'decide',
    why: 'Corelane stops the workers when the proxies have drained, and what this hook does beside waiting is not done',
    wayOut: 'Do it in the program, when SIGTERM comes.',
  },
  postStart: {
    level: 'decide',
    why: 'A worker has no hooks of its own, and what this one does is not done',
    wayOut:
      'Do it at the start of the program, or in an init container; to render pages before the first request, set warmup.',
  },
  stopSignal: {
    level: 'decide',
    why: 'Corelane stops a worker by SIGTERM',
    wayOut: 'Let the program handle SIGTERM.',
  },
};
const OTHER_HOOK: Hook = {
  level: 'decide',
  why: 'A worker has no hooks of its own',
  wayOut: 'Do it in the program.',
};
const NEEDLESS: Hook = {
  level: 'info',
  why: 'Corelane stops the workers when the proxies have drained',
  wayOut: 'Let the server handle SIGTERM; a preStop that only sleeps is not needed.',
};

/** Takes each hook out by itself: that one is not needed says nothing of another one. */
function removeLifecycle(draft: Draft, { lifecycle }: V1Container, path: Path): void {
  if (lifecycle === undefined) return;
  const hooks = Object.entries(lifecycle);
  if (hooks.length === 0) draft.remove([...path, 'lifecycle'], { code: 'C001', what: 'removed', ...NEEDLESS });
  for (const [name, hook] of hooks)
    draft.remove([...path, 'lifecycle', name], { code: 'C001', what: 'removed', ...hookSaid(name, hook) });
}

function hookSaid(name: string, hook: unknown): Hook {
  if (hook === 'SIGTERM' || (name === 'preStop' && onlyWaits(hook))) return NEEDLESS;
  return (Object.hasOwn(HOOKS, name) ? HOOKS[name] : undefined) ?? OTHER_HOOK;
}

/** Whether a hook does nothing but sleep. */
function onlyWaits(hook: unknown): boolean {
  if (!isRecord(hook)) return true;
  const { exec, ...others } = hook;
  if (!isRecord(exec)) return Object.keys(others).every((kind) => kind === 'sleep');
  const command = Array.isArray(exec.command) ? exec.command.map(String) : [];
  const line = command.join(' ').replace(/^(\/bin\/)?(ba|da|a)?sh -[a-z]*c /, '');
  return /^(\/(usr\/)?bin\/)?sleep [0-9.]+[smh]?;?$/.test(line.trim());
}

/** Says where PORT, or the number of the old port, stands in other variables. */
function sayPortInValues(draft: Draft, container: V1Container, path: Path, port: number | string | undefined): void {
  for (const [index, { name, value }] of (container.env ?? []).entries()) {
    const isFixed = port !== undefined && /(^|_)PORT$/.test(name) && value === String(port) && !isPort(name);
    if (isFixed) {
      draft.say([...path, 'env', index], {
        code: 'C004',
        level: 'decide',
        what: `${name} is ${value}, as the old port was`,
        why: 'A server that listens there wants the same port in all workers of a pod, and each has one of its own in PORT',
        wayOut: `Let the program listen on PORT, and leave ${name} out.`,
      });
    }
    if (!value?.includes('$(PORT)')) continue;
    draft.say([...path, 'env', index], {
      code: 'C004',
      level: 'decide',
      what: `${name} uses $(PORT)`,
      why: 'Kubernetes replaces only variables that stand before it, and the PORT of a worker stands behind',
      wayOut: 'Build that value in the program.',
    });
  }
}

function isPort(name: string): boolean {
  return name === 'PORT' || PORT_VARIABLES.includes(name);
}

/** PORT is Corelane's, and stands behind the variables of the template. What a server reads before it goes, too. */
function removePort(draft: Draft, { env = [] }: V1Container, path: Path): void {
  // Last ones first: an index behind a removed one means something else.
  for (const [index, { name }] of [...env.entries()].reverse()) {
    if (!isPort(name)) continue;
    draft.remove([...path, 'env', index], {
      code: 'C001',
      level: 'info',
      what: `${name} is removed`,
      why: 'Each worker is told a port of its own: 9002, 9003 and so on',
      wayOut: 'Nothing to do, if the server listens on $PORT.',
    });
  }
}

function wayOut(field: keyof typeof REMOVED, { readinessProbe }: V1Container): string {
  const path = readinessProbe?.httpGet?.path;
  if (field !== 'readinessProbe' || !path || path === '/') return 'Nothing to do.';
  return `Nothing to do. If ${path} also warms the server up: warmup: { path: ${path}, requests: 1 }; load balancers that ask it: ping.path.`;
}

function removePorts(draft: Draft, worker: V1Container, path: Path, targetPort?: string | number): void {
  if (worker.ports === undefined) return;
  const http = httpPort(worker.ports, targetPort);
  const findings = secondPorts(worker, http, { object: draft.object, path: draft.pathOf(path) });
  draft.findings.push(...findings);
  draft.remove([...path, 'ports'], {
    code: 'C001',
    level: 'info',
    what: http === undefined ? 'removed' : `removed (${http})`,
    why: 'The Service leads to the proxy of the pod, and each worker listens on a port of its own on loopback',
    wayOut: 'Nothing to do, if the server listens on $PORT.',
  });
}
