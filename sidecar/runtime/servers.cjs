/** The server processes below the supervisor: each has a connection to it, over which its heartbeat comes. */
'use strict';

const begun = require('./request-journal.cjs');
const { isProgram } = require('./child.cjs');
const { nowMs } = require('./clock.cjs');
const { log } = require('./log.cjs');
const { SIZES } = require('./node-options.cjs');
const { beatMs, stallMs, supervisor } = require('./settings.cjs');
const { dispatch, news, state } = require('./state.cjs');
const { ask, attachBulk, attachThread } = require('./watchers.cjs');

/** The thread answers at once; a process that is stopped does not. */
const ANSWER_MS = 500;
/** The supervisor looks several times a second. If it looks later than this, everything around it was paused. */
const PAUSE_MS = 2_000;
/** Bits of a beat, as worker.cjs sets them. */
const INSPECTED = 1;
const BLOCKED = 2;
const BUSY = 4;
const RENDERS = 8;
const OVERDUE = 16;
const GUARDED = 32;
const RENDERED = 0x80;
/** In the place of a beat: the event loop is about to stand still for a heap snapshot. */
const SNAPSHOT = 1;
/** Of a byte that is no beat: these two bits are 10, and the others say how many requests go on without a slot. */
const KIND = 0xc0;
const WITHOUT_SLOT = 0x80;
/** No beat, either: a render waits in one of the places, all of which are taken. */
const WAITS = 2;
/** No beat, either: a request that may change something is in progress. */
const HANDLES = 4;
/** One that has been silent for longer may have begun such a request since its last beat. */
const UNKNOWN_MS = 500;
/** How many a worker may have, and how often the log says at most that it has them. */
const WITHOUT_SLOT_MAX = Number(process.env.CORELANE_WITHOUT_SLOT_MAX) || 0;
const TELL_MS = 60_000;

/** Connections of the processes below: a server, its watchdog thread, something large from there. */
function take(verb, [given, number, ppid, overridden], socket) {
  if (given !== supervisor.token) return false;
  if (verb === 'corelane-worker') attach(Number(number), Number(ppid), socket, overridden);
  else if (verb === 'corelane-watch') attachThread(Number(number), socket);
  else if (verb === 'corelane-bulk') return attachBulk(Number(number), socket);
  else return false;
  return true;
}

function attach(pid, ppid, socket, overridden) {
  const server = { pid, ppid, silentMs: 0, heldMs: 0, beats: 0, idleBeats: 0 };
  Object.assign(server, { inspected: false, takesSnapshot: false, blocked: false, exempt: false, withoutSlot: 0 });
  server.handles = false;
  const below = isProgram(server) ? undefined : pid;
  state.servers.set(socket, server);
  news.emit('guard');
  begun.expectJournalOf(supervisor, pid);
  sendLimit(socket);
  socket.unref();
  socket.on('data', (bytes) => {
    const isCount = (byte) => (byte & KIND) === WITHOUT_SLOT;
    const beats = bytes.filter((byte) => !isCount(byte) && byte !== WAITS && byte !== HANDLES);
    noteWithoutSlot(server, bytes.findLast(isCount));
    if (bytes.includes(WAITS)) news.emit('waits', server);
    if (beats.length === 0) return;
    server.handles = bytes.includes(HANDLES);
    server.hasRendered ||= beats.some((bits) => (bits & RENDERED) !== 0);
    const last = beats[beats.length - 1];
    server.takesSnapshot = last === SNAPSHOT;
    if (!server.takesSnapshot) onBeat(server, last);
  });
  socket.on('close', () => {
    state.servers.delete(socket);
    news.emit('guard');
    news.emit('without-slot');
    if (state.servers.size === 0) dispatch('closed', { below });
    // The others turn, or will be found silent themselves.
    else if (server.isStalled) dispatch('recovered', { server });
  });
  socket.resume();
  dispatch('attached', { server, below, leftOut: leftOut(overridden) });
}

/** Notes which of Corelane's flags override the user's in this process; undefined if that was known. */
function leftOut(overridden = '') {
  const names = overridden.split(',').filter((name) => SIZES.includes(name) && !state.leftOut.has(name));
  for (const name of names) state.leftOut.add(name);
  return names.length > 0 ? names : undefined;
}

function noteWithoutSlot(server, byte = server.withoutSlot) {
  const count = byte & ~KIND;
  if (count === server.withoutSlot) return;
  server.withoutSlot = count;
  news.emit('without-slot');
  if (count < WITHOUT_SLOT_MAX || nowMs() - state.toldWithoutSlotMs < TELL_MS) return;
  state.toldWithoutSlotMs = nowMs();
  const message = 'further responses that stay open keep their render slots: give streams a class (docs/classes.md)';
  log('slots', { withoutSlot: count, message });
}

