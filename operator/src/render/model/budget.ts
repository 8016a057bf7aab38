/**
 * What nginx and HAProxy may have at a time, so that the worst that clients can do to each of it fits into the memory
 * limits and into nginx' disk. docs/edge.md has the figures.
 */

import { classRequests, WORKER_REQUESTS_MAX } from '../../api/class-rules.ts';
import { BODIES_SHARE } from '../../api/disk.ts';
import { classesOf } from '../../api/presets.ts';
import { quantityOf, sizeBytes } from '../../api/scalars.ts';
import { concurrencyBounds } from '../../api/spec/concurrency.ts';
import type { RenderServiceSpec } from '../../api/spec.ts';
import { fetchedMax, hasCache, ROUNDS_MAX } from './cache.ts';
import { classConcurrency } from './classes.ts';
import { compressionBytes } from './compression.ts';
import { type Heads, heads } from './heads.ts';

const KIB = 1024;
const MIB = 1024 ** 2;
/** Of a response behind its head. The head, and what comes with it, has a buffer of its own. */
export const RESPONSE_BUFFER_BYTES = 16 * KIB;
/**
 * nginx wants the buffers but for one of them to be no less than what is busy with sending, and that to be no less than
 * the buffer of the head: in all twice the largest head, and this.
 */
const RESPONSE_BYTES_MIN = 40 * KIB;
/** What the allocator and the kernel have of a container's memory beside what is counted here. */
const USABLE = 0.9;

/** Code, configuration, master process, zones. */
const NGINX_FIXED_BYTES = 16 * MIB;
/** For each connection. An idle one costs 0.6 kB; nginx closes idle ones when a sixteenth of all is left. */
const CONNECTION_BYTES = 20 * KIB;
/** A head that never ends, beside its bytes: pools, and as many lines as it may have (measured). */
const HALF_HEAD_BYTES = 26 * KIB;
/**
 * nginx has each header name once more, in lower case, and a decoded URL: with names as long as lines that is as much
 * as the buffers again.
 */
const HEAD_COPIES = 2;
/**
 * A head of a request at work is in one buffer of a line's size, its names once more, and all of it as nginx sends it,
 * unless it is large (has_large_head of the module). One that is large may be in all buffers, with its names once more,
 * as it is sent, and its cookies in one line: less than four times the largest. With the cache it is in the name of the
 * page and in what is sent of each of four looks.
 */
const ORDINARY_HEAD_BYTES = 32 * KIB;
const LARGE_HEAD_COPIES = 4;
const LARGE_HEAD_COPIES_WITH_CACHE = 12;
/** Part of what is for connections that requests with a large head may take. */
const LARGE_HEADS_SHARE = 1 / 8;
/**
 * What the kernel keeps of a response for a client that does not read; it takes twice as much, and counts it as the
 * container's (cgroup v2). Without a bound that is megabytes. A client that is 100 ms away still gets more than 1 MB
 * a second.
 */
const SEND_BUFFER_BYTES = 64 * KIB;
/**
 * A request that is answered without a place (a ping, an error of nginx itself, "full") and whose client does not go:
 * beside its head, and a target that was encoded, what answers it, and what the kernel keeps.
 */
const ANSWER_BYTES = 16 * KIB + 2 * SEND_BUFFER_BYTES;
/** Part of nginx' memory that is for them. */
const ANSWERS_SHARE = 1 / 16;
/**
 * So many half heads nginx may read before it looks again how many there are: a part of those that there may be, and no
 * more than it reads by itself (epoll_events).
 */
const EVENTS_SHARE = 1 / 4;
const EVENTS_MAX = 512;
/** Lines of a head. Browsers send twenty or so, and a chain of proxies adds as many. */
const HEADER_LINES = 256;
/** Part of nginx' memory that is for connections; the rest is for what requests buffer. */
const CONNECTIONS_SHARE = 0.75;
/** Of a request beside what it buffers: the connection to HAProxy, pools. */
const REQUEST_BYTES = 8 * KIB;
/** So many of all requests may have a body: clients that stall in theirs leave the rest to others. */
const WITH_BODY_SHARE = 2 / 3;
/**
 * Streams and downloads of one worker that go on without a render slot. Each has the memory of a request in the worker;
 * six bits of a heartbeat tell how many there are.
 */
const WITHOUT_SLOT_MAX = 32;
/** Part of all requests that these and classes may be: whoever opens all that he may leaves the rest to pages. */
const WITHOUT_SLOT_SHARE = 2 / 3;
/** Part of the slots and places of a pod that slow readers may keep. The rest is for event streams, and for others. */
const HELD_SHARE = 1 / 2;

/**
 * The cache: its table of pages (model/cache.ts), and two more processes, which look after its files and have their
 * own tables of connections.
 */
const NGINX_CACHE_BYTES = 8 * MIB;
/**
 * A look for a page: nginx' name for it (as long as its head at most), the head of a page that is there, and the head
 * as it is sent on. All of it stays until the request ends, and HAProxy may have nginx look again. (The buffer for the
 * answer does not stay.) An ordinary one that waits costs 10 kB (measured): nobody chooses a long head for others.
 */
