/**
 * Nobody waits any more for what the worker renders, and it does not end: something that it waits for does not answer.
 * A new process takes requests. Who hangs in all its places goes at once, all of a pod together if need be; who renders
 * something else drains first, one worker of the pod at a time.
 */
'use strict';

const { nowMs } = require('./clock.cjs');
const { drain, isIdle } = require('./draining.cjs');
const { ANSWER_MS } = require('./servers.cjs');
const { dispatch, phase, state } = require('./state.cjs');
const { ACKNOWLEDGED_MS } = require('./down-acknowledged.cjs');
const { endTurn, limitTurn, takeTurn } = require('./turn.cjs');
const { ask } = require('./watchers.cjs');

/** Ends with the event `abandoned` or `kept`. */
async function replace(server) {
  const isEmpty =
    isIdle(server) && nowMs() - (state.busyAcknowledgedSinceMs ?? Number.POSITIVE_INFINITY) >= ACKNOWLEDGED_MS;
  const isDrained = !isEmpty && (await drainInTurn());
  if (isEmpty || isDrained) {
    const answer = await ask(server.pid, 'requests', { limitMs: ANSWER_MS });
    const requests = answer?.requests?.map(({ id }) => id) ?? [];
    // It may have come to its end after all.
    if (server.overdue && ['up', 'draining'].includes(phase())) return dispatch('abandoned', { requests });
  }
  dispatch('kept');
  if (isDrained) endTurn();
}

async function drainInTurn() {
  if (!(await takeTurn())) return false;
  limitTurn();
  // A handler may take minutes: if each worker waited for its own, none would take requests.
  const { releaseTurn } = state;
  if (phase() === 'up' && (await drain(() => state.releaseTurn === releaseTurn))) return true;
  endTurn();
  return false;
}

module.exports = { replace };
