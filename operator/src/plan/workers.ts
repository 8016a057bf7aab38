/** The worker containers, made from the user's one. docs/pod-template.md has the same rules in words. */
import type { V1Container, V1EnvVar } from '@kubernetes/client-node';
import { PORTS, workerName } from '../api/names.ts';
import { presetEnv } from '../api/presets.ts';
import type { RenderServiceSpec } from '../api/spec.ts';
import { withDrainHook } from './drain-hook.ts';
import { workerResources } from './resources.ts';
import { runtimeEnv, runtimeMounts } from './runtime.ts';

/**
 * Worker containers number 0 to workersPerPod - 1. User wins: image, command, args, resources, volumes, security
 * context, and everything else not named here. Corelane wins: name, PORT, WORKER_INDEX and CORELANE_..., ports (kubelet
 * and Services never talk to a worker), lifecycle. Both: NODE_OPTIONS (see runtime.ts).
 */
export function workerContainers(spec: RenderServiceSpec, template: V1Container): V1Container[] {
  const { lifecycle: _lifecycle, ports: _ports, ...rest } = template;
  return Array.from({ length: spec.workersPerPod }, (_unused, index) =>
    withDrainHook({
      ...rest,
      name: workerName(index),
      env: runtimeEnv(spec, workerEnv(spec, template, index), index, template),
      resources: workerResources(template),
      volumeMounts: [...(template.volumeMounts ?? []), ...runtimeMounts(spec)],
    }),
  );
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
