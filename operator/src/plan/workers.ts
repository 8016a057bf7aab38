/** The worker containers, made from the user's one. docs/pod-template.md has the same rules in words. */
import type { V1Container, V1EnvVar } from '@kubernetes/client-node';
import { PORTS, workerName } from '../api/names.ts';
import { presetEnv } from '../api/presets.ts';
import type { RenderServiceSpec } from '../api/spec.ts';
import { runtimeEnv, runtimeMounts } from './runtime.ts';

/**
 * Worker containers number 0 to workersPerPod - 1. User wins: image, command, args, resources, volumes, security
 * context, and everything else not named here. Corelane wins: name, PORT, WORKER_INDEX and CORELANE_..., ports (kubelet
 * and Services never talk to a worker), lifecycle. Both: NODE_OPTIONS (see runtime.ts).
 */
export function workerContainers(spec: RenderServiceSpec, template: V1Container): V1Container[] {
  const { ports: _ports, ...rest } = template;
  return Array.from({ length: spec.workersPerPod }, (_unused, index) => ({
    ...rest,
    name: workerName(index),
    env: runtimeEnv(spec, workerEnv(spec, template, index), index, template),
    resources: withCpuRequest(template.resources),
    ...runtimeMounts(spec, template),
    // kubelet sends SIGTERM when this hook has returned: when the pod has drained (see sidecar/README.md).
    lifecycle: { preStop: { httpGet: { path: '/wait-for-drain', port: PORTS.health } } },
  }));
}

function workerEnv(spec: RenderServiceSpec, { env: user = [], envFrom = [] }: V1Container, index: number): V1EnvVar[] {
  const fixed = [
    { name: 'PORT', value: String(PORTS.firstWorker + index) },
    { name: 'WORKER_INDEX', value: String(index) },
  ];
  // Only the proxy in the same pod may reach a worker; a user who sets HOST knows better. The names in envFrom are not
  // known here, and a variable of the preset would override one of them.
  const usual = [{ name: 'HOST', value: '127.0.0.1' }, ...(envFrom.length > 0 ? [] : presetEnv(spec))];
  const fallback = usual.filter(({ name }) => !user.some((own) => own.name === name));
  return [...user.filter(({ name }) => !fixed.some((own) => own.name === name)), ...fallback, ...fixed];
}

/** Each worker is meant to have one CPU; a user who asks for another amount gets that. */
function withCpuRequest(resources: V1Container['resources'] = {}): V1Container['resources'] {
  if (resources.requests?.cpu !== undefined || resources.limits?.cpu !== undefined) return resources;
  return { ...resources, requests: { cpu: '1', ...resources.requests } };
}