const LOOK_BYTES = 48 * KIB;
/** Of the first look: the head that is sent on is a request's without a cache, too. */
const FIRST_LOOK_BYTES = 32 * KIB;

/** HAProxy without a connection: code, Lua, statistics, a server for each worker and each slot of a peer. */
const HAPROXY_FIXED_BYTES = 48 * MIB;
/** A connection without a buffer. */
const HAPROXY_CONNECTION_BYTES = 8 * KIB;
/** Part of HAProxy's memory that is for them; the rest is for buffers, of which who waits has one. */
const HAPROXY_CONNECTIONS_SHARE = 1 / 5;
/** Part of the buffers that requests may have as they wait; the rest is for responses, peers and probes. */
const HAPROXY_REQUESTS_SHARE = 1 / 2;
/** The cache: 20,000 URLs that are for nobody else, herds, and a server for each place of a herd. */
const HAPROXY_CACHE_BYTES = 4 * MIB;
/**
 * Pages of other pods: another server for each place of a herd, one for the own pages (0.4 MB in all, measured), and
 * what is remembered of peers and changed paths. Their requests are counted already: here a page that is asked for at
 * its home takes two of its request's `HOPS_WITH_CACHE`, in place of the way to a worker; there it is one of the peers'
 * connections (model/pooling.ts), and has a place among `requests` of nginx, whoever asks.
 */
const HAPROXY_SHARED_BYTES = MIB;
/**
 * Connections of HAProxy that a request may take: the entrance, the queue's way to the workers, the waiting room; and
 * with the cache its stage and its herd. Who waits for a page has one of them (14 kB, measured).
 */
const HOPS_WITH_CACHE = 5;
/** Part of HAProxy's connections that is for them; the rest is for peers (model/pooling.ts). */
const HOPS_SHARE = 2 / 3;

/** Bounds of the results, whatever the limits are: the first must do for a pod to work at all. */
const CONNECTIONS = { min: 512, max: 20_000 };
const REQUESTS = { min: 64, max: 5_000 };
const ANSWERS = { min: 32, max: 1_000 };

export interface Budget {
  /** Connections of nginx, those to HAProxy included. */
  nginxConnections: number;
  /** Of these, those that are not idle: half heads, among which `answers` count, and both ends of each request. */
  busyConnections: number;
  /** Requests that are answered without a place, until their clients have gone. */
  answers: number;
  /** Connections that nginx reads before it looks how many of them are not idle. */
  eventsAtOnce: number;
  /** Open files of HAProxy, two for each connection. */
  haproxyFiles: number;
  /** Buffers of HAProxy, each of which holds the largest head. */
  haproxyBuffers: number;
  /** Lines of the head of a request. */
  headerLines: number;
  /** Requests that nginx may have at a time, from the end of the head to the last byte of the response. */
  requests: number;
  /** Of these with a body. */
  bodies: number;
  /** Of these with a body that goes to disk. */
  largeBodies: number;
  /** Of the requests, those with a large head. */
  largeHeads: number;
  /** Of the requests, those that have become, or are to become, WebSockets. */
  webSockets: number;
  /** Requests of one client, if they are limited. */
  perClient?: number;
  /** Requests of one worker that may go on without a render slot; 0 without the worker runtime. */
  withoutSlot: number;
  /** Clients that may hold workers for as long as they read slowly: of those requests, and of requests of classes. */
  heldSlots: number;
  heldClasses: number;
  /** Of a connection, in the kernel. */
  sendBufferBytes: number;
  /** Largest temporary file of one response, in bytes; 0 where the disk is too small for so many. */
  responseFileBytes: number;
}

/** What nginx buffers of a response, the head and what comes with it included. */
export function responseBytes({ buffering }: RenderServiceSpec, { bytesMax }: Heads): number {
  return Math.max(sizeBytes(buffering.response.memory) + RESPONSE_BUFFER_BYTES, 2 * bytesMax + RESPONSE_BYTES_MIN);
}

