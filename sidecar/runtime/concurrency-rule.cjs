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
/**
 * The last work alone raises it to the double: a dependency that has become slow fills places at once. If for so much
 * work half as many would have done, and mostly there were no more, the dependency is back, and what was before is not
 * remembered.
 */
const LATELY_MS = 1_000;
const LATELY_FACTOR = 2;
const FORGET_MS = 3_000;
const MOSTLY = 0.9;
/** Fewer places must do for so many looks in a row. */
const FEWER_LOOKS = 5;
/** Then by this part of what is too much, and at least by one. */
const FEWER_SHARE = 0.25;

/**
 * @param bounds `{ min, max }`
 * @param start the median of the fleet, if it is known
 * @returns the state before anything was measured
 */
function firstState({ min, max }, start = min) {
  const levels = max + 1;
  return {
    limit: Math.min(Math.max(start, min), max),
    /** By number of requests in progress. */
    timeMs: new Array(levels).fill(0),
    idleMs: new Array(levels).fill(0),
    /** The same of the last work. */
    lately: { timeMs: new Array(levels).fill(0), idleMs: new Array(levels).fill(0) },
    /** Work since the last look. */
    freshMs: 0,
    /** Work in a row that has done with half as many. */
    fewerLatelyMs: 0,
    /** Looks in a row in which fewer places would have done. */
    fewerLooks: 0,
    /** Time that requests wait, for each second of CPU; undefined before there is evidence. */
    waitRatio: undefined,
    /** What the last change was for: for people. */
    because: start > min ? 'about so many is the median of the fleet' : undefined,
    /** What keeps it from rising although it would: `memory`, `cpu` ...; undefined if nothing does. */
    heldBy: undefined,
  };
}

/** The same state for other bounds. */
function withBounds(state, { min, max }) {
  const levels = (known) => Array.from({ length: max + 1 }, (_unused, n) => known[n] ?? 0);
  const limit = Math.min(Math.max(state.limit, min), max);
  const because = limit === state.limit ? state.because : `the bounds are ${min} and ${max} now`;
  const known = ({ timeMs, idleMs }) => ({ timeMs: levels(timeMs), idleMs: levels(idleMs) });
  return { ...state, limit, because, fewerLooks: 0, ...known(state), lately: known(state.lately) };
}

/** What was measured since the last look, by number of requests in progress, is added to what is known. */
function learn(state, { timeMs, idleMs }) {
  const freshMs = timeMs.reduce((sum, ms, n) => sum + (n > 0 ? ms : 0), 0);
  const add = (before, fresh, kept) => before.map((ms, n) => ms * kept + (n > 0 ? (fresh[n] ?? 0) : 0));
  const after = (known, memoryMs) => {
    const kept = Math.exp(-freshMs / memoryMs);
    return { timeMs: add(known.timeMs, timeMs, kept), idleMs: add(known.idleMs, idleMs, kept) };
  };
  return { ...state, ...after(state, MEMORY_MS), lately: after(state.lately, LATELY_MS), freshMs };
}

const sumOf = (values) => values.reduce((sum, value) => sum + value, 0);

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

/** What the last work alone says; undefined if there is too little of it. */
function rowLately({ lately: { timeMs, idleMs } }, bounds) {
  return sumOf(timeMs) < EVIDENCE_MS ? undefined : bestRow(tableFor(bounds.max), timeMs, idleMs);
}

/**
 * Forgets all but the last work, if that has long been of another sort. A loop that is busy with all that it may have
 * shows nothing: any number would look like enough.
 */
function forget(state, wantedLately) {
  const { limit, lately, freshMs } = state;
  const half = limit / LATELY_FACTOR;
  const mostlyHalf = sumOf(lately.timeMs.slice(0, half + 1)) >= MOSTLY * sumOf(lately.timeMs);
  const fewerLatelyMs = wantedLately <= half && mostlyHalf ? state.fewerLatelyMs + freshMs : 0;
  if (fewerLatelyMs < FORGET_MS) return { ...state, fewerLatelyMs };
  return { ...state, ...lately, fewerLatelyMs: 0, fewerLooks: FEWER_LOOKS - 1 };
}

const percent = (share) => `${Math.round(100 * share)} %`;

/**
 * The next state.
 * @param holds.rise why it may not rise, if so; a name for metrics
 * @param holds.fall why it must fall, if so; a sentence
 */
function decide(before, bounds, { rise, fall } = {}) {
  const { limit } = before;
  if (fall) {
    const next = Math.max(bounds.min, limit - 1);
    return { ...before, limit: next, because: next < limit ? fall : before.because, fewerLooks: 0, heldBy: rise };
  }
  if (sumOf(before.timeMs) < EVIDENCE_MS) return { ...before, heldBy: undefined };
  const last = rowLately(before, bounds);
  const wantedLately = last ? enough(last, bounds, 0) : limit;
  const state = forget(before, wantedLately);
  const row = bestRow(tableFor(bounds.max), state.timeMs, state.idleMs);
  const known = { ...state, waitRatio: row.ratio, heldBy: undefined };
  const rising = wantedLately >= Math.max(LATELY_FACTOR * limit, enough(row, bounds, 0)) ? last : row;
  const wanted = enough(rising, bounds, 0);
  if (wanted > limit) {
    if (rise) return { ...known, fewerLooks: 0, heldBy: rise };
    const because = `with ${limit} in progress the event loop is idle for ${percent(1 - rising.shares[limit])} of the time`;
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
