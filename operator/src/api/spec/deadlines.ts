/** Fields on requests that say how long they are waited for. */
import { z } from 'zod';
import { headerName } from '../scalars.ts';

export const deadlines = z
  .strictObject({
    header: headerName(64, 'X-Request-Timeout-Ms')
      .default('X-Request-Timeout-Ms')
      .describe(
        'Header with the milliseconds that its sender waits. X-Envoy-Expected-Rq-Timeout-Ms (Envoy, Istio, Contour) and Prefer: wait=SECONDS (RFC 7240) count, too; the smallest does.',
      ),
  })
  .optional()
  .describe(
    'Whether a request may say how long it is waited for. After that it is answered 504 (X-Corelane-Error: deadline), leaves the queue and is never rendered. `deadlines: {}` is enough. Off unless given (docs/overload.md).',
  );
