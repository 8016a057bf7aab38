/** This worker's turn to be the one of its pod that is replaced. */
'use strict';

const { takeLock } = require('./recycling.cjs');
const { state } = require('./state.cjs');

/** Others may be replaced after this time, however the replacement of this one goes. */
const TURN_MS = 60_000;

/** @returns false if another worker is being replaced, or this one is already */
async function takeTurn() {
  const release = await takeLock();
  if (release !== undefined) state.releaseTurn = release;
  return release !== undefined;
}

/** From now on it lasts no longer than that. */
function limitTurn() {
  const release = state.releaseTurn;
  setTimeout(() => state.releaseTurn === release && endTurn(), TURN_MS).unref();
}

/** Lets other workers of the pod take theirs. */
function endTurn() {
  state.releaseTurn?.();
  state.releaseTurn = undefined;
}

module.exports = { endTurn, limitTurn, takeTurn };
