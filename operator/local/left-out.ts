/** What a RenderService asks for and a plain container engine has not, so that nothing is lost in silence. */
import type { V1Container, V1PodSpec } from '@kubernetes/client-node';
import type { RenderServiceSpec } from '../src/api/spec.ts';

/** Fields of the container that are used, that Corelane replaces in a cluster as well, or of which others tell. */
const CONTAINER_USED = [
  ...['name', 'image', 'command', 'args', 'workingDir', 'env', 'envFrom', 'resources', 'securityContext'],
  ...['ports', 'volumeMounts', 'imagePullPolicy', 'terminationMessagePath', 'terminationMessagePolicy'],
];
const POD_USED = ['containers', 'volumes', 'securityContext', 'restartPolicy', 'terminationGracePeriodSeconds'];
const POD_SECURITY_USED = ['runAsUser', 'runAsGroup', 'runAsNonRoot', 'seccompProfile'];
const POD_WHY: Record<string, string> = {
  affinity: 'there is one machine',
  nodeSelector: 'there is one machine',
  tolerations: 'there is one machine',
  topologySpreadConstraints: 'there is one machine',
  priorityClassName: 'there is no scheduler',
  initContainers: 'only the workers run',
  serviceAccountName: 'there is no API server',
  imagePullSecrets: 'the engine pulls with its own login',
};
/**
 * A line for each field that has no effect here.
 * @param path of the worker's container
 */
export function leftOut(spec: RenderServiceSpec, worker: V1Container, path: string): string[] {
  const { containers, ...pod }: V1PodSpec = spec.template.spec ?? { containers: [] };
  const lines = (prefix: string, object: object, used: string[], why: Record<string, string>) =>
    Object.entries(object)
      .filter(([name, value]) => value !== undefined && value !== null && !used.includes(name))
      .map(([name]) => `${prefix}.${name}: ${why[name] ?? 'an engine has no such thing'}`);
  return [
    ...(spec.scaling ? ['spec.scaling: the number of pods is --pods'] : []),
    ...lines('spec.template.spec', pod, POD_USED, POD_WHY),
    ...lines('spec.template.spec.securityContext', pod.securityContext ?? {}, POD_SECURITY_USED, {}),
    ...(pod.volumes ?? [])
      .map((volume, index) => ({ volume, index }))
      .filter(({ volume }) => !volume.emptyDir)
      .map(({ volume, index }) => `spec.template.spec.volumes[${index}] (${volume.name}): only an emptyDir is there`),
    ...containers
      .map(({ name }, index) => ({ name, index }))
      .filter(({ name }) => name !== worker.name)
      .map(({ name, index }) => `spec.template.spec.containers[${index}] (${name}): only the workers run`),
    ...lines(path, worker, CONTAINER_USED, {}),
  ];
}
