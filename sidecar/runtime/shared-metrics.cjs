/**
 * What the event loop of a worker writes down about itself, in memory that its watchdog thread reads while the loop is
 * blocked: no scrape and no question after a stuck render ever waits for a render.
 */
'use strict';

const { CLASSES_MAX, OWN_SITE_POOLS } = require('./classes.cjs');
const refused = require('./refused.cjs');

/** Requests in progress that are remembered by id; more than these are only counted. */
const IDS_MAX = 64;
const ID_BYTES = 128;
/** Of its method and URL, for people. */
const WHAT_BYTES = 256;
const SPACES_MAX = 16;
/** Durations are kept by the number of requests that the worker had when one began, itself included. */
const LEVELS_MAX = 16;
/** With `concurrency: Auto` time is kept by requests in progress; as many as concurrencyRange.max may be. */
const AUTO_LEVELS_MAX = 64;
const DURATION_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const LAG_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const GC_KINDS = ['minor', 'major', 'incremental', 'weakcb'];
const POOLS = CLASSES_MAX + OWN_SITE_POOLS;

/** Number of float64 values of each field, in order. */
const FIELDS = {
  requests: 1,
  inFlight: 1,
  /** Renders whose connection has gone; those of them that have no place (set-aside.cjs). */
  abandoned: 1,
  setAside: 1,
  /** Requests that have begun to answer and go on without a slot (without-slot.cjs). */
  withoutSlot: 1,
  overlaps: 1,
  dropped: 1,
  /** Requests of the program to itself, as parts of the renders that sent them. */
  own: 1,
  /** Requests that renders have sent to their own site with a mark (own-site.cjs). */
  ownSiteSent: 1,
  /** Requests that this program has sent, and that Corelane refused because a queue was full. */
  ownSiteRefused: 1,
  /** Renders that waited beside a child process while all places were taken (child-waits.cjs). */
  childWaits: 1,
  idleMs: 1,
  activeMs: 1,
  beatAtMs: 1,
  gcCount: GC_KINDS.length,
  gcSeconds: GC_KINDS.length,
  /** Used, committed and available bytes of each heap space. */
  heap: 3 * SPACES_MAX,
  /** Buckets, the one without an upper bound, and the sum. */
  lag: LAG_BUCKETS.length + 2,
  duration: LEVELS_MAX * (DURATION_BUCKETS.length + 2),
  /** Of each class, and then of each pool: requests begun, in progress, those that had to wait in here; durations. */
  classRequests: POOLS,
  classInFlight: POOLS,
  classWaited: POOLS,
  classDuration: POOLS * (DURATION_BUCKETS.length + 2),
  /** Busy while no request was in progress. */
  backgroundMs: 1,
  /** How long there were so many renders, and for how much of that the event loop was idle (loop-levels.cjs). */
  levelMs: AUTO_LEVELS_MAX + 1,
  levelIdleMs: AUTO_LEVELS_MAX + 1,
  /** 0, or when the request with the id of the same number began. */
  begunAtMs: IDS_MAX,
};

const VALUES = Object.values(FIELDS).reduce((sum, length) => sum + length, 0);

/**
 * Views of one buffer, by field; `ids` and `whats` hold text: ids of requests, and what they ask
 * for; `refused` is for refused.cjs.
 */
function views(buffer) {
  const found = {};
  let offset = 0;
  for (const [field, length] of Object.entries(FIELDS)) {
    found[field] = new Float64Array(buffer, offset, length);
    offset += length * Float64Array.BYTES_PER_ELEMENT;
  }
  found.ids = Buffer.from(buffer, offset, IDS_MAX * ID_BYTES);
  offset += IDS_MAX * ID_BYTES;
  found.whats = Buffer.from(buffer, offset, IDS_MAX * WHAT_BYTES);
  found.refused = refused.refusedIn(buffer, offset + IDS_MAX * WHAT_BYTES);
  return found;
}

/** A buffer that threads share. */
function allocate() {
  const texts = IDS_MAX * (ID_BYTES + WHAT_BYTES);
  return new SharedArrayBuffer(VALUES * Float64Array.BYTES_PER_ELEMENT + texts + refused.BYTES);
}

/** Counts `value` in a histogram that begins at `offset` of `field`. */
function observe(field, bounds, value, offset = 0) {
  let bucket = 0;
  while (bucket < bounds.length && value > bounds[bucket]) bucket += 1;
  field[offset + bucket] += 1;
  field[offset + bounds.length + 1] += value;
}

/** Writes the beginning of a text into a place, with a zero behind it where there is room. */
function putText(buffer, bytes, place, text) {
  const begin = place * bytes;
  const length = buffer.latin1Write(text, begin, bytes);
  if (length < bytes) buffer[begin + length] = 0;
}

function textAt(buffer, bytes, place) {
  const text = buffer.latin1Slice(place * bytes, (place + 1) * bytes);
  const end = text.indexOf('\0');
  return end < 0 ? text : text.slice(0, end);
}

/** Remembers a request; its place, or -1 if there is none left. */
function putId({ begunAtMs, ids, whats }, { id, method = '', url = '' }, nowMs) {
  const place = begunAtMs.indexOf(0);
  if (place < 0) return place;
  putText(ids, ID_BYTES, place, typeof id === 'string' ? id : '');
  putText(whats, WHAT_BYTES, place, `${method} ${url}`);
  begunAtMs[place] = nowMs;
  return place;
}

/**
 * Requests in progress: `{ id, ms }`, the oldest first; `what` each asks for, if that is wanted: method and path, as a
 * query may have tokens in it.
 */
function inProgress({ begunAtMs, ids, whats }, nowMs, hasWhat = false) {
  const found = [];
  for (let place = 0; place < IDS_MAX; place += 1) {
    if (begunAtMs[place] === 0) continue;
    const one = { id: textAt(ids, ID_BYTES, place), ms: Math.round(nowMs - begunAtMs[place]) };
    found.push(hasWhat ? { ...one, what: textAt(whats, WHAT_BYTES, place).replace(/[?;#].*/s, '') } : one);
  }
  return found.sort((one, other) => other.ms - one.ms);
}

module.exports = {
  AUTO_LEVELS_MAX,
  DURATION_BUCKETS,
  GC_KINDS,
  LAG_BUCKETS,
  LEVELS_MAX,
  SPACES_MAX,
  allocate,
  inProgress,
  observe,
  putId,
  views,
};
