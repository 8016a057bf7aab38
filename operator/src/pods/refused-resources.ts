/**
 * What to set so that a namespace takes the pods. The API server names the resource that a ResourceQuota or a
 * LimitRange does not take, seldom the container, and never the field of the RenderService.
 */
import { HAPROXY_CONTAINER, NGINX_CONTAINER, workerName } from '../api/names.ts';
import {
  type Bound,
  type ContainerRange,
  inWords,
  type Misfit,
  misfits,
  resourceField,
  settings,
} from '../plan/resource-fields.ts';
import type { Sized } from '../plan/resources.ts';

/** The containers of a pod as the API server has them. */
export interface PodContainers {
  containers?: Sized[];
  initContainers?: Sized[];
}

/** Somebody's admission may say a lot. */
const TEXT_MAX = 8_192;
const RESOURCE = '([a-z0-9./-]{1,253})';
const BOUND = new RegExp(`(minimum|maximum) ${RESOURCE} usage per Container is ([^\\s,]{1,64}?)(?=,|[.]\\s)`, 'g');
const RATIO = new RegExp(`${RESOURCE} max limit to request ratio per Container is ([^\\s,]{1,64}),`, 'g');
/** A limit that a LimitRange has filled in. */
const ABOVE = new RegExp(
  `spec[.](initContainers|containers)\\[([0-9]{1,4})\\][.]resources[.]requests: Invalid value: "[^"]{1,64}": must be less than or equal to ${RESOURCE} limit of ([^\\s,;\\]]{1,64})`,
);
const OTHERS_FOLLOW = 'the containers that Corelane adds follow the worker';

/** The way out, or undefined where something else is refused. */
export function resourcesWayOut(refusal: string, pod: PodContainers): string | undefined {
  const text = refusal.slice(0, TEXT_MAX);
  if (/failed quota/.test(text)) return ofMissing(text);
  if (/exceeded quota/.test(text)) return ofExceeded(text);
  if (/(usage|ratio) per Container is/.test(text)) return ofRange(text, pod);
  if (/(usage|ratio) per Pod is/.test(text))
    return 'a LimitRange of the namespace bounds whole pods: change spec.workersPerPod, resources of the worker, or spec.sidecar';
  return ofAbove(text, pod);
}

/** A quota of a resource wants it of every container. */
function ofMissing(text: string): string {
  const [, list = ''] = /must specify (.+)$/s.exec(text) ?? [];
  const fields = list.split('; ').flatMap((part) => {
    const [, resource = '', names = ''] = /^(\S{1,253}) for: (.+)$/s.exec(part) ?? [];
    return names === '' ? [] : names.split(',').map((name) => resourceField(name, ...boundOf(resource)));
  });
  // The proxies lack nothing but a CPU limit, and have one as soon as the worker has.
  const isOfWorker = fields.includes(resourceField(workerName(0), 'limits', 'cpu'));
  const named = [...new Set(fields)].filter((field) => !isOfWorker || !field.startsWith('spec.sidecar.'));
  const all = named.length > 0 ? inWords(named) : 'resources of the worker';
  return `that ResourceQuota wants it of every container: set ${all} (${OTHERS_FOLLOW}), or give the namespace a LimitRange with defaults`;
}

function ofExceeded(text: string): string {
  const [, requested = ''] = /, requested: (.+?), used: /s.exec(text) ?? [];
  const fields = requested.split(',').flatMap((part) => {
    const [name = ''] = part.split('=');
    if (!/^(requests[.]|limits[.])?(cpu|memory|ephemeral-storage)$/.test(name)) return [];
    const [bound, resource] = boundOf(name);
    const proxies = resource === 'ephemeral-storage' ? [NGINX_CONTAINER] : [NGINX_CONTAINER, HAPROXY_CONTAINER];
    return [workerName(0), ...proxies].map((container) => resourceField(container, bound, resource));
  });
  if (fields.length === 0) return 'raise that ResourceQuota, or lower spec.replicas';
  return `raise that ResourceQuota, or lower one of ${inWords(['spec.replicas', 'spec.workersPerPod', ...new Set(fields)])}`;
}

/** `limits.cpu` as a quota calls it; `cpu` is a request. */
function boundOf(name: string): [Bound, string] {
  const [, bound = 'requests', resource = name] = /^(requests|limits)[.](.+)$/s.exec(name) ?? [];
  return [bound as Bound, resource];
}

function ofRange(text: string, { containers = [], initContainers = [] }: PodContainers): string {
  const range: Required<Pick<ContainerRange, 'min' | 'max' | 'maxLimitRequestRatio'>> = {
    min: {},
    max: {},
    maxLimitRequestRatio: {},
  };
  for (const [, which, resource = '', value] of text.matchAll(BOUND))
    range[which === 'minimum' ? 'min' : 'max'][resource] = value;
  for (const [, resource = '', value] of text.matchAll(RATIO)) range.maxLimitRequestRatio[resource] = value;
  // A LimitRange may have filled in what the plan lacks, unless the API server says that it is missing.
  const isMissing = /but no (limit|request) is specified/.test(text);
  const isKnown = ({ takes }: Misfit) => takes !== undefined || isMissing;
  const found = misfits([...initContainers, ...containers], range).filter(isKnown);
  const what = found.length > 0 ? settings(found) : 'resources of the template or spec.sidecar within it';
  return `a LimitRange of the namespace says so: set ${what}`;
}

function ofAbove(text: string, pod: PodContainers): string | undefined {
  const [, list, index, resource, limit] = ABOVE.exec(text) ?? [];
  if (resource === undefined) return undefined;
  const container = pod[list as keyof PodContainers]?.[Number(index)]?.name ?? workerName(0);
  const field = (bound: Bound) => resourceField(container, bound, resource);
  return `a LimitRange of the namespace gives it a limit of ${limit}: set ${field('limits')}, or ${field('requests')} to at most ${limit}`;
}