/** The budget of one pod for a defaulted spec. */
export function budget(spec: RenderServiceSpec): Budget {
  const { sidecar, buffering, limits } = spec;
  const isCached = hasCache(spec);
  const head = heads(spec);
  const memory = usable(sidecar.nginx.memoryLimit, NGINX_FIXED_BYTES + (isCached ? NGINX_CACHE_BYTES : 0));
  const haproxy = ofHaproxy(spec, head);
  const requestBytes =
    sizeBytes(buffering.request.memory) +
    responseBytes(spec, head) +
    compressionBytes(spec) +
    (isCached ? FIRST_LOOK_BYTES + ROUNDS_MAX * LOOK_BYTES : 0) +
    REQUEST_BYTES +
    2 * SEND_BUFFER_BYTES;
  // Else those who wait for a page could have all connections, and its render none.
  const withConnections = isCached ? (HOPS_SHARE * haproxy.connections) / HOPS_WITH_CACHE : Number.POSITIVE_INFINITY;
  const withBuffers = HAPROXY_REQUESTS_SHARE * haproxy.buffers;
  const requests = within(
    Math.min(((1 - CONNECTIONS_SHARE) * memory) / requestBytes, withConnections, withBuffers),
    REQUESTS,
  );
  const cost = costsOf(head, isCached);
  const answers = within((ANSWERS_SHARE * memory) / cost.answer, ANSWERS);
  const forConnections = CONNECTIONS_SHARE * memory;
  const largeHeads = Math.min(requests, Math.max(1, Math.floor((LARGE_HEADS_SHARE * forConnections) / cost.largeHead)));
  const atWork = answers * cost.answer + requests * cost.ordinaryHead + largeHeads * cost.largeHead;
  const halfHeads = Math.floor((forConnections - atWork) / cost.halfHead);
  const eventsAtOnce = Math.min(EVENTS_MAX, Math.ceil(EVENTS_SHARE * halfHeads));
  const bodies = Math.floor(WITH_BODY_SHARE * requests);
  const disk = quantityOf(sidecar.nginx.ephemeralStorageLimit);
  const onDisk = Math.floor((BODIES_SHARE * disk) / sizeBytes(buffering.request.maxSize));
  const fileBytes = Math.floor(((1 - BODIES_SHARE) * disk) / requests);
  const inWorker = withoutSlot(spec, requests);
  const held = (ofWorker: number) => Math.floor(HELD_SHARE * spec.workersPerPod * ofWorker);
  return {
    nginxConnections: within(forConnections / CONNECTION_BYTES, CONNECTIONS),
    busyConnections: halfHeads - eventsAtOnce + 2 * requests,
    answers,
    eventsAtOnce,
    haproxyFiles: 2 * haproxy.connections,
    haproxyBuffers: haproxy.buffers,
    headerLines: HEADER_LINES,
    requests,
    bodies,
    largeBodies: Math.min(bodies, Math.max(1, onDisk)),
    largeHeads,
    webSockets: webSockets(spec),
    perClient: limits.perClient.requests,
    withoutSlot: inWorker,
    heldSlots: held(inWorker),
    heldClasses: held(classConcurrency(spec)),
    sendBufferBytes: SEND_BUFFER_BYTES,
    // nginx refuses to start with less: a file is written by whole buffers. 0 stands for no file.
    responseFileBytes:
      fileBytes < head.bufferBytes ? 0 : Math.min(fileBytes, sizeBytes(buffering.response.maxFileSize)),
  };
}

/** Connections and buffers that HAProxy has memory for. */
function ofHaproxy(spec: RenderServiceSpec, { bufferBytes }: Heads): { connections: number; buffers: number } {
  const fixedBytes =
    HAPROXY_FIXED_BYTES +
    (hasCache(spec) ? HAPROXY_CACHE_BYTES : 0) +
    (fetchedMax(spec) > 0 ? HAPROXY_SHARED_BYTES : 0);
  const memory = usable(spec.sidecar.haproxy.memoryLimit, fixedBytes);
  return {
    connections: within((HAPROXY_CONNECTIONS_SHARE * memory) / HAPROXY_CONNECTION_BYTES, CONNECTIONS),
    buffers: Math.floor(((1 - HAPROXY_CONNECTIONS_SHARE) * memory) / bufferBytes),
  };
}

/** Bytes of nginx that a head may cost, by what becomes of it. */
function costsOf({ bytesMax, lineBytesMax, requestBuffers }: Heads, isCached: boolean) {
  const halfHead = HALF_HEAD_BYTES + HEAD_COPIES * requestBuffers * lineBytesMax;
  return {
    halfHead,
    answer: halfHead + bytesMax + ANSWER_BYTES,
    ordinaryHead: lineBytesMax + ORDINARY_HEAD_BYTES,
    largeHead: bytesMax * (isCached ? LARGE_HEAD_COPIES_WITH_CACHE : LARGE_HEAD_COPIES),
  };
}

/** Pages keep half of the places, if there is more than one. */
function webSockets(spec: RenderServiceSpec): number {
  const { maxPerWorker } = spec.webSockets;
  const { workersPerPod } = spec;
  const places = workersPerPod * concurrencyBounds(spec).min;
  return maxPerWorker === undefined ? Math.max(1, Math.floor(places / 2)) : maxPerWorker * workersPerPod;
}

function withoutSlot(spec: RenderServiceSpec, requests: number): number {
  if (!spec.runtime.instrument) return 0;
  const noted = WORKER_REQUESTS_MAX - concurrencyBounds(spec).max - classConcurrency(spec);
  const { workersPerPod } = spec;
  const ofClasses = classRequests({ workersPerPod, classes: classesOf(spec) });
  const left = (WITHOUT_SLOT_SHARE * requests - ofClasses) / workersPerPod;
  return Math.max(0, Math.min(WITHOUT_SLOT_MAX, noted, Math.floor(left)));
}

function usable(memoryLimit: string, fixedBytes: number): number {
  return USABLE * quantityOf(memoryLimit) - fixedBytes;
}

function within(value: number, { min, max }: { min: number; max: number }): number {
  return Math.min(max, Math.max(min, Math.floor(value)));
}
