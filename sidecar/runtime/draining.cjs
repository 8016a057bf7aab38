/** Takes the worker out of rotation while its process lives on, and brings it back. */
'use strict';

const { sleep } = require('./clock.cjs');
const { all } = require('./servers.cjs');
const { dispatch, phase, state } = require('./state.cjs');
const { downAcknowledged } = require('./down-acknowledged.cjs');

/** How often a worker that drains is looked at. */
const DRAIN_CHECK_MS = 100;
const UNDRAIN_CHECK_MS = 20;
/** Beats without a request after HAProxy has been told: whatever it has sent before has been begun, and ended. */
const IDLE_BEATS = 2;

/**
 * Takes the worker out of rotation and waits until it has nothing left to do.
 * @param isWanted asked meanwhile; `undrain` is the caller's, however it ends
 * @returns false if something else has happened meanwhile (it died, it is stuck, the pod stops), or nobody wants it any
 * more
 */
async function drain(isWanted = () => true) {
  dispatch('drain');
  const drained = state.child;
  const goesOn = () => phase() === 'draining' && state.child === drained && state.servers.size > 0 && isWanted();
  await downAcknowledged();
  for (const server of all()) server.idleBeats = 0;
  while (goesOn() && !all().every(isIdle)) await sleep(DRAIN_CHECK_MS);
  return goesOn();
}

function isIdle({ idleBeats }) {
  return idleBeats >= IDLE_BEATS;
}

/**
 * Ends a drain after which the worker goes on: when its event loop turns, and not before. Else the watchdog ends it.
 */
async function undrain(server) {
  const drained = state.child;
  const { beats } = server;
  const isMine = () => phase() === 'draining' && state.child === drained;
  while (isMine() && all().includes(server) && server.beats === beats) await sleep(UNDRAIN_CHECK_MS);
  if (isMine()) dispatch('undrained');
}

module.exports = { drain, isIdle, undrain };
