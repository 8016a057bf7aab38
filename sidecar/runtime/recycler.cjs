/** Replaces the worker between two requests when it has had its share (recycling.cjs), and when it is its turn. */
'use strict';

const { killTree } = require('./child.cjs');
const { sleep } = require('./clock.cjs');
const { drain } = require('./draining.cjs');
const { log } = require('./log.cjs');
const recycling = require('./recycling.cjs');
const { ANSWER_MS, renderer } = require('./servers.cjs');
const { dispatch, phase, state } = require('./state.cjs');
const { endTurn, limitTurn, takeTurn } = require('./turn.cjs');
const { ask } = require('./watchers.cjs');

/** How often a worker is asked whether it is to be recycled. */
const CHECK_MS = 2_000;
/** Who has been refused looks again sooner, so that one worker cannot always be the first. */
const RETRY_MS = 200;
/** A recycled worker that takes longer to end is killed. */
const END_MS = 5_000;

async function watchRecycling() {
  let isRefused = false;
  for (;;) {
    await sleep(isRefused ? RETRY_MS : CHECK_MS);
    isRefused = (await checkRecycling()) === false;
  }
}

/** @returns false if the worker is due but may not be recycled now */
async function checkRecycling() {
  const server = renderer();
  if (phase() !== 'up' || !server || state.isTaking()) return undefined;
  const answer = recycling.needsCount ? await ask(server.pid, 'counts', { limitMs: ANSWER_MS }) : {};
  const ageMs = Date.now() - state.startedAtSeconds * 1000;
  const facts = { requests: answer?.requests ?? 0, ageMs, pid: server.pid };
  const reason = recycling.reasonToRecycle(state.recycleLimits, facts);
  if (!reason) return undefined;
  return recycle(reason, { ...facts, residentBytes: recycling.residentBytes(server.pid) });
}

/**
 * Replaces the worker because somebody asks for it: its files have changed, say.
 * @returns whether it has been told to end; false if another worker is being replaced, too few would be left, or it has
 * met with something else meanwhile
 */
async function recycleAsked() {
  const server = renderer();
  if (phase() !== 'up' || !server || state.isTaking()) return false;
  return recycle('asked', { pid: server.pid, residentBytes: recycling.residentBytes(server.pid) });
}

async function recycle(reason, facts) {
  if (!(await takeTurn())) return false;
  const isRecycled = await recycleInTurn(reason, facts);
  if (isRecycled) limitTurn();
  else endTurn();
  return isRecycled;
}

async function recycleInTurn(reason, facts) {
  if (!(await recycling.enoughWithoutMe()) || phase() !== 'up' || state.isTaking()) return false;
  log('recycle', { reason, ...facts });
  if (!(await drain())) return false;
  const ended = state.child;
  dispatch('recycled');
  // It is being replaced for a render that nobody waits for.
  if (state.life.cause !== 'recycled') return false;
  setTimeout(() => state.child === ended && killTree(), END_MS);
  return true;
}

module.exports = { recycleAsked, watchRecycling };
