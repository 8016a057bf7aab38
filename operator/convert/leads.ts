/** Where the ports of Services lead in the pods of a Deployment, as Kubernetes finds it. */
import type { V1Container, V1PodSpec, V1Service } from '@kubernetes/client-node';
import { isReservedPort } from '../src/api/names.ts';

export type ServicePort = NonNullable<NonNullable<V1Service['spec']>['ports']>[number];

/** The pods of a Deployment, as they were read. */
export interface Pods {
  spec: V1PodSpec;
  /** The container that becomes the workers. */
  worker: V1Container;
  /** Port of the pod by which pages come, or its name where no container declares it. */
  pages?: number | string;
}

/** Where a port leads after the move: to the pages, to a container beside the workers, or to nothing. */
export type Way = 'pages' | 'beside' | 'nowhere';

interface Target {
  /** Port of the pod, or its name where no container declares it. */
  to: number | string;
  /** Containers that declare it. */
  owners: V1Container[];
}

/** Containers that serve at the same time: init containers with `restartPolicy: Always`, too. */
export function runningContainers({ containers, initContainers }: V1PodSpec): V1Container[] {
  return [...containers, ...(initContainers ?? []).filter(({ restartPolicy }) => restartPolicy === 'Always')];
}

/** The port by which pages come: the one that is named so, else the first. */
export function pagePort(service: V1Service | undefined): ServicePort | undefined {
  const ports = service?.spec?.ports ?? [];
  return ports.find(({ name }) => isNamedForPages(name)) ?? ports[0];
}

/** Whether a port has a name that ports for pages have. */
export function isNamedForPages(name: unknown): boolean {
  return typeof name === 'string' && /^(http|web|http-web)$/.test(name);
}

/** Where a port of a Service leads in the pods of the Deployment. Of several ports of one name the first counts. */
export function targetOf({ port, targetPort, protocol }: ServicePort, spec: V1PodSpec): Target {
  const wanted: unknown = targetPort ?? port;
  const all = runningContainers(spec).flatMap((container) =>
    (container.ports ?? [])
      .filter((one) => (one.protocol ?? 'TCP') === (protocol ?? 'TCP'))
      .map((one) => ({ container, name: one.name, number: one.containerPort })),
  );
  if (typeof wanted === 'number')
    return { to: wanted, owners: all.filter(({ number }) => number === wanted).map(({ container }) => container) };
  const named = all.find(({ name }) => name === wanted);
  return named ? { to: named.number, owners: [named.container] } : { to: String(wanted), owners: [] };
}

/** Where a port of a Service leads when the Service selects the pods of the RenderService. */
export function wayOf(port: ServicePort, { spec, worker, pages }: Pods): Way {
  const { to, owners } = targetOf(port, spec);
  const isPages = to === pages && (port.protocol ?? 'TCP') === 'TCP';
  if (isPages && (owners.length === 0 || owners.includes(worker))) return 'pages';
  const isBeside = typeof to === 'number' && !isReservedPort(to) && owners.length > 0 && !owners.includes(worker);
  return isBeside ? 'beside' : 'nowhere';
}
