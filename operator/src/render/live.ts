/**
 * The settings of a pod that change while it runs, as a file of lines `name=number` (docs/live-settings.md). Everything
 * else is rendered from `withoutLive(spec)`.
 */
import { createHash } from 'node:crypto';
import { drainTimeoutMs } from '../api/drain.ts';
import { LIVE_FILE, SHELL_FILE } from '../api/names.ts';
import { durationMs } from '../api/scalars.ts';
import { concurrencyBounds } from '../api/spec/concurrency.ts';
import type { RenderServiceSpec } from '../api/spec.ts';
import { MADE_BY_CORELANE, text } from './directives.ts';
import { cache } from './model/cache.ts';
import { requestClasses } from './model/classes.ts';
import { priority } from './model/priority.ts';
import { timeouts } from './model/timeouts.ts';
import { whole, word } from './safe.ts';

/** A pod refuses what is of a later version, and ignores names that it does not know. */
const LIVE_VERSION = 1;

/** The files of the ConfigMap at /etc/corelane-live. */
export interface LiveConfig {
  [LIVE_FILE]: string;
  /** The page of `fallback`, if the spec has it itself. */
  [SHELL_FILE]?: string;
}

/** The live settings of a defaulted spec. */
function liveSettings(spec: RenderServiceSpec): Record<string, number> {
  const { concurrency, pooling, queue, readiness } = spec;
  const bounds = concurrencyBounds(spec);
  const { workerMs, workerAfterWaitingMs } = timeouts(spec, requestClasses(spec));
  return {
    'queue-length-max': queue.maxLength,
    'asks-max': pooling.maxAsks,
    'across-revisions': pooling.acrossRevisions ? 1 : 0,
    shed: readiness.shedWhenFull ? 1 : 0,
    // 0: each worker's supervisor finds it within the bounds.
    concurrency: concurrency === 'Auto' ? 0 : concurrency,
    'concurrency-min': bounds.min,
    'concurrency-max': bounds.max,
    'render-ms': durationMs(spec.timeouts.render),
    'worker-ms': workerMs,
    'worker-after-waiting-ms': workerAfterWaitingMs,
    'drain-timeout-ms': drainTimeoutMs(spec),
    'stale-while-revalidate-s': Math.floor(durationMs(spec.cache.staleWhileRevalidate) / 1_000),
    'stale-if-error-s': Math.floor(durationMs(spec.cache.staleIfError) / 1_000),
    ...(spec.limits.perClient.requests && { 'per-client': spec.limits.perClient.requests }),
    ...Object.fromEntries((cache(spec)?.ttl ?? []).map(({ rule, seconds }) => [`ttl-${rule}-s`, seconds])),
    ...Object.fromEntries(
      (priority(spec) ?? []).flatMap(({ name, delayMs, queueLengthMax, retryAfterSeconds }) => [
        [`priority-${name}-delay-ms`, delayMs],
        [`priority-${name}-length-max`, queueLengthMax],
        [`priority-${name}-retry-s`, retryAfterSeconds],
      ]),
    ),
  };
}

/**
 * The files.
 * @throws RangeError when a value cannot stand in them (admission has refused it before)
 */
export function renderLive(spec: RenderServiceSpec): LiveConfig {
  const html = spec.fallback?.html;
  const lines = Object.entries(liveSettings(spec)).map(
    ([name, value]) => `${word(name, 'name')}=${whole(value, name)}`,
  );
  const serial = serialOf([...lines, html ?? '']);
  return {
    [LIVE_FILE]: text([MADE_BY_CORELANE, `version=${LIVE_VERSION}`, `serial=${serial}`, lines]),
    ...(html !== undefined && { [SHELL_FILE]: html }),
  };
}

/** By which pods tell what they have: the same for the same content. */
function serialOf(content: string[]): string {
  return createHash('sha256').update(JSON.stringify(content)).digest('hex').slice(0, 16);
}

/** The serial in a file that `renderLive` has made. */
export function liveSerial({ [LIVE_FILE]: settings }: LiveConfig): string {
  return /^serial=([0-9a-f]+)$/m.exec(settings)?.[1] as string;
}
