/** C009 of a RenderService: who else writes the number of its pods, or their requests. */
import { KIND } from '../src/api/names.ts';
import type { Finding } from './finding.ts';
import type { Rule, Workload } from './workload.ts';

interface Target {
  kind?: string;
  name?: string;
}

/** Whether an autoscaler means the RenderService, or a Deployment that it owns: one has the name of its revision. */
function meant(target: Target | undefined, name: string): 'RenderService' | 'Deployment' | undefined {
  const { kind = 'Deployment', name: given = '' } = target ?? {};
  if (kind === KIND) return given === name ? 'RenderService' : undefined;
  const isOwned =
    given === name || (given.startsWith(`${name}-`) && /^[0-9a-f]{10}$/.test(given.slice(name.length + 1)));
  return kind === 'Deployment' && isOwned ? 'Deployment' : undefined;
}

function ofDeployment(object: string, path: string): Finding {
  return {
    code: 'C009',
    level: 'error',
    object,
    path,
    what: 'it scales a Deployment that the RenderService owns',
    why: 'The operator takes back what it writes, again and again (condition ObjectsInSync)',
    wayOut: `Let it scale the RenderService (apiVersion: corelane.dev/v1alpha1, kind: ${KIND}), or delete it.`,
  };
}

function* numbers({ name, spec, surroundings }: Workload): Generator<Finding> {
  const all = [
    ...surroundings.autoscalers.map((hpa) => ({
      object: `HorizontalPodAutoscaler/${hpa.metadata?.name}`,
      target: hpa.spec?.scaleTargetRef,
    })),
    ...surroundings.scaledObjects.map((keda) => ({
      object: `ScaledObject/${keda.metadata?.name}`,
      target: keda.spec?.scaleTargetRef,
    })),
  ];
  for (const { object, target } of all) {
    const kind = meant(target, name);
    if (kind === 'Deployment') yield ofDeployment(object, 'spec.scaleTargetRef');
    if (kind !== 'RenderService' || !spec.scaling) continue;
    yield {
      code: 'C009',
      level: 'error',
      object,
      path: 'spec.scaleTargetRef',
      what: `it scales ${KIND} ${name}, which has scaling of its own`,
      why: 'Two controllers that write one number fight',
      wayOut: 'Delete it, or remove spec.scaling.',
    };
  }
}

const OF_WHOLE_PODS = {
  code: 'C009',
  level: 'warning',
  what: 'it measures the CPU of whole pods',
  why: 'The proxies, which are nearly idle, dilute that of the workers',
} as const;

function* wholePods({ name, surroundings }: Workload): Generator<Finding> {
  for (const { metadata, spec } of surroundings.autoscalers) {
    if (meant(spec?.scaleTargetRef, name) !== 'RenderService') continue;
    const index =
      spec?.metrics?.findIndex(({ type, resource }) => type === 'Resource' && resource?.name === 'cpu') ?? -1;
    if (index < 0) continue;
    yield {
      ...OF_WHOLE_PODS,
      object: `HorizontalPodAutoscaler/${metadata?.name}`,
      path: `spec.metrics[${index}].resource`,
      wayOut: 'Use type ContainerResource with container: worker-0 (docs/scaling.md).',
    };
  }
  for (const { metadata, spec } of surroundings.scaledObjects) {
    if (meant(spec?.scaleTargetRef, name) !== 'RenderService') continue;
    const index = spec?.triggers?.findIndex((one) => one.type === 'cpu' && !one.metadata?.containerName) ?? -1;
    if (index < 0) continue;
    yield {
      ...OF_WHOLE_PODS,
      object: `ScaledObject/${metadata?.name}`,
      path: `spec.triggers[${index}].metadata`,
      wayOut: 'Set containerName: worker-0 (docs/scaling.md).',
    };
  }
}

function* vertical({ name, surroundings }: Workload): Generator<Finding> {
  for (const { metadata, spec } of surroundings.verticalAutoscalers) {
    const mode = spec?.updatePolicy?.updateMode ?? 'Auto';
    if (!meant(spec?.targetRef, name) || mode === 'Off') continue;
    yield {
      code: 'C009',
      level: 'decide',
      object: `VerticalPodAutoscaler/${metadata?.name}`,
      path: 'spec.updatePolicy.updateMode',
      what: `it changes the requests of the pods (${mode})`,
      why: 'It evicts pods to do so, and percentages of a request that moves mean nothing',
      wayOut: 'Set updateMode: "Off" and read its recommendations.',
    };
  }
}

export const autoscalersRule: Rule = {
  codes: ['C009'],
  find: (workload) =>
    workload.origin === 'RenderService' ? [...numbers(workload), ...wholePods(workload), ...vertical(workload)] : [],
};
