/**
 * How many requests a worker should have at a time (`concurrency: Auto`): the smallest number that leaves its event
 * loop no time. From one second to the next; computes only, auto-concurrency.cjs measures and tells.
 *
 * More is taken at once, because too few is a queue that grows; less slowly, because too many costs little. Nothing
 * here looks at how long a request takes: that has the waiting of others in it.
 */
'use strict';

const { bestRow, tableOf } = require('./wait-ratio.cjs');

/** From here on one more place is not worth it. */
const BUSY_ENOUGH = 0.98;
/** To leave one at a time is worth more than a place: at least the rest of the CPU must idle within a render. */
const BUSY_ALONE = 0.95;
/** A little more than enough, before a place is taken back. */
const SLACK = 0.004;
/** So much work is remembered, not so much time: what a night does not do it does not forget. */
const MEMORY_MS = 10_000;
/** With less nothing is decided. */
const EVIDENCE_MS = 1_000;
/** Fewer places must do for so many looks in a row. */
const FEWER_LOOKS = 5;
/** Then by this part of what is too much, and at least by one. */
const FEWER_SHARE = 0.25;

/**
 * @param bounds `{ min, max }`
 * @returns the state before anything was measured
 */
function firstState({ min, max }) {
  const levels = max + 1;
  return {
    limit: min,
    /** By number of requests in progress. */
    timeMs: new Array(levels).fill(0),
    idleMs: new Array(levels).fill(0),
    /** Looks in a row in which fewer places would have done. */
    fewerLooks: 0,
    /** Time that requests wait, for each second of CPU; undefined before there is evidence. */
    waitRatio: undefined,
    /** What the last change was for: for people. */
    because: undefined,
    /** What keeps it from rising although it would: `memory`, `cpu` ...; undefined if nothing does. */
    heldBy: undefined,
  };
}

/** The same state for other bounds. */
function withBounds(state, { min, max }) {
  const levels = (known) => Array.from({ length: max + 1 }, (_unused, n) => known[n] ?? 0);
  const limit = Math.min(Math.max(state.limit, min), max);
  const because = limit === state.limit ? state.because : `the bounds are ${min} and ${max} now`;
  return { ...state, limit, because, fewerLooks: 0, timeMs: levels(state.timeMs), idleMs: levels(state.idleMs) };
}

/** What was measured since the last look, by number of requests in progress, is added to what is known. */
function learn(state, { timeMs, idleMs }) {
  const freshMs = timeMs.reduce((sum, ms, n) => sum + (n > 0 ? ms : 0), 0);
  const kept = Math.exp(-freshMs / MEMORY_MS);
  const add = (before, fresh) => before.map((ms, n) => ms * kept + (n > 0 ? (fresh[n] ?? 0) : 0));
  return { ...state, timeMs: add(state.timeMs, timeMs), idleMs: add(state.idleMs, idleMs) };
}

/** The smallest number of requests that keeps the CPU busy. */
function enough({ shares }, { min, max }, slack) {
  if (min === 1 && shares[1] >= BUSY_ALONE + slack) return 1;
  for (let n = Math.max(2, min); n < max; n += 1) if (shares[n] >= BUSY_ENOUGH + slack) return n;
  return max;
}

const tables = new Map();

/** The same for all looks. */
function tableFor(max) {
  if (!tables.has(max)) tables.set(max, tableOf(max));
  return tables.get(max);
}

const percent = (share) => `${Math.round(100 * share)} %`;

/**
 * The next state.
 * @param holds.rise why it may not rise, if so; a name for metrics
 * @param holds.fall why it must fall, if so; a sentence
 */
function decide(state, bounds, { rise, fall } = {}) {
  const { limit, timeMs, idleMs } = state;
  if (fall) {
    const next = Math.max(bounds.min, limit - 1);
    return { ...state, limit: next, because: next < limit ? fall : state.because, fewerLooks: 0, heldBy: rise };
  }
  if (timeMs.reduce((sum, ms) => sum + ms, 0) < EVIDENCE_MS) return { ...state, heldBy: undefined };
  const row = bestRow(tableFor(bounds.max), timeMs, idleMs);
  const known = { ...state, waitRatio: row.ratio, heldBy: undefined };
  const wanted = enough(row, bounds, 0);
  if (wanted > limit) {
    if (rise) return { ...known, fewerLooks: 0, heldBy: rise };
    const because = `with ${limit} in progress the event loop is idle for ${percent(1 - row.shares[limit])} of the time`;
    return { ...known, limit: Math.min(wanted, 2 * limit), fewerLooks: 0, because };
  }
  const needed = enough(row, bounds, SLACK);
  if (needed >= limit) return { ...known, fewerLooks: 0 };
  const fewerLooks = state.fewerLooks + 1;
  if (fewerLooks < FEWER_LOOKS) return { ...known, fewerLooks };
  const because = `${needed} in progress keep the event loop busy for ${percent(row.shares[needed])} of the time`;
  const next = limit - Math.max(1, Math.floor((limit - needed) * FEWER_SHARE));
  return { ...known, limit: next, fewerLooks: FEWER_LOOKS - 1, because };
}

/** Share of the time that the event loop was busy, by number of requests in progress, as it was measured. */
function measuredShares({ timeMs, idleMs }) {
  const entries = [...timeMs.keys()].filter((n) => timeMs[n] >= EVIDENCE_MS / 10);
  return Object.fromEntries(entries.map((n) => [n, Math.round(100 * (1 - idleMs[n] / timeMs[n])) / 100]));
}

module.exports = { decide, firstState, learn, measuredShares, withBounds };
