/**
 * How the worker runtime gets into a worker: an init container copies it from the sidecar image into a volume, and
 * NODE_OPTIONS loads it into every Node.js process. docs/runtime.md tells what it does there.
 */
import type { V1Container, V1EnvVar, V1Volume } from '@kubernetes/client-node';
import { PORTS, RUNTIME_CONTAINER, RUNTIME_MOUNT_PATH, VOLUME_PREFIX } from '../api/names.ts';
import { durationMs } from '../api/scalars.ts';
import type { RenderServiceSpec } from '../api/spec.ts';
import { SECURITY_CONTEXT, type SidecarImage } from './proxies.ts';

const VOLUME = `${VOLUME_PREFIX}runtime`;
const STALL_TIMEOUT = '10s';
/** Bounds of watchdog.stallTimeout hold for its default as well. */
const STALL_TIMEOUT_MIN_MS = 500;
const ENTRY = `--require=${RUNTIME_MOUNT_PATH}/supervisor.cjs`;
/** Keeps a value of NODE_OPTIONS that the plan cannot see. */
const USER_OPTIONS = 'CORELANE_USER_NODE_OPTIONS';

/** watchdog.stallTimeout; its default gives way to a short timeouts.render, so that the two never contradict. */
export function stallTimeoutMs({ watchdog, timeouts }: RenderServiceSpec): number {
  if (watchdog.stallTimeout !== undefined) return durationMs(watchdog.stallTimeout);
  return Math.max(STALL_TIMEOUT_MIN_MS, Math.min(durationMs(STALL_TIMEOUT), durationMs(timeouts.render)));
}

/** The volume with the worker runtime. */
export function runtimeVolumes(spec: RenderServiceSpec): V1Volume[] {
  return spec.runtime.instrument ? [{ name: VOLUME, emptyDir: {} }] : [];
}

/** Copies the worker runtime; over what is there when the pod's sandbox was made anew. */
export function runtimeContainers(spec: RenderServiceSpec, { image, pullPolicy }: SidecarImage): V1Container[] {
  if (!spec.runtime.instrument) return [];
  return [
    {
      name: RUNTIME_CONTAINER,
      image,
      ...(pullPolicy && { imagePullPolicy: pullPolicy }),
      args: ['cp', '--recursive', '--remove-destination', '/usr/share/corelane/runtime/.', RUNTIME_MOUNT_PATH],
      resources: { requests: { cpu: '10m', memory: '16Mi' }, limits: { memory: '64Mi' } },
      securityContext: SECURITY_CONTEXT,
      volumeMounts: [{ name: VOLUME, mountPath: RUNTIME_MOUNT_PATH }],
    },
  ];
}

/** Field `volumeMounts` of a worker, if it has any. */
export function runtimeMounts(spec: RenderServiceSpec, template: V1Container): Pick<V1Container, 'volumeMounts'> {
  if (!spec.runtime.instrument) return {};
  const mount = { name: VOLUME, mountPath: RUNTIME_MOUNT_PATH, readOnly: true };
  return { volumeMounts: [...(template.volumeMounts ?? []), mount] };
}

/** The environment of worker number `index` with what the runtime needs. */
export function runtimeEnv(spec: RenderServiceSpec, env: V1EnvVar[], index: number): V1EnvVar[] {
  const user = env.filter(({ name }) => !name.startsWith('CORELANE_'));
  if (!spec.runtime.instrument) return user;
  return [
    ...user.filter(({ name }) => name !== 'NODE_OPTIONS'),
    { name: 'CORELANE_RUNTIME_PORT', value: String(PORTS.firstWorkerRuntime + index) },
    { name: 'CORELANE_STALL_TIMEOUT_MS', value: String(stallTimeoutMs(spec)) },
    ...nodeOptions(user.find(({ name }) => name === 'NODE_OPTIONS')),
  ];
}

/** The runtime's file is loaded first: it keeps the user's own ones out of the supervisor. The user's flags win. */
function nodeOptions(user: V1EnvVar | undefined): V1EnvVar[] {
  if (user?.valueFrom) {
    // Unresolved where an optional key is missing: Node.js would refuse to start with the bare "$(...)".
    if (user.valueFrom.configMapKeyRef?.optional || user.valueFrom.secretKeyRef?.optional) return [user];
    const kept = { name: USER_OPTIONS, valueFrom: user.valueFrom };
    return [kept, { name: 'NODE_OPTIONS', value: `${ENTRY} $(${USER_OPTIONS})` }];
  }
  return [{ name: 'NODE_OPTIONS', value: user?.value ? `${ENTRY} ${user.value}` : ENTRY }];
}
