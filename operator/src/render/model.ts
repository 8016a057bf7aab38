/**
 * Every decision about the data plane of one pod, as numbers. The renderers only write it down.
 * Times are milliseconds, sizes are bytes; the unit is the end of the name.
 */
import { drainAcceptMsMax, drainTimeoutMs } from '../api/drain.ts';
import { PORTS, workerName } from '../api/names.ts';
import { durationMs, sizeBytes } from '../api/scalars.ts';
import type { RenderServiceSpec } from '../api/spec.ts';
import { stallTimeoutMs } from '../api/watchdog.ts';
import { type Budget, budget } from './budget.ts';

/** One worker as HAProxy sees it. */
export interface WorkerModel {
  name: string;
  port: number;
  /** Port of 127.0.0.1 on which the worker's supervisor answers, if there is meant to be one. */
  runtimePort?: number;
}

export interface DataPlaneModel {
  workers: WorkerModel[];
  /** Requests that one worker gets at a time. */
  concurrency: number;
  balance: RenderServiceSpec['balance'];
  queue: { lengthMax: number; timeoutMs: number };
  timeouts: {
    clientHeaderMs: number;
    clientBodyMs: number;
    clientSendMs: number;
    clientIdleMs: number;
    /** HAProxy waits this long for a worker that has the request. */
    workerMs: number;
    /** The same for a request that arrives while no worker is up: it waits in the waiting room first. */
    workerAfterWaitingMs: number;
    /** The first stage of HAProxy waits this long for the second one. */
    lineMs: number;
    /** HAProxy waits this long for nginx to take the response. */
    haproxyClientMs: number;
    /** nginx waits this long for HAProxy, between two reads and between two writes. */
    proxyMs: number;
  };
  /** Which requests a second worker gets when the first one has died with them. */
  replay: { methods: string[]; otherMethods: boolean };
  /** Requests for URLs that get workers stuck are kept away from these, unless that is switched off or nobody notices it. */
  quarantine?: { killsMin: number; windowMs: number; durationMs: number; stallMs: number };
  body: { sizeBytesMax: number; memoryBytes: number };
  response: { bufferBytes: number; buffers: number; busyBytes: number; fileBytesMax: number };
  /** Address ranges of proxies in front. */
  trusted: string[];
  drain: { delayMs: number; acceptMsMax: number; timeoutMs: number };
  /** How pods help each other, unless they do not even look at each other. */
  pooling?: {
    /** Peers that a request without a free slot asks at once. */
    asksMax: number;
    /** Peers that a pod knows. */
    peersMax: number;
    /** Requests that peers may have of this pod at a time; 0: none is handed over. */
    borrowedMax: number;
    /** Whether a pod of another revision may be asked. */
    acrossRevisions: boolean;
    /** Whether a pod with a full queue leaves the Service while others have room. */
    shed: boolean;
    /** How long the key of before counts when there is another one. */
    keyOverlapMs: number;
  };
  pingPath: string;
  /** Whether a request may become a WebSocket. */
  webSockets: boolean;
  /** Seconds that a refused client is asked to wait. */
  retryAfterSeconds: number;
  ports: { http: number; health: number; stats: number; peers: number };
  limits: Budget;
  /** Connections to the peers' entrance, and of one address among those. */
  peers: { connectionsMax: number; perSourceMax: number };
  doors: {
    health: Door;
    stats: Door;
    /** Preparations for a stop that may wait at a time: kubelet's hooks, and those of anybody else. */
    waitersMax: number;
    strangerWaitersMax: number;
    /** Pages with all figures that one client, and all together, may have in so many seconds. */
    wholePages: { eachMax: number; allMax: number; seconds: number };
  };
}

/** Limits of a port that is not for clients. Strangers are all that do not come from the pod's own node. */
interface Door {
  /** The next one waits in the kernel's queue. */
  connectionsMax: number;
  perSecondMax: number;
  strangers: { eachMax: number; eachPerSecondMax: number; allMax: number };
}

