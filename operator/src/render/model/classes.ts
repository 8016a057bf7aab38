/** Requests that are no renders: they have places of their own in the workers. */
import { classesOf } from '../../api/presets.ts';
import { durationMs } from '../../api/scalars.ts';
import type { RenderServiceSpec } from '../../api/spec.ts';

type ClassSpec = NonNullable<RenderServiceSpec['classes']>[number];

export interface RequestClass {
  name: string;
  /** Requests that one worker gets at a time, and all of a pod. */
  concurrency: number;
  places: number;
  queue: { lengthMax: number; timeoutMs: number };
  /** HAProxy waits this long for the worker, and for one that came while no worker was up. */
  idleMs: number;
  idleAfterWaitingMs: number;
  /** What has not ended so long after a draining pod accepts no more is cut. */
  drainMs: number;
  matches: ClassSpec['match'];
  /** Whether its responses may be given to others. */
  isKept: boolean;
  /** Whether a second worker may get a request that the first one has begun. */
  isReplayed: boolean;
}

/** The classes of a defaulted spec, in the order in which they count; undefined if all requests are renders. */
export function requestClasses(spec: RenderServiceSpec): RequestClass[] | undefined {
  const { cache, workersPerPod } = spec;
  const classes = classesOf(spec);
  if (classes.length === 0) return undefined;
  return classes.map(({ name, cache: isKept, concurrency, match, queue, replay: isReplayed, timeouts }) => {
    const [timeoutMs, idleMs] = [durationMs(queue.timeout), durationMs(timeouts.idle)];
    return {
      name,
      concurrency,
      places: workersPerPod * concurrency,
      queue: { lengthMax: queue.maxLength, timeoutMs },
      idleMs,
      // It can wait twice: for any worker to come up, then for its turn.
      idleAfterWaitingMs: 2 * timeoutMs + idleMs,
      drainMs: durationMs(timeouts.drain),
      matches: match,
      isKept: cache.enabled && isKept && isReplayed,
      isReplayed,
    };
  });
}

/** Requests of all classes that one worker gets at a time. */
export function classConcurrency(spec: RenderServiceSpec): number {
  return classesOf(spec).reduce((sum, { concurrency }) => sum + concurrency, 0);
}
