/** What HAProxy has been told of the worker, for whoever must not act before it has. */
'use strict';

const { sleep } = require('./clock.cjs');
const { state } = require('./state.cjs');

const BUSY = 'down #busy';
const UNGUARDED = 'down #unguarded';
/** After HAProxy has been told "down": the time it needs to act on it. */
const ACKNOWLEDGED_MS = 100;
/** What must wait for that happens then even if no HAProxy has asked. */
const UNACKNOWLEDGED_MS = 500;

/** Resolves when HAProxy has been told that the worker is down, to true, or else after `limitMs`. */
function downAcknowledgedWithin(limitMs) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, limitMs, false);
    state.onDownAcknowledged = () => {
      state.onDownAcknowledged = undefined;
      clearTimeout(timer);
      resolve(true);
    };
  });
}

/** Resolves when HAProxy gives nothing to this worker any more, as far as one can tell. */
async function downAcknowledged() {
  if (await downAcknowledgedWithin(UNACKNOWLEDGED_MS)) await sleep(ACKNOWLEDGED_MS);
}

module.exports = { BUSY, ACKNOWLEDGED_MS, UNGUARDED, UNACKNOWLEDGED_MS, downAcknowledged, downAcknowledgedWithin };
