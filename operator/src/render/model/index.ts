/**
 * Every decision about the data plane of one pod, as numbers and yes or no. haproxy/ and nginx/ only write it down.
 * Times are milliseconds, sizes are bytes; the unit is the end of the name.
 */

import { deploymentIdOf } from '../../api/deployment-id.ts';
import { drainAcceptMsMax, drainTimeoutMs } from '../../api/drain.ts';
import { PORTS, workerName } from '../../api/names.ts';
import { durationMs, sizeBytes } from '../../api/scalars.ts';
import { concurrencyBounds } from '../../api/spec/concurrency.ts';
import type { RenderServiceSpec } from '../../api/spec.ts';
import { type AccessLog, accessLog } from './access-log.ts';
import { type Assets, assets } from './assets.ts';
import { type Budget, budget, RESPONSE_BUFFER_BYTES, responseBytes } from './budget.ts';
import { type Cache, cache } from './cache.ts';
import { classConcurrency, type RequestClass, requestClasses } from './classes.ts';
import { type Compression, compression } from './compression.ts';
import { type Deadlines, deadlines } from './deadlines.ts';
import { type Doors, doors } from './doors.ts';
import { type Fallback, fallback } from './fallback.ts';
import { type Heads, heads } from './heads.ts';
import { networks } from './networks.ts';
import { type OwnSite, ownSite } from './own-site.ts';
import { type Pooling, pooling } from './pooling.ts';
import { looksAtVisitors, type PriorityClass, priority } from './priority.ts';
import { type Quarantine, quarantine } from './quarantine.ts';
import { type Replay, replay } from './replay.ts';
import { type Streaming, streaming } from './streaming.ts';
import { type Timeouts, timeouts } from './timeouts.ts';
import { type Tracing, tracing } from './tracing.ts';

/** One worker as HAProxy sees it. */
export interface WorkerModel {
  name: string;
  port: number;
  /** Port of 127.0.0.1 on which the worker's supervisor answers, if workers are supervised. */
  runtimePort: number;
}

export interface DataPlaneModel {
  workers: WorkerModel[];
  balance: RenderServiceSpec['balance'];
  /**
   * Tries to connect to a worker, so that the waiting room's turn comes when all have refused and HAProxy knows none
   * of it.
   */
  connectRetries: number;
  /**
   * Whether each worker is meant to have a supervisor. It says whether the worker is there, why it died, and which
   * requests it had begun.
   */
  isSupervised: boolean;
  /** Port of the first worker's supervisor; 0 where Lua has none to ask. */
  firstRuntimePort: number;
  /** Requests of a worker that Lua remembers: some that have ended may still be asked about. */
  rememberedMax: number;
  queue: { timeoutMs: number };
  timeouts: Timeouts;
  /** Which requests a second worker gets when the first one has died with them. */
  replay: Replay;
  /** Undefined if no URL is ever kept away from the workers. */
  quarantine?: Quarantine;
  /** Whether it matters who asks: a crawler, a browser that looks ahead. */
  looksAtVisitors: boolean;
  /** Undefined if browsers get what programs get. */
  fallback?: Fallback;
  /** Classes of requests that others go before, those that wait the longest first; undefined if all are alike. */
  priority?: PriorityClass[];
  /** Requests that are no renders; undefined if all are. */
  classes?: RequestClass[];
  /** Places for what renders send to their own site; undefined without the worker runtime. */
  ownSite?: OwnSite;
  /** Undefined if no request says how long it is waited for. */
  deadlines?: Deadlines;
  body: { sizeBytesMax: number; memoryBytes: number };
  /** Of requests and responses. */
  heads: Heads;
  response: { bufferBytes: number; buffers: number; busyBytes: number; fileBytesMax: number };
  streaming: Streaming;
  /** Undefined if nginx compresses nothing. */
  compression?: Compression;
  /** Address ranges of proxies in front. */
  trusted: string[];
  /** Whether each connection begins with a PROXY header. */
  proxyProtocol: boolean;
  drain: { delayMs: number; acceptMsMax: number; timeoutMs: number };
  /** Undefined if pods do not even look at each other. */
  pooling?: Pooling;
  /** What this revision calls itself in requests; undefined: by its own name. */
  deployment?: string;
  pingPath: string;
  /** Undefined if all requests go to workers. */
  assets?: Assets;
  /** Undefined if nothing is kept. */
  cache?: Cache;
  accessLog: AccessLog;
  /** Undefined if no trace begins in the pod. */
  tracing?: Tracing;
  /** Whether a request may become a WebSocket. */
  webSockets: boolean;
  /** Seconds that a refused client is asked to wait. */
  retryAfterSeconds: number;
  ports: {
    http: number;
    health: number;
    stats: number;
    peers: number;
    figures: number;
    spans: number;
  };
  limits: Budget;
  /** Whether one client may have only so many requests at a time. */
  limitsClients: boolean;
  doors: Doors;
}

