/** What a stuck event loop was doing, and the last few times that it happened. */
'use strict';

const { isStopped, killBelow } = require('./processes.cjs');
const { summary } = require('./stack.cjs');
const { state } = require('./state.cjs');
const { ask } = require('./watchers.cjs');

/**
 * The stack of JavaScript comes at once, that of a native function when it returns: as long again as the stall, in
 * bounds.
 */
const CAPTURE_MIN_MS = 3_000;
const CAPTURE_MAX_MS = 10_000;
/** execSync and the like return when their child ends; by then it is certain that nothing else helps. */
const CHILDREN_MS = 1_000;
const HISTORY_MAX = 5;
/** HAProxy asks within seconds of a kill. */
const RECENT_MS = 60_000;
const UNKNOWN = 'a native function that does not return';

/** `{ time, pid, seconds, in, requests, stack }`, the newest last. */
const history = [];

/** Stops the event loop of `pid` where it is: `{ frames?, requests }`. The loop stays stopped. */
async function capture(pid, stallMs) {
  if (isStopped(pid)) return { requests: [], stopped: true };
  const found = { requests: [] };
  const timer = setTimeout(killBelow, CHILDREN_MS, pid);
  const limitMs = Math.min(CAPTURE_MAX_MS, Math.max(CAPTURE_MIN_MS, stallMs));
  const answer = await ask(pid, 'stack', { limitMs, onPart: (part) => Object.assign(found, part) });
  clearTimeout(timer);
  return { ...found, ...answer };
}

/** Notes one: from what `capture` has found. */
function record(pid, silentMs, { frames, requests, stopped, heldBy }) {
  state.stalls += 1;
  const stall = {
    time: new Date().toISOString(),
    pid,
    seconds: Math.round(silentMs / 100) / 10,
    in: frames?.length ? summary(frames) : stopped ? 'a process that is stopped by a signal' : (heldBy ?? UNKNOWN),
    requests: requests.map(({ id }) => id),
    stack: frames ?? [],
  };
  history.push(stall);
  if (history.length > HISTORY_MAX) history.shift();
  return stall;
}

/** What the whole cluster may know of them: the same as metrics and Events tell. Ids and stacks stay in the pod. */
function summaries() {
  return history.map(({ time, seconds, in: place }) => ({ time, seconds, in: place }));
}

/**
 * The stall that has just cost a request its render, or undefined. Clients choose ids: one of long ago is another
 * request.
 */
function stallOf(requestId) {
  const last = history.findLast(({ requests }) => requests.includes(requestId));
  return last && Date.now() - Date.parse(last.time) < RECENT_MS ? last : undefined;
}

module.exports = { capture, history, record, stallOf, summaries, total: () => state.stalls };
