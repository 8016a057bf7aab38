/** The burst cache as the scenarios want it: pages say themselves how long. A version without it says so (version.ts). */
import { type LaterSpec, laterSpec, unknownFields } from './version.ts';

export const CACHED = laterSpec({ cache: { enabled: true } });

/** The pods of a fleet render once for all of them. */
const SHARED = laterSpec({ cache: { enabled: true, shared: { enabled: true } } });

/** What there is of both for a fleet, and what is missing. */
export function fleetSpec(): { spec: LaterSpec; missing: string[] } {
  const missing = unknownFields(SHARED);
  return { spec: missing.length === 0 ? SHARED : CACHED, missing };
}