/**
 * The supervisor's own time since heartbeats were looked at last: two beats at most. During a pause of the whole
 * container or machine it stands still with its worker, and then no render is at fault. Notes the end of such a pause,
 * but not of one soon after another: a program that again and again leaves the supervisor no CPU is replaced, too.
 */
function sinceLookMs() {
  const now = nowMs();
  const elapsed = now - state.watchedAtMs;
  if (elapsed >= PAUSE_MS && now - state.resumedAtMs >= 2 * stallMs) state.resumedAtMs = now;
  return Math.min(elapsed, 2 * beatMs);
}

function onBeat(server, bits) {
  const has = (bit) => (bits & bit) !== 0;
  // The next look adds all the time since the last one.
  server.silentMs = -sinceLookMs();
  server.heldMs = 0;
  server.beats += 1;
  server.inspected = has(INSPECTED);
  if (has(BLOCKED) !== server.blocked) {
    server.blocked = has(BLOCKED);
    news.emit('blocked');
  }
  const wasGuarded = isGuarded();
  server.renders = has(RENDERS);
  server.guarded = has(GUARDED);
  if (isGuarded() !== wasGuarded) news.emit('guard');
  server.idleBeats = has(BUSY) ? 0 : server.idleBeats + 1;
  // The pause was longer than the time that was left to a render: it has the time of a stall to go on.
  server.overdue = has(OVERDUE) && !server.inspected && nowMs() - state.resumedAtMs >= stallMs;
  if (server.overdue && !state.isTaking()) dispatch('overdue', { server });
  if (server.isStalled) dispatch('recovered', { server });
}

/** How many requests HAProxy may give to this worker. */
function setLimit(given) {
  if (!(given > 0) || given === state.limit) return;
  state.limit = given;
  for (const socket of state.servers.keys()) sendLimit(socket);
}

/** How long a render may take. */
function setRenderMs(given) {
  if (!(given > 0) || given === state.renderMs) return;
  state.renderMs = given;
  for (const socket of state.servers.keys()) sendLimit(socket);
}

/** How many renders that were given up may go on without a place. */
function setAsideMax(count) {
  if (count === state.asideMax) return;
  state.asideMax = count;
  for (const socket of state.servers.keys()) sendLimit(socket);
}

function sendLimit(socket) {
  const lines = [
    state.renderMs > 0 && `render ${state.renderMs}\n`,
    state.asideMax !== undefined && `aside ${state.asideMax}\n`,
    state.limit > 0 && `limit ${state.limit}\n`,
  ];
  const text = lines.filter(Boolean).join('');
  if (text) socket.write(text);
}

/** The client of the request with this id has gone. */
function tellGone(server, id) {
  for (const [socket, one] of state.servers) if (one === server) socket.write(`gone ${id}\n`);
}

function all() {
  return [...state.servers.values()];
}

/** The server that renders: the first process of a cluster listens as well, but only hands out connections. */
function renderer() {
  return all().find(({ renders }) => renders) ?? all()[0];
}

/**
 * Whether every server process sees to it that a response is as long as it says; one that only hands out connections
 * has none.
 */
function isGuarded() {
  return all().every(({ guarded }) => guarded) && all().some(({ renders }) => renders);
}

/** A render whose connection has ended goes on: HAProxy thinks that the worker is free. */
function isBlocked() {
  return all().some(({ blocked }) => blocked);
}

/** How many requests of the worker go on without a slot. */
function withoutSlot() {
  return all().reduce((sum, server) => sum + server.withoutSlot, 0);
}

/** Whether the worker runs a request that may change something, or may do so. */
function runsHandler() {
  return all().some(({ handles, silentMs }) => handles || silentMs >= UNKNOWN_MS);
}

/** The longest time without a sign of life. */
function silentMs() {
  return Math.max(0, ...all().map((server) => server.silentMs));
}

/**
 * Has a server promise not to begin this try of a request any more. Only one whose requests all pass its limiter can.
 */
async function refuse(pid, token) {
  const own = all().filter((server) => server.pid === pid);
  if (!/^[A-Za-z0-9-]+$/.test(token) || own.length !== 1 || !own[0].guarded) return false;
  const answer = await ask(pid, 'refuse', { argument: token, limitMs: ANSWER_MS });
  return answer?.refused === true;
}

module.exports = {
  ANSWER_MS,
  all,
  isBlocked,
  isGuarded,
  refuse,
  renderer,
  runsHandler,
  setAsideMax,
  setLimit,
  setRenderMs,
  silentMs,
  sinceLookMs,
  take,
  tellGone,
  withoutSlot,
};
