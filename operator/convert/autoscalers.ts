/** C009: autoscalers of the Deployment. */
import type { V2HorizontalPodAutoscaler } from '@kubernetes/client-node';
import type { ScaledObject } from '../check/workload.ts';
import { DEFAULT_CPU } from '../src/api/scaling.ts';
import type { Capacity } from './capacity.ts';
import type { Draft } from './draft.ts';
import type { Related } from './related.ts';

/** KEDA's own. */
const KEDA_PODS_MAX = 100;

interface Bounds {
  /** Kind and name. */
  object: string;
  min: number;
  max: number;
  isOnCpu: boolean;
  /** What it measures beside CPU. */
  others: string[];
  /** Percent of the request that it holds, where it says one. */
  percent?: number;
}

/** Takes bounds over as `scaling`, and says of the others what is to be done. */
export function writeScaling(
  draft: Draft,
  { autoscalers, scaledObjects, verticalAutoscalers }: Related,
  capacity: Capacity,
  name: string,
): { isScaled: boolean } {
  const all = [
    ...autoscalers.map(({ value }) => boundsOfHpa(value)),
    ...scaledObjects.map(({ value }) => boundsOfKeda(value)),
  ];
  const onCpu = all.find(({ isOnCpu }) => isOnCpu);
  for (const bounds of all) {
    if (bounds === onCpu) writeBounds(draft, bounds, capacity);
    else sayKept(draft, bounds, name, onCpu !== undefined);
  }
  for (const { value } of verticalAutoscalers) {
    const mode = value.spec?.updatePolicy?.updateMode ?? 'Auto';
    draft.say('spec.updatePolicy.updateMode', {
      code: 'C009',
      level: mode === 'Off' ? 'info' : 'decide',
      object: `VerticalPodAutoscaler/${value.metadata?.name}`,
      what: mode === 'Off' ? 'it only recommends' : `it changes requests (${mode})`,
      why: 'It targets the Deployment, which goes; percentages of a request that moves mean nothing',
      wayOut: `Let it target RenderService ${name} with updateMode: "Off", or delete it.`,
      fate: 'kept',
    });
  }
  return { isScaled: all.length > 0 };
}

function boundsOfHpa(hpa: V2HorizontalPodAutoscaler): Bounds {
  const { minReplicas, maxReplicas = 1, metrics } = hpa.spec ?? {};
  // autoscaling/v1 has one number instead of the list, and 80 % unless given.
  const old = (hpa.spec as { targetCPUUtilizationPercentage?: number } | undefined)?.targetCPUUtilizationPercentage;
  const isCpu = (metric: NonNullable<typeof metrics>[number]) =>
    (metric.resource?.name ?? metric.containerResource?.name) === 'cpu';
  const cpu = metrics?.find(isCpu);
  const others = (metrics ?? []).filter((metric) => !isCpu(metric));
  return {
    object: `HorizontalPodAutoscaler/${hpa.metadata?.name}`,
    min: minReplicas ?? 1,
    max: maxReplicas,
    isOnCpu: cpu !== undefined || others.length === 0,
    others: others.map(({ type, resource }) => resource?.name ?? type),
    percent: old ?? (cpu?.resource ?? cpu?.containerResource)?.target?.averageUtilization,
  };
}

function boundsOfKeda({ metadata, spec }: ScaledObject): Bounds {
  const triggers = (spec?.triggers ?? []).map(({ type }) => type ?? '');
  return {
    object: `ScaledObject/${metadata?.name}`,
    min: spec?.minReplicaCount ?? 0,
    max: spec?.maxReplicaCount ?? KEDA_PODS_MAX,
    isOnCpu:
      triggers.length > 0 && triggers.every((type) => type === 'cpu' || type === 'memory') && triggers.includes('cpu'),
    others: triggers.filter((type) => type !== 'cpu'),
  };
}

function writeBounds(draft: Draft, { object, min, max, others, percent }: Bounds, { podsFor }: Capacity): void {
  const minReplicas = Math.max(1, podsFor(min));
  const maxReplicas = Math.max(minReplicas, podsFor(max));
  draft.set('scaling', { minReplicas, maxReplicas });
  const { abovePercent } = DEFAULT_CPU.scaleUp;
  const target = percent === undefined ? 'Its target is' : `Its target of ${percent} % is`;
  const head =
    percent !== undefined && percent > abovePercent
      ? `, so up to ${Math.ceil(percent / abovePercent)} times the pods`
      : '';
  const lost = [
    ...(others.length > 0 ? [`its other metrics (${others.join(', ')})`] : []),
    ...(min === 0 ? ['scaling to zero'] : []),
  ];
  draft.say('spec', {
    code: 'C009',
    level: 'decide',
    object,
    what: `became scaling: { minReplicas: ${minReplicas}, maxReplicas: ${maxReplicas} }${lost.length > 0 ? `, without ${lost.join(' and ')}` : ''}`,
    why: `${target} not taken over: scaling adds pods above ${abovePercent} % of per-core CPU${head}; and two controllers of one number fight`,
    wayOut: `Delete it when traffic has moved. For less head-room set scaling.cpu (55/40 with steps, docs/scaling.md).`,
    fate: 'replaced',
  });
}

function sayKept(draft: Draft, { object, others, isOnCpu }: Bounds, name: string, isSecond: boolean): void {
  draft.say('spec.scaleTargetRef', {
    code: 'C009',
    level: 'decide',
    object,
    what: isSecond
      ? 'a second autoscaler is left out'
      : `it scales by ${isOnCpu ? 'cpu' : others.join(', ') || 'nothing that is known'}, and stays`,
    why: 'It names the Deployment, which goes; what it measures the operator does not',
    wayOut: `Let it scale the RenderService: scaleTargetRef: { apiVersion: corelane.dev/v1alpha1, kind: RenderService, name: ${name} }; replicas is left out for it.`,
    fate: 'kept',
  });
}
