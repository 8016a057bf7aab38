/** All that the supervisor knows and that changes, in one place; the worker's life changes by events only. */
'use strict';

const { EventEmitter } = require('node:events');
const { nowMs } = require('./clock.cjs');
const { FIRST, next } = require('./lifecycle.cjs');

const state = {
  /** Where the worker is in its life (lifecycle.cjs): `dispatch` changes it, and nobody else. */
  life: FIRST,
  /** The process that was started last: the reaper where there is one, which starts the program. */
  child: undefined,
  /** Path of the helper that reaps orphans; undefined where it cannot run. */
  reaper: undefined,
  startedAtSeconds: 0,
  /** Names of Corelane's flags that NODE_OPTIONS of the program must not have (node-options.cjs). */
  leftOut: new Set(),
  launcherTimer: undefined,
  /** Servers that tell their heartbeat, by connection (servers.cjs). */
  servers: new Map(),
  /** When heartbeats were looked at last. */
  watchedAtMs: 0,
  /** When the last pause of the whole container or machine ended. */
  resumedAtMs: Number.NEGATIVE_INFINITY,
  /** When servers.cjs last logged that a server has as many requests without a slot as it may have. */
  toldWithoutSlotMs: Number.NEGATIVE_INFINITY,
  /** Since when a server that tells none accepts connections. */
  acceptsSinceMs: undefined,
  /**
   * Requests that one server may have at a time, as auto-concurrency.cjs or HAProxy's last check said; 0 if none has
   * said it.
   */
  limit: 0,
  /** What live.cjs has read last; undefined if there is nothing. */
  live: undefined,
  /** timeouts.render in milliseconds, as the live settings say; 0 if they do not. */
  renderMs: 0,
  /** Renders of a server that were given up and may go on without a place; undefined as long as nobody has said it. */
  asideMax: undefined,
  /** Called when HAProxy has been told that the worker is down. */
  onDownAcknowledged: undefined,
  /** Since when HAProxy knows that all places are taken; undefined when it does not. */
  busyAcknowledgedSinceMs: undefined,
  /**
   * What HAProxy has heard last of the guard; before the first question it may know the answer of an earlier
   * supervisor.
   */
  guardSaid: undefined,
  /** Whether somebody takes a profile or a heap snapshot (routes.cjs). */
  isTaking: () => false,
  /** Times that an event loop was declared stuck (stalls.cjs). */
  stalls: 0,
  /** Number of the last question to a watchdog thread (watchers.cjs). */
  lastQuestion: 0,
  /** What the process of the moment may have before it is replaced (recycling.cjs). */
  recycleLimits: undefined,
  /** Sends the pod's spans (spans.cjs). */
  spansThread: undefined,
  /** Ends this worker's turn to be the one of the pod that is replaced (turn.cjs). */
  releaseTurn: undefined,
};

/** Says `phase`, `blocked`, `guard`, `limit` or `without-slot` when that may have changed, and `waits` of a server. */
const news = new EventEmitter();

/** How what lifecycle.cjs wants is done, by name; supervise.cjs fills it. */
const effects = {};

/** Something has happened. */
function dispatch(type, facts) {
  const before = state.life.phase;
  const found = next(state.life, { type, atMs: nowMs(), ...facts });
  state.life = found.life;
  if (state.life.phase !== before) news.emit('phase');
  for (const [name, ...args] of found.effects) effects[name](...args);
}

function phase() {
  return state.life.phase;
}

module.exports = { dispatch, effects, news, phase, state };
