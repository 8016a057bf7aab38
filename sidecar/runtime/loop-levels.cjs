/**
 * How long the event loop had so many renders in progress, and for how much of that it was idle (`concurrency: Auto`).
 * Written down at each begin and end of a render and at each beat, in whose callbacks the loop's own counter of idle
 * time is exact. Costs a render two readings of it, of 0.15 microseconds each.
 */
'use strict';

const { performance } = require('node:perf_hooks');
const { AUTO_LEVELS_MAX } = require('./shared-metrics.cjs');

class LoopLevels {
  #metrics;
  #before = performance.eventLoopUtilization();

  constructor(metrics) {
    this.#metrics = metrics;
  }

  /** How long the event loop was idle, as of the last call. */
  get idleMs() {
    return this.#before.idle;
  }

  /** There were `inProgress` renders since the last call. */
  note(inProgress) {
    const { levelMs, levelIdleMs } = this.#metrics;
    const now = performance.eventLoopUtilization();
    const level = Math.min(inProgress, AUTO_LEVELS_MAX);
    const idleMs = now.idle - this.#before.idle;
    levelMs[level] += idleMs + now.active - this.#before.active;
    levelIdleMs[level] += idleMs;
    this.#before = now;
  }
}

module.exports = { LoopLevels };
