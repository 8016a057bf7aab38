/** From "a server listens" to "the worker takes requests". */
'use strict';

const begun = require('./request-journal.cjs');
const { nowMs, sleep } = require('./clock.cjs');
const { accepts } = require('./health.cjs');
const { UNGUARDED, UNACKNOWLEDGED_MS } = require('./down-acknowledged.cjs');
const { isGuarded } = require('./servers.cjs');
const { supervisor, workerPort } = require('./settings.cjs');
const { dispatch, phase, state } = require('./state.cjs');
const warmup = require('./warmup.cjs');
const { connected } = require('./watchers.cjs');

/** A worker waits so long for its watchdog thread before it takes requests without one. */
const THREAD_MS = 2_000;
/** A server that accepts for so long without a heartbeat will have none. */
const UNWATCHED_MS = 2_000;
const GUARD_CHECK_MS = 10;

/** The worker takes requests when its server is watched and HAProxy knows whether it is guarded. */
async function lookWhetherReady({ pid }) {
  await connected(pid, THREAD_MS);
  await guardTold();
  if (state.servers.size > 0) listening();
}

function listening() {
  dispatch('listening', { isCold: warmup.isConfigured, isWatched: state.servers.size > 0 });
}

/**
 * A worker that is not guarded, or not yet, must not be up as long as HAProxy may still believe in the guard of the one
 * before.
 */
async function guardTold() {
  const limitMs = nowMs() + UNACKNOWLEDGED_MS;
  while (state.guardSaid !== UNGUARDED && !isGuarded() && nowMs() < limitMs) await sleep(GUARD_CHECK_MS);
}

async function warmUp() {
  const warmed = state.child;
  const goesOn = () => phase() === 'warming' && state.child === warmed;
  const result = await warmup.warmUp(workerPort, goesOn);
  if (goesOn()) dispatch('warm', { warmed: result, isWatched: state.servers.size > 0 });
}

/** Up for certain; a server that cannot be watched (not made by node:net) counts when it has accepted for a while. */
async function isUp() {
  const mayBeUnwatched = phase() === 'starting' && state.servers.size === 0 && state.life.cause !== 'recycled';
  if (mayBeUnwatched && workerPort > 0) await lookForUnwatched();
  return phase() === 'up';
}

async function lookForUnwatched() {
  if (!(await accepts(workerPort))) {
    state.acceptsSinceMs = undefined;
    return;
  }
  state.acceptsSinceMs ??= nowMs();
  if (state.servers.size > 0 || nowMs() - state.acceptsSinceMs < UNWATCHED_MS) return;
  begun.expectJournalOf(supervisor, undefined);
  await guardTold();
  listening();
}

module.exports = { isUp, lookWhetherReady, warmUp };
