/**
 * The settings of a pod that change while it runs, as a file of lines `name=number` (docs/live-settings.md). Everything
 * else is rendered from `withoutLive(spec)`.
 */
import { createHash } from 'node:crypto';
import { drainTimeoutMs } from '../api/drain.ts';
import { CANARY_FILE, LIVE_FILE, SHELL_FILE } from '../api/names.ts';
import { durationMs } from '../api/scalars.ts';
import { beginningOf, concurrencyBounds } from '../api/spec/concurrency.ts';
import type { RenderServiceSpec } from '../api/spec.ts';
import { MADE_BY_CORELANE, text } from './directives.ts';
import { cache } from './model/cache.ts';
import { requestClasses } from './model/classes.ts';
import { priority } from './model/priority.ts';
import { timeouts } from './model/timeouts.ts';
import { headerName, printable, whole, word } from './safe.ts';

/** A pod refuses what is of a later version, and ignores names that it does not know. */
const LIVE_VERSION = 1;

/** The files of the ConfigMap at /etc/corelane-live. */
export interface LiveConfig {
  [LIVE_FILE]: string;
  /** The page of `fallback`, if the spec has it itself. */
  [SHELL_FILE]?: string;
  /** Who is on which side of a canary, if anything says so beside the share. */
  [CANARY_FILE]?: string;
}

/** A revision that gets a share of the requests, as pods are to know it (docs/canary.md). */
export interface LiveCanary {
  revision: string;
  /** The revision that gets all the others. */
  stable: string;
  /** In hundredths of a percent, up to 10,000. */
  share: number;
  /** Seconds since 1970: after that the share is 0 to a pod. 0: it has no end. It is no setting: see `median`. */
  untilSeconds: number;
  /** By whose value a person's side is chosen, instead of by a cookie of ours. */
  key?: CanaryKey;
  /** Requests that are always the canary's. */
  match: CanaryMatch[];
}
export type CanaryKey = { header: string } | { cookie: string };
export type CanaryMatch = ({ header: string } | { cookie: string } | { query: string }) & { value: string };

/** As pods are told; they take nothing for Canary. */
const STICKY_COOKIE = { Off: 0, Canary: undefined, Always: 2 };

/** The live settings of a defaulted spec. */
function liveSettings(spec: RenderServiceSpec): Record<string, number> {
  const { concurrency, pooling, queue, readiness, rollout } = spec;
  const stickyCookie = STICKY_COOKIE[rollout.stickiness.cookie];
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
    ...(spec.cache.enabled && { 'max-ttl-s': Math.ceil(durationMs(spec.cache.maxTtl) / 1_000) }),
    ...(stickyCookie !== undefined && { 'sticky-cookie': stickyCookie }),
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
 * @param median of what the workers of the fleet have found (`concurrency: Auto`), as far as it is known: a new one
 *   begins there. It is no setting, so that no pod is asked whether it has it
 * @param resting the revision whose pods live on without getting requests
 * @param canary the revision that gets a share of the requests, while there is one
 * @throws RangeError when a value cannot stand in them (admission has refused it before)
 */
export function renderLive(
  spec: RenderServiceSpec,
  median?: number,
  resting?: string,
  canary?: LiveCanary,
): LiveConfig {
  const html = spec.fallback?.html;
  const line = ([name, value]: [string, number]) => `${word(name, 'name')}=${whole(value, name)}`;
  const rests = resting === undefined ? {} : { 'resting-revision': Number.parseInt(resting, 16) };
  const lines = Object.entries({ ...liveSettings(spec), ...rests, ...canarySettings(canary) }).map(line);
  const start = beginningOf(spec, median);
  const sides = canary && canaryRules(canary);
  const serial = serialOf([...lines, html ?? '', ...(sides === undefined ? [] : [sides])]);
  return {
    [LIVE_FILE]: text([
      MADE_BY_CORELANE,
      `version=${LIVE_VERSION}`,
      `serial=${serial}`,
      lines,
      start ? [line(['concurrency-start', start])] : [],
      canary ? [line(['canary-until-s', canary.untilSeconds])] : [],
    ]),
    ...(html !== undefined && { [SHELL_FILE]: html }),
    ...(sides !== undefined && { [CANARY_FILE]: sides }),
  };
}

function canarySettings(canary: LiveCanary | undefined): Record<string, number> {
  if (!canary) return {};
  return {
    'canary-revision': Number.parseInt(canary.revision, 16),
    'canary-stable': Number.parseInt(canary.stable, 16),
    'canary-share': canary.share,
  };
}

/** The file of that name; undefined if there is nothing to say. */
function canaryRules({ key, match }: LiveCanary): string | undefined {
  if (!key && match.length === 0) return undefined;
  const named = (rule: CanaryKey | CanaryMatch) => {
    const [what, name] = Object.entries(rule).find(([what]) => what !== 'value') as [string, string];
    return `${what} ${headerName(name, `rollout.canary: ${what}`)}`;
  };
  return text([
    MADE_BY_CORELANE,
    key && `key ${named(key)}`,
    match.map((rule) => `match ${named(rule)} ${printable(rule.value, 'rollout.canary.match: value')}`),
  ]);
}

/** By which pods tell what they have: the same for the same content. */
function serialOf(content: string[]): string {
  return createHash('sha256').update(JSON.stringify(content)).digest('hex').slice(0, 16);
}

/** The serial in a file that `renderLive` has made. */
export function liveSerial({ [LIVE_FILE]: settings }: LiveConfig): string {
  return /^serial=([0-9a-f]+)$/m.exec(settings)?.[1] as string;
}

/** A number in a file that `renderLive` has made; undefined if it does not say. */
export function liveNumber(settings: string | undefined, name: string): number | undefined {
  const [, digits] = new RegExp(`^${name}=([0-9]{1,15})$`, 'm').exec(settings ?? '') ?? [];
  return digits === undefined ? undefined : Number(digits);
}
