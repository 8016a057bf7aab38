/** Who waits how long. Whoever is nearer to the worker gives up first, so that the error says who was late. */
import { handlerMs } from '../../api/handler-timeout.ts';
import { durationMs } from '../../api/scalars.ts';
import type { RenderServiceSpec } from '../../api/spec.ts';
import type { RequestClass } from './classes.ts';

export interface Timeouts {
  clientHeaderMs: number;
  clientBodyMs: number;
  clientSendMs: number;
  clientIdleMs: number;
  /** HAProxy waits this long for a worker that has the request. */
  workerMs: number;
  /** The same for a request that arrives while no worker is up: it waits in the waiting room first. */
  workerAfterWaitingMs: number;
  /** Both for a request that may change something, if they are longer; undefined where every request is a render. */
  handler?: { workerMs: number; workerAfterWaitingMs: number } | undefined;
  /** The first stage of HAProxy waits this long for the second one. */
  lineMs: number;
  /** The stages of the cache wait this long for those behind them. */
  fillMs: number;
  /** HAProxy waits this long for nginx, or for another pod, to take the response. */
  haproxyClientMs: number;
  /** nginx waits this long for HAProxy, between two reads and between two writes. */
  proxyMs: number;
}

/** A render that ends at its limit is still passed on, and the worker runtime can act before HAProxy gives up. */
const RENDER_MARGIN_MS = 1_000;
/** nginx gives up last, so that the error says who was late. */
const PROXY_SLACK_MS = 5_000;
/**
 * nginx reads nothing from HAProxy while its client reads what is on disk: 43 MiB by default, which take more than an
 * hour at 10 kB/s. nginx decides how long a visitor may take.
 */
const HAPROXY_CLIENT_MS = 24 * 3_600_000;

/** The time limits of a request for a defaulted spec. */
export function timeouts(spec: RenderServiceSpec, classes: RequestClass[] = []): Timeouts {
  const queueMs = durationMs(spec.queue.timeout);
  const workerMs = durationMs(spec.timeouts.render) + RENDER_MARGIN_MS;
  // A request can wait twice: for any worker to come up, then for its turn.
  const afterWaitingMs = (ms: number) => 2 * queueMs + ms;
  const workerAfterWaitingMs = afterWaitingMs(workerMs);
  const handler = handlerTimeouts(spec, afterWaitingMs);
  // One limit for all: the stage behind gives up first, by the limit of the request.
  const lineMs = Math.max(workerAfterWaitingMs, handler?.workerAfterWaitingMs ?? 0) + PROXY_SLACK_MS;
  const clientSendMs = durationMs(spec.timeouts.clientSend);
  return {
    clientHeaderMs: durationMs(spec.timeouts.clientHeader),
    clientBodyMs: durationMs(spec.timeouts.clientBody),
    clientSendMs,
    clientIdleMs: durationMs(spec.keepAlive.idleTimeout),
    workerMs,
    workerAfterWaitingMs,
    handler,
    lineMs,
    // The cache is for GET and HEAD.
    fillMs: Math.max(
      workerAfterWaitingMs + PROXY_SLACK_MS,
      ...classes.filter(({ isKept }) => isKept).map(({ idleAfterWaitingMs }) => idleAfterWaitingMs + PROXY_SLACK_MS),
    ),
    haproxyClientMs: HAPROXY_CLIENT_MS,
    // Also bounds the sending: a body beyond HAProxy's buffer (about 230 kB) stays in nginx while its request queues.
    // It may be held for queue.timeout before it waits in the queue.
    proxyMs: Math.max(
      (spec.watchdog.quarantine.enabled ? 2 : 1) * queueMs + lineMs + PROXY_SLACK_MS,
      ...classes.map(({ idleAfterWaitingMs }) => idleAfterWaitingMs + 2 * PROXY_SLACK_MS),
    ),
  };
}

/** The longest time in milliseconds that HAProxy waits for a worker that has a request. */
export function longestMs({ workerMs, handler }: Timeouts): number {
  return Math.max(workerMs, handler?.workerMs ?? 0);
}

function handlerTimeouts(spec: RenderServiceSpec, afterWaitingMs: (ms: number) => number): Timeouts['handler'] {
  const ms = handlerMs(spec);
  if (ms === undefined) return undefined;
  const workerMs = ms + RENDER_MARGIN_MS;
  return { workerMs, workerAfterWaitingMs: afterWaitingMs(workerMs) };
}
