/** Which requests have `timeouts.handler` for their response instead of `timeouts.render`. */
import { durationMs } from './scalars.ts';
import type { RenderServiceSpec } from './spec.ts';

/**
 * Safe methods (RFC 9110) ask for nothing to be changed, so such a request is a render: one that is killed can be asked
 * for again. TRACE is safe too, but nginx refuses it. The worker runtime has the same list (concurrency-limiter.cjs).
 */
export const SAFE_METHODS = ['GET', 'HEAD', 'OPTIONS'];

/** `timeouts.handler` in milliseconds; undefined where a request of any method is a render (`replay: Always`). */
export function handlerMs({ replay, timeouts }: Pick<RenderServiceSpec, 'replay' | 'timeouts'>): number | undefined {
  return replay === 'Always' ? undefined : durationMs(timeouts.handler);
}
