/**
 * What mutating admission (a webhook or a policy of the cluster: GKE Autopilot, Kyverno) has made of objects that
 * Corelane applies, and whether that hurts.
 */
import type { V1PodTemplateSpec } from '@kubernetes/client-node';
import { LABEL_REVISION } from '../api/names.ts';
import { admittedFields } from '../kube/apply.ts';
import { fieldText } from '../kube/drift.ts';
import { kinds } from '../kube/kinds.ts';
import { unpacked } from '../kube/packed.ts';
import type { Deviation } from '../kube/subset.ts';
import type { KubeObject } from '../kube/types.ts';
import { listed } from './foreign-writes.ts';
import { hurtingLimits, type LimitedSpec, leastOf, type OwnLimits, ownLimits } from './own-limits.ts';

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

interface PodSpec extends LimitedSpec {
  terminationGracePeriodSeconds?: number;
}

/** What Corelane sets, or leaves out, for a reason that the cluster cannot know. */
function hurtsOf(desired: KubeObject, live: KubeObject): string[] {
  if (desired.kind !== kinds.deployment.kind) return [];
  const [planned, made] = [desired, live].map(podSpec);
  const limits = hurtingLimits(ownLimits(planned), ownLimits(made)).map(({ text }) => text);
  const [wanted, grace] = [planned, made].map((spec) => spec?.terminationGracePeriodSeconds);
  if (wanted === undefined || grace === undefined || grace >= wanted) return limits;
  return [...limits, `terminationGracePeriodSeconds is ${grace} instead of ${wanted}, which ends a drain too early`];
}

function podSpec({ spec }: KubeObject): PodSpec | undefined {
  const template = unpacked((spec as { template?: unknown } | undefined)?.template) as { spec?: PodSpec } | undefined;
  return template?.spec;
}

/**
 * A sentence about limits that hurt and that only the pods have: the defaults of a LimitRange, or a policy about pods.
 * Their Deployment is as it was applied.
 * @param template of the pods as planned
 * @param pods as the cache keeps them, of whatever revision
 * @param before the sentence so far, which stays until there is a pod of this revision
 */
export function podHurts(
  { metadata, spec }: V1PodTemplateSpec,
  pods: KubeObject[],
  before?: string,
): string | undefined {
  const revision = metadata?.labels?.[LABEL_REVISION];
  const own = pods.filter(
    (pod) => pod.metadata.labels?.[LABEL_REVISION] === revision && !pod.metadata.deletionTimestamp,
  );
  if (own.length === 0) return before;
  const made = leastOf(new Set(own.map((pod) => pod.limits as OwnLimits | undefined)));
  const hurts = hurtingLimits(ownLimits(spec), made);
  if (hurts.length === 0) return undefined;
  const fields = listed(hurts.flatMap(({ wayOut }) => wayOut ?? []));
  const wayOut = fields === '' ? '' : `. If a LimitRange sets it by default, set ${fields}`;
  return `pods: ${listed(hurts.map(({ text }) => text))}${wayOut}`;
}
