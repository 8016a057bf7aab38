/** What nginx logs of requests. */
import type { RenderServiceSpec } from '../../api/spec.ts';

export interface AccessLog {
  /** Whether requests have lines; the rest of this holds for the error log in any case. */
  hasLines: boolean;
  /** Requests that have a line whatever becomes of them; undefined if all have. */
  sampledPercent?: number;
  query: 'names' | 'full' | 'none';
  client: 'full' | 'masked' | 'none';
}

/** The log of a defaulted spec. */
export function accessLog({ accessLog }: RenderServiceSpec): AccessLog {
  const { enabled, samplingPercent, query, clientAddress } = accessLog;
  return {
    hasLines: enabled,
    ...(samplingPercent < 100 && { sampledPercent: samplingPercent }),
    query: query.toLowerCase() as Lowercase<typeof query>,
    client: clientAddress.toLowerCase() as Lowercase<typeof clientAddress>,
  };
}
