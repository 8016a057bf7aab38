/**
 * What mutating admission (a webhook or a policy of the cluster: GKE Autopilot, Kyverno) has made of objects that
 * Corelane applies, and whether that hurts.
 */
import { HAPROXY_CONTAINER, NGINX_CONTAINER } from '../api/names.ts';
import { parseQuantity } from '../api/scalars.ts';
import { admittedFields } from '../kube/apply.ts';
import { fieldText } from '../kube/drift.ts';
import { kinds } from '../kube/kinds.ts';
import { unpacked } from '../kube/packed.ts';
import type { Deviation } from '../kube/subset.ts';
import type { KubeObject } from '../kube/types.ts';
import { listed } from './foreign-writes.ts';

export interface Admission {
  /** A sentence about fields that are others than those applied. */
  changed?: string;
  /** A sentence about what hurts, be it changed or added. */
  hurts?: string;
}

/** @param live the object as it is, with no write of anybody in it that is still to be taken back */
export function admissionOf(desired: KubeObject, live: KubeObject): Admission {
  const fields = admittedFields(desired, live);
  const hurts = hurtsOf(desired, live);
  const about = (what: string) => `${desired.kind} "${desired.metadata.name}": ${what}`;
  return {
    ...(fields.length > 0 && { changed: about(listed(fields.map(changeText))) }),
    ...(hurts.length > 0 && { hurts: about(hurts.join(', ')) }),
  };
}

/** Fields whose values are told: an environment variable, say, may have a secret. */
const TOLD = new Set([
  'f:cpu',
  'f:ephemeral-storage',
  'f:image',
  'f:imagePullPolicy',
  'f:memory',
  'f:replicas',
  'f:terminationGracePeriodSeconds',
]);

function changeText({ path, desired, live }: Deviation): string {
  const isTold = TOLD.has(path.at(-1) ?? '') && [desired, live].every((value) => typeof value !== 'object');
  return isTold ? `${fieldText(path)} is ${live ?? 'absent'} instead of ${desired}` : fieldText(path);
}

interface Container {
  name: string;
  resources?: { limits?: Record<string, string> };
}

interface PodSpec {
  terminationGracePeriodSeconds?: number;
  initContainers?: Container[];
}

/** What Corelane sets, or leaves out, for a reason that the cluster cannot know. */
function hurtsOf(desired: KubeObject, live: KubeObject): string[] {
  if (desired.kind !== kinds.deployment.kind) return [];
  const [planned, made] = [desired, live].map(podSpec);
  const proxies = planned?.initContainers?.filter(({ name }) => name === HAPROXY_CONTAINER || name === NGINX_CONTAINER);
  const limits = (proxies ?? []).flatMap((proxy) => {
    const other = made?.initContainers?.find(({ name }) => name === proxy.name);
    return Object.entries(other?.resources?.limits ?? {}).flatMap(([resource, limit]) =>
      limitHurts(proxy, resource, limit),
    );
  });
  const [wanted, grace] = [planned, made].map((spec) => spec?.terminationGracePeriodSeconds);
  if (wanted === undefined || grace === undefined || grace >= wanted) return limits;
  return [...limits, `terminationGracePeriodSeconds is ${grace} instead of ${wanted}, which ends a drain too early`];
}

function podSpec({ spec }: KubeObject): PodSpec | undefined {
  const template = unpacked((spec as { template?: unknown } | undefined)?.template) as { spec?: PodSpec } | undefined;
  return template?.spec;
}

/** Each proxy has one process of one thread: with a CPU of its own no limit throttles it. */
const CPU_ENOUGH = '1';

const CONSEQUENCES: Record<string, string> = {
  cpu: 'which throttles it and delays every request',
  memory: 'beyond which it is killed under load',
  'ephemeral-storage': 'beyond which the pod is evicted under load',
};

function limitHurts({ name, resources }: Container, resource: string, limit: string): string[] {
  const planned = resources?.limits?.[resource];
  const enough = planned ?? (resource === 'cpu' ? CPU_ENOUGH : undefined);
  const consequence = CONSEQUENCES[resource];
  if (enough === undefined || consequence === undefined) return [];
  if ((parseQuantity(limit) ?? 0) >= (parseQuantity(enough) ?? 0)) return [];
  const change = planned === undefined ? '' : ` instead of ${planned}`;
  return [`the ${resource} limit of ${name} is ${limit}${change}, ${consequence}`];
}
