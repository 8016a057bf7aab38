/** The burst cache as the scenarios want it. A version without these fields says so (version.ts). */
import type { LaterSpec } from './version.ts';

export const CACHED: LaterSpec = { cache: { enabled: true, ttl: '60s' } };

/** The pods of a fleet render once for all of them. */
export const SHARED: LaterSpec = { cache: { enabled: true, ttl: '60s', shared: { enabled: true } } };
