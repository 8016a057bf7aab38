/** Notices an event loop that stands still, and finds out where it does. */
'use strict';

const { isRunning } = require('./child.cjs');
const { nowMs } = require('./clock.cjs');
const { log } = require('./log.cjs');
const { all } = require('./servers.cjs');
const { beatMs, stallMs, workerIndex } = require('./settings.cjs');
const stallLog = require('./stalls.cjs');
const { dispatch, state } = require('./state.cjs');
const { downAcknowledged } = require('./down-acknowledged.cjs');

/** Counts the supervisor's own time only: after a pause of the whole container nobody is stuck. */
function watch() {
  state.watchedAtMs = nowMs();
  setInterval(() => {
    const elapsed = Math.min(nowMs() - state.watchedAtMs, 2 * beatMs);
    state.watchedAtMs = nowMs();
    for (const server of all()) {
      server.silentMs += elapsed;
      if (isSilent(server) && !server.isStalled) dispatch('stalled', { server });
    }
  }, beatMs);
}

function isSilent({ silentMs, inspected, exempt }) {
  return silentMs >= stallMs && !inspected && !exempt;
}

/**
 * Finds out where a server stands still, while HAProxy hears that the worker is down: a kill without that costs the
 * next request as well.
 */
async function capture(server, { tellsFirst }) {
  const { pid, silentMs } = server;
  server.isStalled = true;
  const [found] = await Promise.all([stallLog.capture(pid, stallMs), tellsFirst ? downAcknowledged() : undefined]);
  log('stalled', { ...stallLog.record(pid, silentMs, found), worker: workerIndex });
  // It may have come back while it was to be killed.
  dispatch('captured', { server, isSilent: isRunning() && all().some(isSilent) });
  server.isStalled = false;
}

module.exports = { capture, watch };
