/**
 * Which fields reach pods that run, and what the rest of a pod is made from: a spec in which all of these have one
 * value whatever the user has chosen, or one that leaves room for what he may choose next. So no change of a live field
 * can change the pod template.
 */
import { durationMs } from './scalars.ts';
import { RANGE_MAX } from './spec/concurrency.ts';
import { QUEUE_LENGTH_MAX } from './spec/queue.ts';
import { PER_CLIENT_MAX } from './spec/requests.ts';
import type { RenderServiceSpec } from './spec.ts';

/** How a change of a field gets to where it counts. */
export type Reach =
  | 'live' // into pods that run, within seconds
  | 'rolling' // by other pods
  | 'operator'; // it is not about the inside of pods

/**
 * Every field that is not `rolling`, with a remark on when it is so all the same. What is below a field is as the field
 * is. A test holds this table against the plan.
 */
export const REACH: Record<string, [reach: Reach, but?: string]> = {
  replicas: ['operator'],
  scaling: ['operator'],
  service: ['operator'],
  rollout: ['operator'],
  'rollout.stickiness': ['live'],
  disruptionBudget: ['operator'],
  networkPolicy: ['operator'],
  objectives: ['operator'],
  concurrency: ['live', 'from a number to Auto or back, past 64 or 256, or with webSockets.enabled it is rolling'],
  concurrencyRange: ['live'],
  'queue.maxLength': ['live'],
  'timeouts.render': ['live', 'past 10s, 1m or 10m, and below 10s, it is rolling'],
  'limits.perClient.requests': ['live', 'rolling where there was none'],
  'pooling.acrossRevisions': ['live'],
  'pooling.maxAsks': ['live'],
  'readiness.shedWhenFull': ['live', 'rolling with pooling.enabled: false'],
  'priority.classes[].delay': ['live', 'rolling where the order of the classes changes'],
  'priority.classes[].maxQueue': ['live', 'rolling where the order of the classes changes'],
  'cache.maxTtl': ['live'],
  'cache.staleWhileRevalidate': ['live'],
  'cache.staleIfError': ['live'],
  'cache.ttl[].value': ['live', 'rolling to and from 0s'],
  'fallback.html': ['live', 'rolling where there was none'],
};

/** How a change of the field at `path` (`queue.maxLength`) reaches pods. */
export function reachOf(path: string): [reach: Reach, but?: string] {
  for (let at = path; at !== ''; at = at.slice(0, Math.max(0, at.lastIndexOf('.')))) {
    const found = REACH[at];
    if (found) return found;
  }
  return ['rolling'];
}

/** nginx and kubelet wait for at least as long as HAProxy may, and cannot be told otherwise while they run. */
const RENDER_STEPS = ['1m', '10m', '1h'];
/** Below this other times follow from it (watchdog.stallTimeout). */
const RENDER_STEPPED_MS_MIN = 10_000;
/** What HAProxy's Lua remembers of a worker's requests has room for so many. */
const CONCURRENCY_STEPS = [64, 256, 1_000];
/** Any would do: the real one is a live setting. */
const ANY = { asks: 1, maxTtl: '60s', stale: '0s', ttl: '1s', maxQueue: '0%', html: '' };

/** The spec that everything in a pod but its live settings is made from. */
export function withoutLive(spec: RenderServiceSpec): RenderServiceSpec {
  const { cache, fallback, limits, pooling, priority, queue, readiness, timeouts } = spec;
  return {
    ...spec,
    ...concurrencyWithRoom(spec),
    queue: { ...queue, maxLength: QUEUE_LENGTH_MAX },
    limits: { perClient: limits.perClient.requests ? { requests: PER_CLIENT_MAX } : {} },
    timeouts: { ...timeouts, render: stepped(timeouts.render) },
    pooling: { ...pooling, maxAsks: ANY.asks, acrossRevisions: false },
    // The others are looked at in any case where pods share their work.
    readiness: { shedWhenFull: readiness.shedWhenFull || pooling.enabled },
    priority: priority && { classes: inOrder(priority.classes) },
    cache: {
      ...cache,
      maxTtl: ANY.maxTtl,
      staleWhileRevalidate: ANY.stale,
      staleIfError: ANY.stale,
      ttl: cache.ttl.map(({ pathPrefix, value }) => ({ pathPrefix, value: durationMs(value) > 0 ? ANY.ttl : value })),
    },
    fallback: fallback && { ...fallback, ...(fallback.html !== undefined && { html: ANY.html }) },
  };
}

/** WebSockets have a part of the places, and nginx counts them. */
function concurrencyWithRoom({
  concurrency,
  concurrencyRange,
  webSockets,
}: RenderServiceSpec): Pick<RenderServiceSpec, 'concurrency' | 'concurrencyRange'> {
  if (webSockets.enabled) return { concurrency, concurrencyRange };
  if (concurrency === 'Auto') return { concurrency, concurrencyRange: { min: 1, max: RANGE_MAX } };
  return { concurrency: CONCURRENCY_STEPS.find((step) => concurrency <= step) ?? concurrency };
}

function stepped(render: string): string {
  const renderMs = durationMs(render);
  if (renderMs < RENDER_STEPPED_MS_MIN) return render;
  return RENDER_STEPS.find((step) => renderMs <= durationMs(step)) ?? render;
}

type PriorityClass = NonNullable<RenderServiceSpec['priority']>['classes'][number];

/** Of several classes that a request is in one counts, by the order of these: the one that waits the longest. */
function inOrder(classes: PriorityClass[]): PriorityClass[] {
  return byDelay(classes).map((one, index) => ({
    ...one,
    delay: `${classes.length - index}s`,
    maxQueue: ANY.maxQueue,
  }));
}

/** Classes, those that wait the longest first. */
export function byDelay(classes: PriorityClass[]): PriorityClass[] {
  const percent = ({ maxQueue }: PriorityClass) => Number.parseInt(maxQueue, 10);
  return classes.toSorted(
    (one, other) => durationMs(other.delay) - durationMs(one.delay) || percent(one) - percent(other),
  );
}
