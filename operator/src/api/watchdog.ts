/** What follows from the watchdog's settings. */
import { durationMs } from './scalars.ts';
import type { RenderServiceSpec } from './spec.ts';

const STALL_TIMEOUT = '10s';
/** Bounds of watchdog.stallTimeout hold for its default as well. */
const STALL_TIMEOUT_MIN_MS = 500;

/** watchdog.stallTimeout in ms; its default gives way to a short timeouts.render, so that the two never contradict. */
export function stallTimeoutMs({ watchdog, timeouts }: RenderServiceSpec): number {
  if (watchdog.stallTimeout !== undefined) return durationMs(watchdog.stallTimeout);
  return Math.max(STALL_TIMEOUT_MIN_MS, Math.min(durationMs(STALL_TIMEOUT), durationMs(timeouts.render)));
}
