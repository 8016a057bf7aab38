/**
 * How many requests the worker gets at a time, if the live settings say so or have it found. With `concurrency: Auto`
 * the supervisor asks the watchdog thread once a second what the event loop had to do, lets
 * concurrency-rule.cjs decide how many requests the worker gets, and tells HAProxy and the worker. It outlives the
 * process: the next one begins with the number of the one before.
 */
'use strict';

const { cpuQuota, memoryLimitBytes } = require('./cgroup.cjs');
const { nowMs } = require('./clock.cjs');
const { decide, firstState, learn, measuredShares, withBounds } = require('./concurrency-rule.cjs');
const { watchLive } = require('./live.cjs');
const { log } = require('./log.cjs');
const { ANSWER_MS, all, setAsideMax, setLimit, setRenderMs, withoutSlot } = require('./servers.cjs');
const { AUTO_LEVELS_MAX } = require('./shared-metrics.cjs');
const { news, phase, state } = require('./state.cjs');
const { ask } = require('./watchers.cjs');

const LOOK_MS = 1_000;
/** HAProxy hears of fewer places within a second; until then it may send what it had places for. */
const LOWERED_MS = 2_000;
/** One line at most in so long. */
const LOG_MS = 10_000;
/** From here on more renders might be the end of the process, or of the CPU that others in it need (zlib, crypto). */
const MEMORY_SHARE = 0.8;
const CPU_SHARE = 0.95;
/** From here on fewer are better than none. */
const MEMORY_SHARE_MAX = 0.9;
/**
 * Renders that were given up and wait may go on without a place, so many for each that a worker may have: their memory
 * is bounded by MEMORY_SHARE, this bounds what computes for nobody when all of them get their answer at last.
 */
const ASIDE_PER_PLACE = 8;
/** Without an answer for so many looks nobody knows what the event loop does. */
const UNANSWERED_MAX = 10;
const HOLDS = ['memory', 'cpu', 'inspector', 'abandoned', 'processes', 'unmeasured'];

const RECYCLE_BYTES = Number(process.env.CORELANE_RECYCLE_MEMORY_BYTES) || Number.POSITIVE_INFINITY;

/** `MIN-MAX`, as the operator writes it; undefined for anything else: then the number is fixed. */
function boundsOf(text = '') {
  const [, min, max] = (/^([0-9]+)-([0-9]+)$/.exec(text) ?? []).map(Number);
  return min >= 1 && min <= max && max <= AUTO_LEVELS_MAX ? { min, max } : undefined;
}

/** Those of the environment leave room for all that live settings may say. */
const room = boundsOf(process.env.CORELANE_CONCURRENCY);
const isOn = room !== undefined;
let bounds = liveBounds(state.live) ?? room;
/** A new container begins where the fleet is; a new process where the one before it was. */
let rule = isOn ? firstState(bounds, state.live?.start) : undefined;
const changes = { up: 0, down: 0 };
/** What the process had done when it was looked at last; undefined: what it has done until now teaches nothing. */
let before;
let unanswered = 0;
/** Numbers of before that HAProxy may still go by: `{ limit, untilMs }`. */
let lowered = [];
let logged = { limit: bounds?.min, atMs: Number.NEGATIVE_INFINITY };

function liveBounds(settings) {
  if (!settings || !room) return undefined;
  const within = (n) => Math.min(Math.max(n, room.min), room.max);
  return { min: within(settings.min), max: within(settings.max) };
}

/** Begins to look, where the number is not fixed, and follows the live settings. */
function watchConcurrency() {
  if (isOn) {
    setLimit(rule.limit);
    logChange();
    setInterval(() => void look(), LOOK_MS);
  } else setFixed(state.live?.concurrency);
  setRenderMs(state.live?.renderMs);
  watchLive((settings) => {
    setRenderMs(settings.renderMs);
    if (isOn) setBounds(settings);
    else setFixed(settings.concurrency);
  });
}

function setBounds(settings) {
  const next = liveBounds(settings);
  if (next.min === bounds.min && next.max === bounds.max) return;
  bounds = next;
  // With other levels there is nothing to compare with.
  before = undefined;
  turnTo(withBounds(rule, bounds));
}

/** The number that HAProxy takes from the same file, at another moment. */
let fixed;
function setFixed(limit) {
  if (!(limit >= 1)) return;
  if (fixed > limit) lower(fixed);
  fixed = limit;
  tellWorker();
}

/** HAProxy may go by this number for a moment more. */
function lower(limit) {
  lowered.push({ limit, untilMs: nowMs() + LOWERED_MS });
  setTimeout(tellWorker, LOWERED_MS + 1);
}

