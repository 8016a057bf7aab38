/**
 * The preStop hook by which containers outlive the drain of their pod: kubelet sends SIGTERM when the hook has ended.
 * A program that looks at a file, and no request: a service mesh may refuse what kubelet asks a pod. ADR 67.
 */
import type { V1Container } from '@kubernetes/client-node';
import { HOOK_MOUNT_PATH, RUNTIME_MOUNT_PATH, VOLUME_PREFIX, WAIT_FOR_DRAIN } from '../api/names.ts';

/** The proxies write to it. */
export const DRAIN_VOLUME = `${VOLUME_PREFIX}drain`;
export const RUNTIME_VOLUME = `${VOLUME_PREFIX}runtime`;
/** The worker runtime, and static programs that run in every image. */
export const RUNTIME_MOUNT = { name: RUNTIME_VOLUME, mountPath: RUNTIME_MOUNT_PATH, readOnly: true };
/** Read-only: no container ends the drain for another one, or puts another program in the place of the hook. */
const MOUNTS = [RUNTIME_MOUNT, { name: DRAIN_VOLUME, mountPath: HOOK_MOUNT_PATH, readOnly: true }];

/** A container with the hook; as it is if it has a hook of its own. */
export function withDrainHook(container: V1Container): V1Container {
  const { lifecycle, volumeMounts } = container;
  if (lifecycle?.preStop) return container;
  return {
    ...container,
    volumeMounts: [...(volumeMounts ?? []), ...MOUNTS],
    lifecycle: { ...lifecycle, preStop: { exec: { command: WAIT_FOR_DRAIN } } },
  };
}
