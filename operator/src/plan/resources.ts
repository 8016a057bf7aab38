/**
 * Resources of all containers of a pod. What a namespace wants of every container (a LimitRange, a ResourceQuota on
 * limits) the worker's container has in its template already, so the containers that Corelane adds follow it (ADR 68).
 */
import type { V1Container } from '@kubernetes/client-node';
import { CACHE_DISK_FACTOR } from '../api/disk.ts';
import { HAPROXY_CONTAINER, NGINX_CONTAINER, workerName } from '../api/names.ts';
import { parseQuantity, quantityOf, sizeBytes } from '../api/scalars.ts';
import type { RenderServiceSpec } from '../api/spec.ts';
import { workerTemplate } from '../api/worker-template.ts';
import { hasCache } from '../render/model/cache.ts';

type Resources = NonNullable<V1Container['resources']>;

const PROXIES = [HAPROXY_CONTAINER, NGINX_CONTAINER] as const;
type Proxy = (typeof PROXIES)[number];

/** More CPU a proxy cannot use: it has one thread (render/haproxy/global.ts, render/nginx/main.ts). */
const THREAD_CPU = '1';
/** nginx' log and what it buffers on an ordinary day. */
const DISK_REQUEST = '64Mi';
/** An init container needs none of the others, such as a GPU. */
const OF_INIT_CONTAINERS = ['cpu', 'memory', 'ephemeral-storage'];

/** Each worker is meant to have one CPU; a user who asks for another amount gets that. */
export function workerResources({ resources = {} }: Pick<V1Container, 'resources'>): Resources {
  if (resources.requests?.cpu !== undefined || resources.limits?.cpu !== undefined) return resources;
  return { ...resources, requests: { cpu: '1', ...resources.requests } };
}

/**
 * Of an init container that Corelane adds: those of one worker. It has ended before the workers start, so the pod asks
 * for no more than without it.
 */
export function initResources(worker: Pick<V1Container, 'resources'> = {}): Resources {
  const { requests, limits } = workerResources(worker);
  return { ...(requests && { requests: ofInit(requests) }), ...(limits && { limits: ofInit(limits) }) };
}

function ofInit(amounts: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(amounts).filter(([resource]) => OF_INIT_CONTAINERS.includes(resource)));
}

/** Of a proxy. */
export function proxyResources(spec: RenderServiceSpec, proxy: Proxy): Resources {
  const { cpu, memory, memoryLimit } = spec.sidecar[proxy];
  const cpuLimit = proxyCpuLimit(spec, proxy);
  const disk = proxy === NGINX_CONTAINER ? nginxDisk(spec) : undefined;
  return {
    requests: { cpu, memory, ...(disk && { 'ephemeral-storage': disk.request }) },
    limits: {
      ...(cpuLimit !== undefined && { cpu: cpuLimit }),
      memory: memoryLimit,
      ...(disk && { 'ephemeral-storage': disk.limit }),
    },
  };
}

/**
 * None of its own accord, because throttling a proxy delays every request behind it. Where the worker has one, the
 * namespace may want one of every container. E.g. a worker with "2": "1"; with "500m": "500m", or the request if that
 * is more.
 */
function proxyCpuLimit({ sidecar, template }: RenderServiceSpec, proxy: Proxy): string | undefined {
  const { cpu, cpuLimit } = sidecar[proxy];
  if (cpuLimit !== undefined) return cpuLimit;
  const ofWorker = workerTemplate(template.spec?.containers ?? [])?.resources?.limits?.cpu;
  const cores = ofWorker === undefined ? 0 : (parseQuantity(ofWorker) ?? 0);
  // "0" is no limit.
  if (cores <= 0) return undefined;
  const limit = cores < quantityOf(THREAD_CPU) ? String(ofWorker) : THREAD_CPU;
  return quantityOf(cpu) > quantityOf(limit) ? cpu : limit;
}

/** Without a request of its own the limit would be one, and a node that cannot spare it would get no pod. */
function nginxDisk(spec: RenderServiceSpec): { request: string; limit: string } {
  const { ephemeralStorageLimit } = spec.sidecar.nginx;
  const request = quantityOf(ephemeralStorageLimit) < quantityOf(DISK_REQUEST) ? ephemeralStorageLimit : DISK_REQUEST;
  // kubelet holds a pod to the sum of its containers' limits, and counts its volumes.
  const limit = hasCache(spec)
    ? kibibytes(quantityOf(ephemeralStorageLimit) + cacheBytes(spec))
    : ephemeralStorageLimit;
  return { request, limit };
}

/** Most that the pages of the cache take of the disk. */
export function cacheBytes({ cache }: RenderServiceSpec): number {
  return CACHE_DISK_FACTOR * sizeBytes(cache.maxSize);
}

/** A number of bytes as a quantity. */
export function kibibytes(bytes: number): string {
  return `${Math.ceil(bytes / 1024)}Ki`;
}

/** A container of a pod with its resources. */
export interface Sized {
  name: string;
  resources?: { requests?: Record<string, string | number>; limits?: Record<string, string | number> };
}

/**
 * The containers of a pod, each once: of the workers one. The init containers that Corelane adds have no others than
 * it.
 */
export function sizedContainers(spec: RenderServiceSpec): Sized[] {
  const { containers = [], initContainers = [] } = spec.template.spec ?? {};
  const worker = workerTemplate(containers);
  const others = [...initContainers, ...containers.filter((one) => one !== worker)];
  return [
    ...(worker ? [{ name: workerName(0), resources: workerResources(worker) }] : []),
    ...PROXIES.map((name) => ({ name, resources: proxyResources(spec, name) })),
    ...others.map(({ name, resources }) => ({ name, resources })),
  ];
}
