/** Responses whose connection has gone, while the program goes on with them. */
'use strict';

/** As they are before a test or a library replaces them. */
const { setTimeout, clearTimeout } = globalThis;
/** A response whose connection has ended in its middle: the program is told, and mostly never ends it by itself. */
const CUT_MS = 1_000;

/**
 * Calls `ended` once: when the program ends the response, or after so long, if `msMax` says so.
 */
function untilEnded(response, msMax, ended) {
  let isDone = false;
  const done = () => {
    if (isDone) return;
    isDone = true;
    clearTimeout(timer);
    // A library may have wrapped it since (compression, sessions).
    if (response.end === ending) response.end = originalEnd;
    ended();
  };
  const timer = msMax === undefined ? undefined : setTimeout(done, msMax);
  timer?.unref();
  const originalEnd = response.end;
  const ending = (...args) => {
    done();
    return originalEnd.apply(response, args);
  };
  response.end = ending;
}

module.exports = { CUT_MS, untilEnded };
