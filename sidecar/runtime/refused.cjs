/**
 * Tries of requests that a server process will not begin any more, by HAProxy's names for them: there has been another
 * try. Written by its watchdog thread, while the event loop may be blocked with the request unread in a socket; read by
 * the concurrency limiter.
 */
'use strict';

const PLACES = 1_024;
const ID_BYTES = 64;
/** What is left in a socket that HAProxy has closed is read long before, or never. */
const KEEP_MS = 600_000;
const COUNT_BYTES = 8;
const BYTES = COUNT_BYTES + PLACES * (Float64Array.BYTES_PER_ELEMENT + ID_BYTES);

/** Views of so many bytes of a buffer that threads share. */
function refusedIn(buffer, offset) {
  return {
    count: new Int32Array(buffer, offset, 1),
    atMs: new Float64Array(buffer, offset + COUNT_BYTES, PLACES),
    ids: new Uint8Array(buffer, offset + COUNT_BYTES + PLACES * Float64Array.BYTES_PER_ELEMENT, PLACES * ID_BYTES),
  };
}

/**
 * From when this returns on, the limiter begins none of this name.
 * @returns false if it cannot promise that
 */
function refuse({ count, atMs, ids }, id, nowMs) {
  if (id === '' || id.length > ID_BYTES) return false;
  const place = atMs.findIndex((refusedAtMs) => refusedAtMs === 0 || nowMs - refusedAtMs >= KEEP_MS);
  if (place < 0) return false;
  ids.fill(0, place * ID_BYTES, (place + 1) * ID_BYTES);
  for (let i = 0; i < id.length; i += 1) ids[place * ID_BYTES + i] = id.charCodeAt(i);
  atMs[place] = nowMs;
  // Last: who has seen it sees the id.
  Atomics.add(count, 0, 1);
  return true;
}

/** Whether somebody has been promised that this request is not begun. */
function isRefused({ count, ids }, id) {
  if (Atomics.load(count, 0) === 0 || typeof id !== 'string') return false;
  for (let place = 0; place < PLACES; place += 1) {
    if (ids[place * ID_BYTES] !== 0 && isAt(ids, place, id)) return true;
  }
  return false;
}

function isAt(ids, place, id) {
  for (let i = 0; i < ID_BYTES; i += 1) {
    if (ids[place * ID_BYTES + i] !== (i < id.length ? id.charCodeAt(i) : 0)) return false;
  }
  return true;
}

module.exports = { BYTES, isRefused, refuse, refusedIn };
