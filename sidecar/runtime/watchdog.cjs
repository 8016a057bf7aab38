/** Notices an event loop that stands still, and finds out where it does. */
'use strict';

const { isRunning } = require('./child.cjs');
const { nowMs, sleep } = require('./clock.cjs');
const { log } = require('./log.cjs');
const { holderOf } = require('./processes.cjs');
const { all, sinceLookMs } = require('./servers.cjs');
const { beatMs, stallMs, workerIndex } = require('./settings.cjs');
const stallLog = require('./stalls.cjs');
const { dispatch, state } = require('./state.cjs');
const { downAcknowledged } = require('./down-acknowledged.cjs');

/** A heap snapshot of 1 GB takes a minute. What holds an event loop for longer than this counts as stuck. */
const HELD_MS_MAX = 300_000;

/** Counts the supervisor's own time only: after a pause of the whole container nobody is stuck. */
function watch() {
  state.watchedAtMs = nowMs();
  setInterval(() => {
    const elapsed = sinceLookMs();
    state.watchedAtMs = nowMs();
    for (const server of all()) {
      server.silentMs += elapsed;
      if (isSilent(server) && !server.isStalled) dispatch('stalled', { server });
    }
  }, beatMs);
}

function isSilent({ silentMs, heldMs, inspected, exempt }) {
  return silentMs - heldMs >= stallMs && !inspected && !exempt;
}

/**
 * Finds out where a server stands still, while HAProxy hears that the worker is down: a kill without that costs the
 * next request as well.
 */
async function capture(server, { tellsFirst }) {
  server.isStalled = true;
  const [stuck] = await Promise.all([whereItIsStuck(server), tellsFirst ? downAcknowledged() : undefined]);
  if (stuck) {
    const { silentMs, found } = stuck;
    log('stalled', { ...stallLog.record(server.pid, silentMs, found), worker: workerIndex });
    // It may have come back while it was to be killed.
    dispatch('captured', { server, isSilent: isRunning() && all().some(isSilent) });
  }
  server.isStalled = false;
}

/**
 * Waits for as long as a debugger or a heap snapshot holds the event loop of a server. Undefined if the loop turns
 * again, or the process ends.
 */
async function whereItIsStuck(server) {
  const { pid, beats } = server;
  const standsStill = () => isRunning() && all().includes(server) && server.beats === beats;
  for (; standsStill(); await sleep(beatMs)) {
    if (!isSilent(server)) continue;
    const { silentMs, heldMs } = server;
    const found = await holderOrStack(server);
    if (!found.heldBy || heldMs >= HELD_MS_MAX) return { silentMs: silentMs - heldMs, found };
    if (heldMs === 0) log('held', { pid, by: found.heldBy });
    // After the hold the program has its whole time again.
    server.heldMs = server.silentMs;
  }
  return undefined;
}

/** `{ heldBy }`, or what stallLog.capture finds, which may be a debugger as well. */
async function holderOrStack({ pid, heldMs, takesSnapshot }) {
  const heldBy = takesSnapshot ? 'a heap snapshot' : holderOf(pid);
  return heldBy && heldMs < HELD_MS_MAX ? { heldBy } : stallLog.capture(pid, stallMs);
}

module.exports = { capture, watch };