const RETRY_AFTER_SECONDS = 1;
const REMEMBERED_MIN = 256;
/** Beside one for each worker: as many as HAProxy has by default. */
const RETRIES_MORE = 3;

/** What the proxies of one pod do for a defaulted spec without its live settings (api/live.ts). */
export function dataPlaneModel(spec: RenderServiceSpec): DataPlaneModel {
  const limits = budget(spec);
  const classes = requestClasses(spec);
  const limitsOfTime = timeouts(spec, classes);
  const isSupervised = spec.runtime.instrument;
  const concurrency = concurrencyBounds(spec);
  const pool = pooling(spec, limits);
  const served = assets(spec, pool);
  const kept = cache(spec);
  return {
    workers: workers(spec),
    balance: spec.concurrency === 'Auto' ? 'leastconn' : spec.balance,
    connectRetries: spec.workersPerPod + RETRIES_MORE,
    isSupervised,
    firstRuntimePort: isSupervised ? PORTS.firstWorkerRuntime : 0,
    rememberedMax: Math.max(REMEMBERED_MIN, 2 * (concurrency.max + classConcurrency(spec) + limits.withoutSlot)),
    queue: { timeoutMs: durationMs(spec.queue.timeout) },
    timeouts: limitsOfTime,
    replay: replay(spec),
    quarantine: quarantine(spec),
    looksAtVisitors: looksAtVisitors(spec),
    fallback: fallback(spec),
    priority: priority(spec),
    classes,
    ownSite: ownSite(spec, limitsOfTime, limits),
    deadlines: deadlines(spec, limitsOfTime),
    body: {
      sizeBytesMax: sizeBytes(spec.buffering.request.maxSize),
      memoryBytes: sizeBytes(spec.buffering.request.memory),
    },
    heads: heads(spec),
    response: response(spec, limits),
    streaming: streaming(spec),
    compression: compression(spec),
    trusted: networks(spec.forwarded.trust),
    proxyProtocol: spec.forwarded.proxyProtocol,
    drain: {
      delayMs: durationMs(spec.drain.delay),
      acceptMsMax: drainAcceptMsMax(spec.drain),
      timeoutMs: drainTimeoutMs(spec),
    },
    pooling: pool,
    deployment: deploymentIdOf(spec),
    pingPath: spec.ping.path,
    assets: served,
    cache: kept,
    accessLog: accessLog(spec),
    tracing: tracing(spec),
    webSockets: spec.webSockets.enabled,
    retryAfterSeconds: RETRY_AFTER_SECONDS,
    ports: {
      ...{ http: PORTS.http, health: PORTS.health, stats: PORTS.stats, peers: PORTS.peers },
      ...{ figures: PORTS.figures, spans: PORTS.spans },
    },
    limits,
    limitsClients: limits.perClient !== undefined,
    doors: doors(spec),
  };
}

function workers({ workersPerPod }: RenderServiceSpec): WorkerModel[] {
  return Array.from({ length: workersPerPod }, (_unused, index) => ({
    name: workerName(index),
    port: PORTS.firstWorker + index,
    runtimePort: PORTS.firstWorkerRuntime + index,
  }));
}

function response(spec: RenderServiceSpec, { responseFileBytes }: Budget): DataPlaneModel['response'] {
  const head = heads(spec);
  return {
    bufferBytes: RESPONSE_BUFFER_BYTES,
    buffers: Math.floor((responseBytes(spec, head) - head.bufferBytes) / RESPONSE_BUFFER_BYTES),
    busyBytes: Math.max(head.bufferBytes, 2 * RESPONSE_BUFFER_BYTES),
    fileBytesMax: responseFileBytes,
  };
}