async function look() {
  const renderers = all().filter(({ renders }) => renders);
  if (renderers.length > 1) return share(renderers.length);
  const [server] = renderers;
  // Warm-up, a heap snapshot, a profile: not what requests need.
  if (phase() !== 'up' || !server || state.isTaking()) {
    before = undefined;
    return undefined;
  }
  if (before?.pid === server.pid && !server.hasRendered) return logChange();
  server.hasRendered = false;
  const figures = await ask(server.pid, 'levels', { limitMs: ANSWER_MS });
  if (!figures?.timeMs) return missAnswer();
  unanswered = 0;
  const last = before;
  before = { ...figures, pid: server.pid };
  setAsideMax(asideMaxOf(memoryShareOf(figures).most));
  if (last?.pid === server.pid && phase() === 'up') measure(server, figures, last);
  return undefined;
}

/** With one place at most no render may go on beside another one. */
function asideMaxOf(memoryShare) {
  return bounds.max > 1 && memoryShare <= MEMORY_SHARE ? ASIDE_PER_PLACE * bounds.max : 0;
}

/** Each has an event loop of its own, and HAProxy does not know which of them gets a request. */
function share(count) {
  before = undefined;
  setAsideMax(0);
  turnTo({ ...rule, limit: bounds.min, because: `${count} processes answer on the port`, heldBy: 'processes' });
}

function missAnswer() {
  before = undefined;
  unanswered += 1;
  if (unanswered < UNANSWERED_MAX) return;
  turnTo({ ...rule, limit: bounds.min, because: 'the watchdog thread does not answer', heldBy: 'unmeasured' });
}

function measure(server, figures, last) {
  const since = (field) => figures[field].map((ms, n) => ms - last[field][n]).slice(0, bounds.max + 1);
  const known = learn(rule, { timeMs: since('timeMs'), idleMs: since('idleMs') });
  turnTo(decide(known, bounds, holdsOf(server, figures, last)));
}

/** Of the container's limit, and of whichever limit is nearer. */
function memoryShareOf({ residentBytes }) {
  const ofContainer = residentBytes / (memoryLimitBytes() ?? Number.POSITIVE_INFINITY);
  return { ofContainer, most: Math.max(ofContainer, residentBytes / RECYCLE_BYTES) };
}

/** What speaks against more requests, whatever the event loop says. */
function holdsOf(server, figures, last) {
  const { cpuMs, atMs, abandoned } = figures;
  const memory = memoryShareOf(figures);
  const cpu = (cpuMs - last.cpuMs) / (atMs - last.atMs) / (cpuQuota() ?? Number.POSITIVE_INFINITY);
  const isHeld = {
    memory: memory.most > MEMORY_SHARE,
    cpu: cpu >= CPU_SHARE,
    inspector: server.inspected,
    abandoned: abandoned > 0 || server.blocked,
  };
  const isFull = memory.ofContainer > MEMORY_SHARE_MAX;
  return {
    rise: Object.keys(isHeld).find((name) => isHeld[name]),
    fall: isFull ? `the process has ${Math.round(100 * memory.ofContainer)} % of the container's memory` : undefined,
  };
}

/** The next state, and what follows from its number. */
function turnTo(next) {
  const { limit } = rule;
  rule = next;
  if (next.limit > limit) changes.up += 1;
  if (next.limit < limit) {
    changes.down += 1;
    lower(limit);
  }
  if (next.limit !== limit) {
    // The worker first: HAProxy sends at once what it has places for.
    tellWorker();
    news.emit('limit');
  }
  logChange();
}

/** The worker itself lets as many through as HAProxy may believe that it has places. */
function tellWorker() {
  lowered = lowered.filter(({ untilMs }) => untilMs > nowMs());
  setLimit(Math.max(isOn ? rule.limit : fixed, ...lowered.map(({ limit }) => limit)));
}

function logChange() {
  const { limit, waitRatio, because } = rule;
  if (limit === logged.limit || nowMs() - logged.atMs < LOG_MS) return;
  const ratio = waitRatio === undefined ? undefined : Math.round(100 * waitRatio) / 100;
  log('concurrency', { from: logged.limit, to: limit, because, waitRatio: ratio, busy: measuredShares(rule) });
  logged = { limit, atMs: nowMs() };
}

/**
 * An answer to HAProxy's agent check with the number of places in it. It stands before any `#`, behind which HAProxy
 * reads nothing, and is never 0, which HAProxy takes for no limit. Who is down has no more than min: what adds the
 * places of all workers up counts little for it. What goes on without a slot is a request to HAProxy, also in a worker
 * that is down: else its streams would take the places of others in the queue.
 */
function withLimit(answer) {
  if (!isOn) return answer;
  return answer === 'up'
    ? `up maxconn:${rule.limit + withoutSlot()}`
    : `maxconn:${bounds.min + withoutSlot()} ${answer}`;
}

/** For metrics; undefined where the number is fixed. */
function concurrency() {
  return isOn ? { ...rule, changes, holds: HOLDS } : undefined;
}

module.exports = { boundsOf, concurrency, isOn, watchConcurrency, withLimit };