/** A render that ends at its limit is still passed on, and the worker runtime can act before HAProxy gives up. */
const RENDER_MARGIN_MS = 1_000;
/** nginx gives up last, so that the error says who was late. */
const PROXY_SLACK_MS = 5_000;
/** HAProxy's buffer is 16 KiB, so no response header is larger; nginx answers 502 if its own is smaller. */
const RESPONSE_BUFFER_BYTES = 16 * 1024;
/** nginx wants the part that is busy with sending (two buffers) to be less than all but one. */
const RESPONSE_BUFFERS_MIN = 4;
/** A client that sticks to one pod can keep this many workers of others busy. Each is a server of HAProxy (some kB). */
const BORROWED_MAX = 32;

/** kubelet writes another key to all pods within two minutes; who has stolen the old one has it for so long. */
const KEY_OVERLAP_MS = 10 * 60_000;

/** Of the peers' entrance, so that requests at nginx do not notice strangers there. A fleet's questions take some hundred. */
const PEERS_CONNECTIONS_MIN = 1_024;
const PEERS_CONNECTIONS_MAX = 4_096;
/** And part of all that HAProxy has memory for: the rest is for nginx' requests, each of which takes up to three. */
const PEERS_CONNECTIONS_SHARE = 1 / 3;
/** Connections that a peer has open for questions, at most. */
const QUESTION_CONNECTIONS_MAX = 64;

/** A safe method (RFC 9110) asks for nothing to be changed. TRACE is one too, but nginx refuses it. */
const REPLAY: Record<RenderServiceSpec['replay'], DataPlaneModel['replay']> = {
  Safe: { methods: ['GET', 'HEAD', 'OPTIONS'], otherMethods: false },
  Always: { methods: [], otherMethods: true },
  Never: { methods: [], otherMethods: false },
};

/**
 * 8998. The node's connections wait for each other, and each for two seconds at most: 5,000 idle ones hold up a probe, which has
 * as long, for half a second. One that has sent half a request holds a buffer of 16 KiB: 64 MiB in all. A request costs some 50 us
 * of HAProxy.
 */
const HEALTH_CONNECTIONS_MAX = 4_000;
const HEALTH_PER_SECOND_MAX = 3_000;
/** 8999. A narrow page costs some 0.5 ms of HAProxy, a whole one 4 ms [measured]. */
const STATS_CONNECTIONS_MAX = 500;
const STATS_PER_SECOND_MAX = 200;
/** Prometheus asks twice in some seconds, a person's browser once in five. */
const WHOLE_PAGES: DataPlaneModel['doors']['wholePages'] = { eachMax: 5, allMax: 100, seconds: 10 };
/** Beside a hook for each worker. Where kubelet comes from an address that the entry point does not know it is a stranger. */
const STRANGER_SLACK = 16;
const WAITERS_MAX = 256;

/** What the proxies of one pod do for a defaulted spec. */
export function dataPlaneModel(spec: RenderServiceSpec): DataPlaneModel {
  const limits = budget(spec);
  return {
    workers: Array.from({ length: spec.workersPerPod }, (_unused, index) => {
      const port = PORTS.firstWorker + index;
      const runtimePort = spec.runtime.instrument ? PORTS.firstWorkerRuntime + index : undefined;
      return { name: workerName(index), port, runtimePort };
    }),
    concurrency: spec.concurrency,
    webSockets: spec.webSockets.enabled,
    balance: spec.balance,
    queue: { lengthMax: spec.queue.maxLength, timeoutMs: durationMs(spec.queue.timeout) },
    timeouts: timeouts(spec),
    replay: REPLAY[spec.replay],
    body: {
      sizeBytesMax: sizeBytes(spec.buffering.request.maxSize),
      memoryBytes: sizeBytes(spec.buffering.request.memory),
    },
    response: {
      bufferBytes: RESPONSE_BUFFER_BYTES,
      buffers: Math.max(
        RESPONSE_BUFFERS_MIN,
        Math.ceil(sizeBytes(spec.buffering.response.memory) / RESPONSE_BUFFER_BYTES),
      ),
      busyBytes: 2 * RESPONSE_BUFFER_BYTES,
      fileBytesMax: limits.responseFileBytes,
    },
    trusted: spec.forwarded.trust,
    drain: {
      delayMs: durationMs(spec.drain.delay),
      acceptMsMax: drainAcceptMsMax(spec.drain),
      timeoutMs: drainTimeoutMs(spec),
    },
    ...pooling(spec),
    ...quarantine(spec),
    pingPath: spec.ping.path,
    retryAfterSeconds: 1,
    ports: { http: PORTS.http, health: PORTS.health, stats: PORTS.stats, peers: PORTS.peers },
    limits,
    peers: peersConnections(spec, limits),
    doors: doors(spec),
  };
}

