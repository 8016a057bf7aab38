/** Classes of requests that others go before. */
import { byDelay } from '../../api/live.ts';
import { priorityOf } from '../../api/presets.ts';
import { durationMs } from '../../api/scalars.ts';
import type { RenderServiceSpec } from '../../api/spec.ts';

type ClassSpec = NonNullable<RenderServiceSpec['priority']>['classes'][number];

export interface PriorityClass {
  name: string;
  /** It waits as if it had come so much later. */
  delayMs: number;
  /** One that comes is refused where so many wait. */
  queueLengthMax: number;
  /** Seconds that one that is refused is asked to wait: people have gone first by then. */
  retryAfterSeconds: number;
  matches: ClassSpec['match'];
}

/**
 * The classes of a defaulted spec, those that wait the longest first; undefined if all are alike. Whoever is in several
 * is in the first of them.
 */
export function priority(spec: RenderServiceSpec): PriorityClass[] | undefined {
  const classes = priorityOf(spec)?.classes ?? [];
  if (classes.length === 0) return undefined;
  return byDelay(classes).map(({ name, delay, match, maxQueue }) => ({
    name,
    delayMs: durationMs(delay),
    queueLengthMax: Math.floor((Number.parseInt(maxQueue, 10) * spec.queue.maxLength) / 100),
    retryAfterSeconds: Math.max(1, Math.ceil(durationMs(delay) / 1000)),
    matches: match,
  }));
}

/** Whether it matters who asks: a crawler, a browser that looks ahead. */
export function looksAtVisitors(spec: RenderServiceSpec): boolean {
  const matches = priorityOf(spec)?.classes.flatMap(({ match }) => match) ?? [];
  return spec.fallback !== undefined || matches.some(({ visitor }) => visitor !== undefined);
}
