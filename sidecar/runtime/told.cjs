/** What HAProxy has been told of the worker, for whoever must not act before it has. */
'use strict';

const { sleep } = require('./clock.cjs');
const { state } = require('./state.cjs');

const BUSY = 'down #busy';
const UNGUARDED = 'down #unguarded';
/** After HAProxy has been told "down": the time it needs to act on it. */
const TOLD_MS = 100;
/** What must wait for that happens then even if no HAProxy has asked. */
const UNTOLD_MS = 500;

/** Resolves when HAProxy has been told that the worker is down, to true, or else after `limitMs`. */
function heard(limitMs) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, limitMs, false);
    state.onTold = () => {
      state.onTold = undefined;
      clearTimeout(timer);
      resolve(true);
    };
  });
}

/** Resolves when HAProxy gives nothing to this worker any more, as far as one can tell. */
async function told() {
  if (await heard(UNTOLD_MS)) await sleep(TOLD_MS);
}

module.exports = { BUSY, TOLD_MS, UNGUARDED, UNTOLD_MS, heard, told };
