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

const KIB = 1024;
const MIB = 1024 ** 2;
/** HAProxy's buffer is 16 KiB, so no response header is larger; nginx answers 502 if its own is smaller. */
export const RESPONSE_BUFFER_BYTES = 16 * KIB;
/** What the allocator and the kernel have of a container's memory beside what is counted here. */
const USABLE = 0.9;

/** Code, configuration, master process, zones. */
const NGINX_FIXED_BYTES = 16 * MIB;
/** For each connection. An idle one costs 0.6 kB; nginx closes idle ones when a sixteenth of all is left. */
const CONNECTION_BYTES = 20 * KIB;
/** A head that never ends, with as many lines as it may have (measured): buffers, pools, lines. */
const HEAD_BYTES = 42 * KIB;
/**
 * What the kernel keeps of a response for a client that does not read; it takes twice as much, and counts it as the
 * container's (cgroup v2). Without a bound that is megabytes. A client that is 100 ms away still gets more than 1 MB
 * a second.
 */
const SEND_BUFFER_BYTES = 64 * KIB;
/**
 * A request that is answered without a place (a ping, an error of nginx itself, "full") and whose client does not go:
 * its head, what answers it (measured), and what the kernel keeps.
 */
const ANSWER_BYTES = 72 * KIB + 2 * SEND_BUFFER_BYTES;
/** Part of nginx' memory that is for them. */
const ANSWERS_SHARE = 1 / 16;
/** So many of them nginx may read before it looks again how many there are (epoll_events). */
const HEADS_AT_ONCE = 512;
/** Lines of a head. Browsers send twenty or so, and a chain of proxies adds as many. */
const HEADER_LINES = 256;
/** Part of nginx' memory that is for connections; the rest is for what requests buffer. */
const CONNECTIONS_SHARE = 0.75;
/** Of a request beside what it buffers: the head of the response, the connection to HAProxy, pools. */
const REQUEST_BYTES = 24 * KIB;
/**
 * A connection of HTTP/2 at its worst: what its streams have left behind, frames that nobody reads, its table of
 * headers, half a head (measured).
 */
const HTTP2_BYTES = 256 * KIB;
/** So many of them need have no request. */
const HTTP2_SPARE = 64;
/** Part of what is for connections that they may take. */
const HTTP2_SHARE = 1 / 2;
/** nginx refuses to start with less: a file is written by whole buffers. 0 stands for no file. */
const FILE_BYTES_MIN = RESPONSE_BUFFER_BYTES;
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
 * A look for a page: nginx' name for it (as long as its head at most), the head of a page that is there, the head as it
 * is sent on, and a buffer for the answer. All of it stays until the request ends, and HAProxy may have nginx look
 * again. An ordinary one that waits costs 10 kB (measured): nobody chooses a long head for others.
 */
const LOOK_BYTES = 64 * KIB;
/** Of the first look: the answer's buffer and the head are a request's without a cache, too. */
const FIRST_LOOK_BYTES = 32 * KIB;

/** HAProxy without a connection: code, Lua, statistics, a server for each worker and each slot of a peer. */
const HAPROXY_FIXED_BYTES = 48 * MIB;
/** A request that waits: its streams and their buffers of 16 KiB. */
const HAPROXY_REQUEST_BYTES = 40 * KIB;
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
  /** Connections of HTTP/2; 0 where it is not spoken. */
  http2Connections: number;
  /** Requests that are answered without a place, until their clients have gone. */
  answers: number;
  /** Open files of HAProxy, two for each connection. */
  haproxyFiles: number;
  /** Lines of the head of a request. */
  headerLines: number;
  /** Requests that nginx may have at a time, from the end of the head to the last byte of the response. */
  requests: number;
  /** Of these with a body. */
  bodies: number;
  /** Of these with a body that goes to disk. */
  largeBodies: number;
  /** Of these those that have become, or are to become, WebSockets. */
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

/** The budget of one pod for a defaulted spec. */
export function budget(spec: RenderServiceSpec): Budget {
  const { sidecar, buffering, limits } = spec;
  const isCached = hasCache(spec);
  const memory = usable(sidecar.nginx.memoryLimit, NGINX_FIXED_BYTES + (isCached ? NGINX_CACHE_BYTES : 0));
  const haproxyFixedBytes =
    HAPROXY_FIXED_BYTES + (isCached ? HAPROXY_CACHE_BYTES : 0) + (fetchedMax(spec) > 0 ? HAPROXY_SHARED_BYTES : 0);
  const haproxyConnections = within(
    usable(sidecar.haproxy.memoryLimit, haproxyFixedBytes) / HAPROXY_REQUEST_BYTES,
    CONNECTIONS,
  );
  const requestBytes =
    sizeBytes(buffering.request.memory) +
    sizeBytes(buffering.response.memory) +
    compressionBytes(spec) +
    (isCached ? FIRST_LOOK_BYTES + ROUNDS_MAX * LOOK_BYTES : 0) +
    REQUEST_BYTES +
    2 * SEND_BUFFER_BYTES;
  // Else those who wait for a page could have all connections, and its render none.
  const withConnections = isCached ? (HOPS_SHARE * haproxyConnections) / HOPS_WITH_CACHE : Number.POSITIVE_INFINITY;
  const requests = within(Math.min(((1 - CONNECTIONS_SHARE) * memory) / requestBytes, withConnections), REQUESTS);
  const answers = within((ANSWERS_SHARE * memory) / ANSWER_BYTES, ANSWERS);
  const forConnections = CONNECTIONS_SHARE * memory;
  const http2Connections = spec.http2.enabled
    ? Math.min(requests + answers + HTTP2_SPARE, Math.floor((HTTP2_SHARE * forConnections) / HTTP2_BYTES))
    : 0;
  const forHttp1 = forConnections - http2Connections * HTTP2_BYTES;
  const heads = (forHttp1 - answers * ANSWER_BYTES) / HEAD_BYTES - HEADS_AT_ONCE;
  const bodies = Math.floor(WITH_BODY_SHARE * requests);
  const disk = quantityOf(sidecar.nginx.ephemeralStorageLimit);
  const onDisk = Math.floor((BODIES_SHARE * disk) / sizeBytes(buffering.request.maxSize));
  const fileBytes = Math.floor(((1 - BODIES_SHARE) * disk) / requests);
  const inWorker = withoutSlot(spec, requests);
  const held = (ofWorker: number) => Math.floor(HELD_SHARE * spec.workersPerPod * ofWorker);
  return {
    nginxConnections: within(forHttp1 / CONNECTION_BYTES + http2Connections, CONNECTIONS),
    busyConnections: Math.floor(heads) + 2 * requests + http2Connections,
    http2Connections,
    answers,
    haproxyFiles: 2 * haproxyConnections,
    headerLines: HEADER_LINES,
    requests,
    bodies,
    largeBodies: Math.min(bodies, Math.max(1, onDisk)),
    webSockets: webSockets(spec),
    perClient: limits.perClient.requests,
    withoutSlot: inWorker,
    heldSlots: held(inWorker),
    heldClasses: held(classConcurrency(spec)),
    sendBufferBytes: SEND_BUFFER_BYTES,
    responseFileBytes: fileBytes < FILE_BYTES_MIN ? 0 : Math.min(fileBytes, sizeBytes(buffering.response.maxFileSize)),
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
