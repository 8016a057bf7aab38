/** When requests for URLs that get workers stuck are kept away from these. */
import { durationMs } from '../../api/scalars.ts';
import type { RenderServiceSpec } from '../../api/spec.ts';
import { stallTimeoutMs } from '../../api/watchdog.ts';

export interface Quarantine {
  killsMin: number;
  windowMs: number;
  durationMs: number;
  stallMs: number;
  /** URLs whose requests are counted at a time. */
  urlsMax: number;
  /** Seconds that the client of such a URL is asked to wait. */
  retryAfterSeconds: number;
}

/** Each has some 250 bytes in two tables. */
const URLS_MAX = 20_000;
const RETRY_AFTER_SECONDS = 30;

/**
 * The quarantine of a defaulted spec; undefined if it is switched off, or nobody would notice that a worker is stuck.
 */
export function quarantine(spec: RenderServiceSpec): Quarantine | undefined {
  const { enabled, kills, window, duration } = spec.watchdog.quarantine;
  if (!enabled || !spec.runtime.instrument) return undefined;
  return {
    killsMin: kills,
    windowMs: durationMs(window),
    durationMs: durationMs(duration),
    stallMs: stallTimeoutMs(spec),
    urlsMax: URLS_MAX,
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  };
}
