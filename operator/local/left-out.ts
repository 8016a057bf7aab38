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
/** Of the container; docs/run.md tells of the last two. */
const SECURITY_USED = [
  ...['runAsUser', 'runAsGroup', 'readOnlyRootFilesystem', 'allowPrivilegeEscalation', 'capabilities'],
  ...['runAsNonRoot', 'seccompProfile'],
];
/**
 * What Pod Security "baseline" lets a container have, as the chart's policy on RenderServices does. With others, such
 * as SYS_ADMIN, root in the container is root on this machine, and the file may be a stranger's.
 */
const CAPABILITIES = new Set([
  ...['AUDIT_WRITE', 'CHOWN', 'DAC_OVERRIDE', 'FOWNER', 'FSETID', 'KILL', 'MKNOD', 'NET_BIND_SERVICE', 'SETFCAP'],
  ...['SETGID', 'SETPCAP', 'SETUID', 'SYS_CHROOT'],
]);
const isOfHost = (capability: string) => !CAPABILITIES.has(capability);

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
      .map(([name]) => `${prefix}.${name}: ${Object.hasOwn(why, name) ? why[name] : 'an engine has no such thing'}`);
  return [
    ...(spec.forwarded.proxyProtocol ? ['spec.forwarded.proxyProtocol: browsers do not speak it'] : []),
    ...(spec.tracing?.headersFrom ? ['spec.tracing.headersFrom: nobody reads the Secret here'] : []),
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
    ...lines(`${path}.securityContext`, whatIsOn(worker.securityContext), SECURITY_USED, {
      privileged: 'it would be root on this machine',
    }),
    ...(worker.securityContext?.capabilities?.add ?? [])
      .filter(isOfHost)
      .map((name) => `${path}.securityContext.capabilities.add (${name}): it may lead to root on this machine`),
  ];
}

/** What is false is so on an engine as well. */
function whatIsOn(context: V1Container['securityContext'] = {}): object {
  return Object.fromEntries(Object.entries(context).filter(([, value]) => value !== false));
}

/** The container without capabilities that lead out of it. */
export function withoutHost(container: V1Container): V1Container {
  const { securityContext } = container;
  const add = securityContext?.capabilities?.add;
  if (!add?.some(isOfHost)) return container;
  const capabilities = { ...securityContext?.capabilities, add: add.filter((name) => !isOfHost(name)) };
  return { ...container, securityContext: { ...securityContext, capabilities } };
}
