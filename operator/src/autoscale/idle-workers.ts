/**
 * Pods whose workers are taken while their event loops have nothing to do: renders wait for something else, and the
 * number of requests that a worker gets at a time (`concurrency`) limits the service. No other figure shows that: CPU
 * is low, and more pods help only because they bring places.
 */

/** Seconds that event loops had work, and had none, since their processes began. */
export interface EventLoops {
  activeS: number;
  idleS: number;
}

/**
 * A pod at a moment at which it was full: every worker had all the requests that it may have, and more waited, or had
 * been refused since the look before.
 */
export interface FullLook {
  atMs: number;
  /** Of all workers together; undefined where the pod has not said it. */
  loops: EventLoops | undefined;
}

/** What is remembered of a pod that was full at the last look. A pod that was not full has no watch. */
export interface Watch {
  last: FullLook;
  /** Since when its workers have been taken and idle at every look. */
  sinceMs?: number;
}

/** From here on renders wait for as long as they compute: twice as many at a time would do nearly twice as much. */
export const IDLE_SHARE_MIN = 0.5;

/**
 * The watch after one more look.
 * @param before undefined if the pod was not full at the look before
 */
export function watched(before: Watch | undefined, look: FullLook): Watch {
  const isIdle = before !== undefined && idleShare(before.last.loops, look.loops) >= IDLE_SHARE_MIN;
  return { last: look, ...(isIdle && { sinceMs: before.sinceMs ?? before.last.atMs }) };
}

/** Whether the workers have been taken and idle for so long. */
export function areIdle(watch: Watch | undefined, forMs: number): boolean {
  return watch?.sinceMs !== undefined && watch.last.atMs - watch.sinceMs >= forMs;
}

/** Of the time between two looks; NaN, which no comparison lets through, where it is not known or has begun anew. */
function idleShare(before: EventLoops | undefined, now: EventLoops | undefined): number {
  if (!before || !now) return Number.NaN;
  const [activeS, idleS] = [now.activeS - before.activeS, now.idleS - before.idleS];
  return activeS >= 0 && idleS >= 0 ? idleS / (activeS + idleS) : Number.NaN;
}