function doors({ workersPerPod }: RenderServiceSpec): DataPlaneModel['doors'] {
  const each = workersPerPod + STRANGER_SLACK;
  return {
    health: {
      connectionsMax: HEALTH_CONNECTIONS_MAX,
      perSecondMax: HEALTH_PER_SECOND_MAX,
      strangers: { eachMax: each, eachPerSecondMax: 2 * each, allMax: 4 * each },
    },
    stats: {
      connectionsMax: STATS_CONNECTIONS_MAX,
      perSecondMax: STATS_PER_SECOND_MAX,
      // The operator asks for two pages of each worker that has had trouble, one after the other.
      strangers: { eachMax: STRANGER_SLACK, eachPerSecondMax: STATS_PER_SECOND_MAX, allMax: STATS_CONNECTIONS_MAX / 2 },
    },
    waitersMax: WAITERS_MAX,
    strangerWaitersMax: each,
    wholePages: WHOLE_PAGES,
  };
}

function quarantine(spec: RenderServiceSpec): Pick<DataPlaneModel, 'quarantine'> {
  const { enabled, kills, window, duration } = spec.watchdog.quarantine;
  if (!enabled || !spec.runtime.instrument) return {};
  return {
    quarantine: {
      killsMin: kills,
      windowMs: durationMs(window),
      durationMs: durationMs(duration),
      stallMs: stallTimeoutMs(spec),
    },
  };
}

/** Whether pods of a defaulted spec ask each other anything. */
export function hasPeers({ pooling, readiness }: RenderServiceSpec): boolean {
  return pooling.enabled || readiness.shedWhenFull;
}

function pooling(spec: RenderServiceSpec): Pick<DataPlaneModel, 'pooling'> {
  const { pooling, readiness } = spec;
  if (!hasPeers(spec)) return {};
  return {
    pooling: {
      asksMax: pooling.maxAsks,
      peersMax: pooling.maxPeers,
      borrowedMax: pooling.enabled ? BORROWED_MAX : 0,
      acrossRevisions: pooling.acrossRevisions,
      shed: readiness.shedWhenFull,
      keyOverlapMs: KEY_OVERLAP_MS,
    },
  };
}

/** A peer hands over what it borrows, and what waits for a worker: as many as this pod has slots and places to wait. */
function peersConnections({ concurrency, queue, workersPerPod }: RenderServiceSpec, { haproxyFiles }: Budget) {
  const slots = workersPerPod * concurrency;
  const wanted = PEERS_CONNECTIONS_MIN + slots + queue.maxLength;
  return {
    connectionsMax: Math.min(wanted, PEERS_CONNECTIONS_MAX, Math.floor((haproxyFiles / 2) * PEERS_CONNECTIONS_SHARE)),
    perSourceMax: QUESTION_CONNECTIONS_MAX + BORROWED_MAX + slots,
  };
}

function timeouts(spec: RenderServiceSpec): DataPlaneModel['timeouts'] {
  const queueMs = durationMs(spec.queue.timeout);
  const workerMs = durationMs(spec.timeouts.render) + RENDER_MARGIN_MS;
  // A request can wait twice: for any worker to come up, then for its turn.
  const workerAfterWaitingMs = 2 * queueMs + workerMs;
  const lineMs = workerAfterWaitingMs + PROXY_SLACK_MS;
  const clientSendMs = durationMs(spec.timeouts.clientSend);
  return {
    clientHeaderMs: durationMs(spec.timeouts.clientHeader),
    clientBodyMs: durationMs(spec.timeouts.clientBody),
    clientSendMs,
    clientIdleMs: durationMs(spec.keepAlive.idleTimeout),
    workerMs,
    workerAfterWaitingMs,
    lineMs,
    // A response that is larger than nginx' buffers goes at the speed of its client.
    haproxyClientMs: clientSendMs + PROXY_SLACK_MS,
    // Also bounds the sending: a body beyond HAProxy's buffer (about 230 kB) stays in nginx while its request queues.
    // It may be held for queue.timeout before it stands in line.
    proxyMs: (spec.watchdog.quarantine.enabled ? 2 : 1) * queueMs + lineMs + PROXY_SLACK_MS,
  };
}
