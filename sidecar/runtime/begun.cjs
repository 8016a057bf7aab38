/**
 * Which requests a server process has begun, written down where it outlives the process: of a request that is missing
 * here when its worker has died nobody has seen anything, and another worker may have it, whatever its method (I2).
 *
 * The place is the container's shared memory, which can be written to where the root file system cannot. A file belongs
 * to one process (or thread), and has a line for each request at a time. Whatever goes wrong leaves a file that is
 * not whole, and the answer "unknown".
 */
'use strict';

const { ftruncateSync, openSync, readdirSync, readFileSync, unlinkSync, writeSync } = require('node:fs');
const { hostname } = require('node:os');
const { join } = require('node:path');
const { threadId } = require('node:worker_threads');

const FOLDER = '/dev/shm';
/** More than a worker may have at a time. */
const PLACES = 256;
/** nginx lets no longer id pass. */
const ID_BYTES = 128;
const LINE_BYTES = ID_BYTES + 1;
/** A question comes within moments of a worker's end. */
const KEEP_MS = 60_000;

/** Containers of a pod share this folder, and pods that share the node's IPC. */
function prefix(port) {
  return `corelane-begun-${hostname()}-${port}-`;
}

function prefixOf({ port, token }, pid) {
  return `${prefix(port)}${token}-${pid}-`;
}

/** The notes of this process. */
class BegunNotes {
  #fd;
  #taken = new Uint8Array(PLACES);
  #last = 0;
  #line = Buffer.alloc(LINE_BYTES);

  /** @param supervisor its `{ port, token }` */
  constructor(supervisor) {
    try {
      const name = `${prefixOf(supervisor, process.pid)}${threadId}-${Date.now()}`;
      this.#fd = openSync(join(FOLDER, name), 'wx', 0o600);
      // All of its memory now: a note must not fail for want of it.
      writeSync(this.#fd, Buffer.alloc(PLACES * LINE_BYTES, '\n'), 0, PLACES * LINE_BYTES, 0);
    } catch {
      this.#lose();
    }
  }

  /** Notes a request before anything is done for it; gives its place, for `end`. */
  begin(id) {
    if (this.#fd === undefined || typeof id !== 'string' || id.length > ID_BYTES) return -1;
    // The next one that is free: who has ended stays readable for as long as possible.
    let place = this.#last;
    do place = (place + 1) % PLACES;
    while (this.#taken[place] === 1 && place !== this.#last);
    this.#last = place;
    try {
      if (this.#taken[place] === 1) throw new Error('more requests than places');
      this.#line.fill('\n');
      this.#line.latin1Write(id);
      writeSync(this.#fd, this.#line, 0, LINE_BYTES, place * LINE_BYTES);
      this.#taken[place] = 1;
      return place;
    } catch {
      this.#lose();
      return -1;
    }
  }

  end(place) {
    if (place >= 0) this.#taken[place] = 0;
  }

  /** Notes that are not complete are none. */
  #lose() {
    const fd = this.#fd;
    this.#fd = undefined;
    if (fd !== undefined) ftruncateSync(fd, 0);
  }
}

function filesOf(port) {
  try {
    return readdirSync(FOLDER).filter((name) => name.startsWith(prefix(port)));
  } catch {
    return [];
  }
}

/** Server processes of this supervisor: pid -> when it had ended, Infinity while it has not. */
const processes = new Map();

/** From now on the notes of this process are needed. */
function expectNotesOf(pid) {
  processes.set(pid, Number.POSITIVE_INFINITY);
}

/**
 * Whether a server below this supervisor has begun a request whose connection to the worker has ended.
 * @param ageMs since when the request has existed: what was there before this supervisor is not known here
 * @returns {'yes' | 'no' | 'unknown'}
 */
function wasBegun(supervisor, id, ageMs) {
  if (!(ageMs >= 0) || ageMs >= process.uptime() * 1000 || id === '' || processes.size === 0) return 'unknown';
  const files = filesOf(supervisor.port);
  const answers = [...processes.keys()].map((pid) => isNoted(files, prefixOf(supervisor, pid), id));
  return answers.find((answer) => answer === 'yes') ?? answers.find((answer) => answer === 'unknown') ?? 'no';
}

/** The same in the notes of one process, which may have several threads. */
function isNoted(files, start, id) {
  const names = files.filter((name) => name.startsWith(start));
  let answer = names.length > 0 ? 'no' : 'unknown';
  try {
    for (const name of names) {
      const lines = readFileSync(join(FOLDER, name), 'latin1');
      if (lines.length !== PLACES * LINE_BYTES) answer = 'unknown';
      else if (lines.split('\n').includes(id)) return 'yes';
    }
  } catch {
    return 'unknown';
  }
  return answer;
}

/** Removes the notes of processes that have ended a while ago; to be called when no process is there. */
function sweep(supervisor) {
  const now = performance.now();
  for (const [pid, endedAt] of processes) {
    if (endedAt === Number.POSITIVE_INFINITY) processes.set(pid, now);
    else if (now - endedAt >= KEEP_MS) processes.delete(pid);
  }
  const kept = [...processes.keys()].map((pid) => prefixOf(supervisor, pid));
  for (const name of filesOf(supervisor.port)) {
    if (kept.some((start) => name.startsWith(start))) continue;
    try {
      unlinkSync(join(FOLDER, name));
    } catch {
      // Of another user: it has few bytes.
    }
  }
}

module.exports = { BegunNotes, expectNotesOf, sweep, wasBegun };
