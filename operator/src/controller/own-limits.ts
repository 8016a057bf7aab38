/** Limits of the containers that Corelane's requests pass through: the proxies and the workers of a pod. */
import { HAPROXY_CONTAINER, isWorkerName, NGINX_CONTAINER, WORKER_CONTAINER } from '../api/names.ts';
import { parseQuantity } from '../api/scalars.ts';

/** Resources whose limits can hurt. */
const RESOURCES = ['cpu', 'memory', 'ephemeral-storage'] as const;
const PROXIES = [HAPROXY_CONTAINER, NGINX_CONTAINER];

type Resource = (typeof RESOURCES)[number];
type Limits = Partial<Record<Resource, string>>;

/** By the name of a proxy; of all workers the least. */
export type OwnLimits = Record<string, Limits>;

interface Container {
  name: string;
  resources?: { limits?: Record<string, string> };
}

/** The part of a pod that has them. */
export interface LimitedSpec {
  containers?: Container[];
  initContainers?: Container[];
}

/** Limits of a pod or of a template; undefined where there are none: three texts at most for each of three names. */
export function ownLimits(spec: LimitedSpec | undefined): OwnLimits | undefined {
  const found: OwnLimits = {};
  for (const { name, resources } of spec?.initContainers ?? []) if (PROXIES.includes(name)) add(found, name, resources);
  for (const { name, resources } of spec?.containers ?? [])
    if (isWorkerName(name)) add(found, WORKER_CONTAINER, resources);
  return Object.keys(found).length > 0 ? found : undefined;
}

/** The least of all of these. */
export function leastOf(all: Iterable<OwnLimits | undefined>): OwnLimits {
  const found: OwnLimits = {};
  for (const one of all) for (const [name, limits] of Object.entries(one ?? {})) add(found, name, { limits });
  return found;
}

function add(found: OwnLimits, name: string, resources: { limits?: Limits } | undefined): void {
  for (const resource of RESOURCES) {
    const limit = resources?.limits?.[resource];
    if (limit === undefined) continue;
    const limits = found[name] ?? {};
    const before = limits[resource];
    if (before === undefined || amountOf(limit) < amountOf(before)) limits[resource] = limit;
    found[name] = limits;
  }
}

/** Least that each needs where Corelane applies no limit. A proxy, and a render, have one thread. */
const NEEDS: Record<string, Limits> = {
  [HAPROXY_CONTAINER]: { cpu: '1' },
  [NGINX_CONTAINER]: { cpu: '1' },
  // Below that too little is left for pages beside the program (C007).
  [WORKER_CONTAINER]: { cpu: '1', memory: '256Mi' },
};

const CONSEQUENCES: Record<Resource, string> = {
  cpu: 'which throttles it and delays every request',
  memory: 'beyond which it is killed under load',
  'ephemeral-storage': 'beyond which the pod is evicted under load',
};

/** A limit that hurts. */
export interface HurtingLimit {
  /** What it is, and what it does. */
  text: string;
  /** The field of a RenderService that keeps others from setting it, and its value, where the plan has no limit. */
  wayOut?: string;
}

/** Limits of `made` that are below those of `planned`, or below the need where nothing is planned. */
export function hurtingLimits(planned: OwnLimits = {}, made: OwnLimits = {}): HurtingLimit[] {
  return Object.entries(made).flatMap(([name, limits]) =>
    RESOURCES.flatMap((resource) => {
      const limit = limits[resource];
      const asked = planned[name]?.[resource];
      const enough = asked ?? NEEDS[name]?.[resource];
      if (limit === undefined || enough === undefined || amountOf(limit) >= amountOf(enough)) return [];
      const what = `the ${resource} limit of ${name === WORKER_CONTAINER ? 'the workers' : name} is ${limit}`;
      const text = `${what}${asked === undefined ? '' : ` instead of ${asked}`}, ${consequence(name, resource)}`;
      return [{ text, ...(asked === undefined && { wayOut: `${fieldOf(name, resource)} to ${enough}` }) }];
    }),
  );
}

function consequence(name: string, resource: Resource): string {
  return name === WORKER_CONTAINER && resource === 'cpu'
    ? 'which stops each render for part of every 100 ms'
    : CONSEQUENCES[resource];
}

const FIELDS: Record<Resource, string> = {
  cpu: 'cpuLimit',
  memory: 'memoryLimit',
  'ephemeral-storage': 'ephemeralStorageLimit',
};

function fieldOf(name: string, resource: Resource): string {
  return name === WORKER_CONTAINER
    ? `resources.limits.${resource} of the worker in spec.template`
    : `spec.sidecar.${name}.${FIELDS[resource]}`;
}

function amountOf(quantity: string): number {
  return parseQuantity(quantity) ?? 0;
}
