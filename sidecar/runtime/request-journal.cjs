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
const { hasEnded } = require('./processes.cjs');

const FOLDER = '/dev/shm';
/** More than a worker may have at a time (`concurrency`, 1000 at most). */
const PLACES = 1_024;
/** nginx lets no longer id pass. */
const ID_BYTES = 128;
const LINE_BYTES = ID_BYTES + 1;
/** A question comes within moments of a worker's end; its connections are closed a little before it has ended. */
const KEEP_MS = 60_000;
const END_MS = 100;
/**
 * Who cannot promise may be about to end: a killed process has 11 threads, each of which wants the CPU once more. With
 * the time that a promise may take it is less than HAProxy waits (supervisors.lua).
 */
const END_MS_MAX = 1_000;
const END_LOOK_MS = 2;
/** Stands for a request without an id: no request has this one. */
const ANY = '*';
/** What stands in a place that is taken. */
const NAMED = 1;
const UNNAMED = 2;

/** Containers of a pod share this folder, and pods that share the node's IPC. */
function prefix(port) {
  return `corelane-begun-${hostname()}-${port}-`;
}

function prefixOf({ port, token }, pid) {
  return `${prefix(port)}${token}-${pid}-`;
}

/** The journal of this process. */
class RequestJournal {
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
      this.#write(Buffer.alloc(PLACES * LINE_BYTES, '\n'), 0);
    } catch {
      this.#lose();
    }
  }

  /** Notes a request before anything is done for it; gives its place, for `end`. */
  begin(id) {
    if (this.#fd === undefined) return -1;
    // The next one that is free: who has ended stays readable for as long as possible.
    let place = this.#last;
    do place = (place + 1) % PLACES;
    while (this.#taken[place] > 0 && place !== this.#last);
    this.#last = place;
    const isNamed = typeof id === 'string' && id.length <= ID_BYTES;
    try {
      if (this.#taken[place] > 0) throw new Error('more requests than places');
      this.#note(isNamed ? id : ANY, place);
      this.#taken[place] = isNamed ? NAMED : UNNAMED;
      return place;
    } catch {
      this.#lose();
      return -1;
    }
  }

  end(place) {
    if (place < 0 || this.#fd === undefined) return;
    try {
      if (this.#taken[place] === UNNAMED) this.#note('', place);
    } catch {
      this.#lose();
    }
    this.#taken[place] = 0;
  }

  #note(id, place) {
    this.#line.fill('\n');
    this.#line.latin1Write(id);
    this.#write(this.#line, place * LINE_BYTES);
  }

  #write(buffer, position) {
    if (writeSync(this.#fd, buffer, 0, buffer.length, position) < buffer.length) throw new Error('no space left');
  }

  /** Notes that are not complete are none. */
  #lose() {
    const fd = this.#fd;
    this.#fd = undefined;
    try {
      if (fd !== undefined) ftruncateSync(fd, 0);
    } catch {
      // Not seen yet: it makes a file of memory smaller.
    }
  }
}

function filesOf(port) {
  try {
    return readdirSync(FOLDER).filter((name) => name.startsWith(prefix(port)));
  } catch {
    return [];
  }
}

/** No process has it: it never has notes, and counts as ended. */
const UNKNOWN_PID = 0;
/** Server processes of this supervisor: pid -> when it was seen to have ended, Infinity before. */
const processes = new Map();

/** From now on the notes of this process are needed; of one that is not known (`undefined`) there are none. */
function expectJournalOf(supervisor, pid) {
  processes.set(pid ?? UNKNOWN_PID, Number.POSITIVE_INFINITY);
  sweep(supervisor);
}

/**
 * Whether a server below this supervisor has begun a request whose connection to the worker has ended. "No" also means
 * that none will: no server is left that the request could have come to, or the only one has promised to refuse it.
 * @param ageMs since when the request has existed: what was there before this supervisor is not known here
 * @param refuse has a process promise not to begin it; false if that cannot be
 * @returns {Promise<'yes' | 'no' | 'unknown'>}
 */
async function wasBegun(supervisor, id, ageMs, refuse = async () => false) {
  if (!(ageMs >= 0) || ageMs >= process.uptime() * 1000 || id === '' || processes.size === 0) return 'unknown';
  const pids = [...processes.keys()];
  if (!(await haveEnded(pids, END_MS))) {
    const answer = await wasBegunByLiving(supervisor, id, pids, refuse);
    if (answer !== 'unknown' || !(await haveEnded(pids, END_MS_MAX - END_MS))) return answer;
  }
  return answerOf(supervisor, pids, id);
}

/** Whether all of them have ended, within `limitMs`. */
async function haveEnded(pids, limitMs) {
  for (const began = performance.now(); !pids.every(hasEnded); ) {
    if (performance.now() - began >= limitMs) return false;
    await new Promise((resolve) => setTimeout(resolve, END_LOOK_MS));
  }
  return true;
}

/** A connection that the program itself has closed: first the promise, then the look, or it could begin in between. */
async function wasBegunByLiving(supervisor, id, pids, refuse) {
  const living = pids.filter((pid) => !hasEnded(pid));
  // Of several processes, or threads, one could hand the request to another one.
  if (living.length > 1) return 'unknown';
  const [pid] = living;
  if (pid !== undefined) {
    if (filesOf(supervisor.port).filter((name) => name.startsWith(prefixOf(supervisor, pid))).length !== 1)
      return 'unknown';
    // A promise costs one of so many places.
    if (answerOf(supervisor, pids, id) === 'yes') return 'yes';
    if (!(await refuse(pid))) return 'unknown';
  }
  return answerOf(supervisor, pids, id);
}

/** As their notes say. */
function answerOf(supervisor, pids, id) {
  const files = filesOf(supervisor.port);
  const answers = pids.map((pid) => isNoted(files, prefixOf(supervisor, pid), id));
  return answers.find((answer) => answer === 'yes') ?? answers.find((answer) => answer === 'unknown') ?? 'no';
}

/** The same in the notes of one process, which may have several threads. */
function isNoted(files, start, id) {
  const names = files.filter((name) => name.startsWith(start));
  let answer = names.length > 0 ? 'no' : 'unknown';
  try {
    for (const name of names) {
      const lines = readFileSync(join(FOLDER, name), 'latin1');
      const ids = lines.split('\n');
      if (ids.includes(id)) return 'yes';
      if (lines.length !== PLACES * LINE_BYTES || ids.includes(ANY)) answer = 'unknown';
    }
  } catch {
    return 'unknown';
  }
  return answer;
}

/** Removes the notes of processes that have ended a while ago, and what an earlier supervisor has left. */
function sweep(supervisor) {
  const now = performance.now();
  for (const [pid, endedAt] of processes) {
    if (now - endedAt >= KEEP_MS) processes.delete(pid);
    else if (endedAt === Number.POSITIVE_INFINITY && hasEnded(pid)) processes.set(pid, now);
  }
  for (const name of filesOf(supervisor.port)) {
    const pid = Number.parseInt(name.slice(prefixOf(supervisor, '').length - 1), 10);
    // One that lives and is not known may be about to say that it listens.
    const isNeeded = processes.has(pid) || !hasEnded(pid);
    if (isNeeded && name.startsWith(prefixOf(supervisor, pid))) continue;
    try {
      unlinkSync(join(FOLDER, name));
    } catch {
      // Of another user: it has few bytes.
    }
  }
}

module.exports = { RequestJournal, expectJournalOf, sweep, wasBegun };
