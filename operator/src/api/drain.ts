/** How long a pod that is to stop may go on accepting, and then take for what it has accepted. */
import { handlerMs } from './handler-timeout.ts';
import { durationMs } from './scalars.ts';
import type { RenderServiceSpec } from './spec.ts';

/**
 * kubeadm lets CoreDNS' answers live that long: the last of the usual ways of knowing a pod's address to be forgotten.
 */
const LONGER_MS_MAX = 30_000;
/** Who sets a short delay wants pods to be gone soon. */
const LONGER_DELAYS_MAX = 10;
const TIMEOUT_MS_DEFAULT = 60_000;

/**
 * The longest time in milliseconds that a stopping pod accepts connections: `drain.delay`, and longer as long as
 * requests come.
 * @param drain of a defaulted spec; a delay of 0 is never made longer
 */
export function drainAcceptMsMax({ delay }: Pick<RenderServiceSpec['drain'], 'delay'>): number {
  const delayMs = durationMs(delay);
  return delayMs + Math.min(LONGER_DELAYS_MAX * delayMs, LONGER_MS_MAX);
}

/**
 * The longest time in milliseconds that a request may wait in the queue and be rendered: a drain that is shorter cuts
 * it. A drain may be shorter than what a handler takes, if somebody says so.
 */
export function acceptedMsMax({ queue, timeouts }: Pick<RenderServiceSpec, 'queue' | 'timeouts'>): number {
  return durationMs(queue.timeout) + durationMs(timeouts.render);
}

/** `drain.timeout` in milliseconds; its default is never too short for what the pod may have accepted. */
export function drainTimeoutMs(spec: RenderServiceSpec): number {
  if (spec.drain.timeout !== undefined) return durationMs(spec.drain.timeout);
  const handledMsMax = durationMs(spec.queue.timeout) + (handlerMs(spec) ?? 0);
  return Math.max(TIMEOUT_MS_DEFAULT, acceptedMsMax(spec), handledMsMax);
}
