/**
 * Which field the resources of a container come from, and what of them a LimitRange does not take. The API server says
 * what is too small or too large, and not in which container.
 */
import { ASSETS_CONTAINER, HAPROXY_CONTAINER, isWorkerName, NGINX_CONTAINER, RUNTIME_CONTAINER } from '../api/names.ts';
import { parseQuantity } from '../api/scalars.ts';
import type { Sized } from './resources.ts';

export type Bound = 'requests' | 'limits';
type Amounts = Record<string, string | number | undefined>;

/** What a LimitRange wants of each container: an entry of `spec.limits` whose type is Container. */
export interface ContainerRange {
  min?: Amounts;
  max?: Amounts;
  default?: Amounts;
  defaultRequest?: Amounts;
  maxLimitRequestRatio?: Amounts;
}

/** A field that such a range does not take. */
export interface Misfit {
  field: string;
  /** `at least 100m`; undefined where the field is missing and any value will do. */
  takes?: string;
}

const MIB = 1024 ** 2;
/** Fields that a sentence names. */
const NAMED_MAX = 8;
const PROXIES: string[] = [HAPROXY_CONTAINER, NGINX_CONTAINER];
/** Containers that have the worker's resources. */
const FOLLOWERS: string[] = [RUNTIME_CONTAINER, ASSETS_CONTAINER];
/** Fields of spec.sidecar.nginx and spec.sidecar.haproxy; the last one nginx has alone. */
const PROXY_FIELDS: Record<string, string> = {
  'requests.cpu': 'cpu',
  'limits.cpu': 'cpuLimit',
  'requests.memory': 'memory',
  'limits.memory': 'memoryLimit',
  'limits.ephemeral-storage': 'ephemeralStorageLimit',
};

/** The field that sets a resource of a container, in words. @param container its name in the pod */
export function resourceField(container: string, bound: Bound, resource: string): string {
  if (PROXIES.includes(container)) {
    const field = PROXY_FIELDS[`${bound}.${resource}`];
    return `spec.sidecar.${container}${field === undefined ? '' : `.${field}`}`;
  }
  const isOfWorker = isWorkerName(container) || FOLLOWERS.includes(container);
  return `resources.${bound}.${resource} of ${isOfWorker ? 'the worker' : `container ${container}`}`;
}

/** The fields that a range does not take, each once. */
export function misfits(containers: Sized[], range: ContainerRange): Misfit[] {
  const { min, max, maxLimitRequestRatio } = range;
  const resources = new Set([min, max, range.default, maxLimitRequestRatio].flatMap((part) => Object.keys(part ?? {})));
  const all = containers.flatMap((container) =>
    [...resources].flatMap((resource) => misfitsOf(container, range, resource)),
  );
  return [...new Map(all.map((one) => [`${one.field} ${one.takes}`, one])).values()];
}

/** As the API server does it: what is missing is filled in first, and then compared. */
function misfitsOf({ name, resources }: Sized, range: ContainerRange, resource: string): Misfit[] {
  const [ownRequest, ownLimit] = [resources?.requests?.[resource], resources?.limits?.[resource]];
  const [min, max] = [range.min?.[resource], range.max?.[resource]];
  const filledLimit = range.default?.[resource] ?? max;
  const limit = amountOf(ownLimit ?? filledLimit);
  const request = amountOf(ownRequest ?? ownLimit ?? range.defaultRequest?.[resource] ?? filledLimit ?? min);
  const isRequestOwn = ownRequest !== undefined || ownLimit === undefined;
  const ofRequest = (takes?: string) => ({
    field: resourceField(name, isRequestOwn ? 'requests' : 'limits', resource),
    takes,
  });
  const ofLimit = (takes?: string) => ({ field: resourceField(name, 'limits', resource), takes });
  const found: Misfit[] = [];
  if (isLess(request, min)) found.push(ofRequest(`at least ${min}`));
  if (ownLimit !== undefined && isLess(limit, min)) found.push(ofLimit(`at least ${min}`));
  if (isLess(max, limit)) found.push(ofLimit(`at most ${max}`));
  if (isLess(max, request)) found.push(ofRequest(`at most ${max}`));
  else if (ownLimit === undefined && isLess(limit, request)) found.push(ofRequest(`at most ${filledLimit}`));
  const ratio = amountOf(range.maxLimitRequestRatio?.[resource]);
  if (ratio === undefined) return found;
  if (!request) return [...found, ofRequest()];
  if (!limit) return [...found, ofLimit()];
  // A ratio is never below 1.
  const least = limit / Math.max(1, ratio);
  return request < least * (1 - Number.EPSILON) ? [...found, ofRequest(`at least ${rounded(resource, least)}`)] : found;
}

function amountOf(quantity: string | number | undefined): number | undefined {
  return quantity === undefined ? undefined : parseQuantity(quantity);
}

/** Whether both are known, and the first is the smaller one. */
function isLess(one: string | number | undefined, other: string | number | undefined): boolean {
  const [less, more] = [amountOf(one), amountOf(other)];
  return less !== undefined && more !== undefined && less < more;
}

/** Up, to a unit that people write: 100m of a CPU, 128Mi. */
function rounded(resource: string, value: number): string {
  return resource === 'cpu' ? `${Math.ceil(1000 * value - 0.001)}m` : `${Math.ceil(value / MIB - 0.001)}Mi`;
}

/** `spec.sidecar.nginx.cpu and spec.sidecar.haproxy.cpu to at least 100m`, behind "set". */
export function settings(found: Misfit[]): string {
  return [...Map.groupBy(found, ({ takes }) => takes)]
    .map(([takes, some]) => {
      const fields = inWords(some.map(({ field }) => field));
      return takes === undefined ? fields : `${fields} to ${takes}`;
    })
    .join('; ');
}

/** `a, b and c`; of many the first few. */
export function inWords(fields: string[]): string {
  const named = fields.slice(0, NAMED_MAX);
  const others = fields.length > NAMED_MAX ? [`${fields.length - NAMED_MAX} more`] : [];
  const all = [...named, ...others];
  return all.length > 1 ? `${all.slice(0, -1).join(', ')} and ${all.at(-1)}` : (all[0] ?? '');
}
