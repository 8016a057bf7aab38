/**
 * Work that nobody waits for: how long the event loop was busy while no request was in progress. After a response the
 * program may go on (a revalidation, a promise that nobody awaits), and the next request on this worker pays for it.
 * Looked at when the first request comes and the last one ends: that costs a request two readings of a counter.
 */
'use strict';

const { performance } = require('node:perf_hooks');

class BackgroundWork {
  #metrics;
  #inProgress = 0;
  #activeMs = 0;

  constructor(metrics) {
    this.#metrics = metrics;
  }

  /** A request begins. */
  begin() {
    if (this.#inProgress === 0) this.look();
    this.#inProgress += 1;
  }

  /** It has ended. */
  end() {
    this.#inProgress -= 1;
    if (this.#inProgress === 0) this.#activeMs = performance.eventLoopUtilization().active;
  }

  /** Adds what there was since the last look; for each beat as well, so that the metric does not lag behind. */
  look() {
    if (this.#inProgress > 0) return;
    const { active } = performance.eventLoopUtilization();
    // Before the first look: what the program did to start.
    if (this.#activeMs > 0) this.#metrics.backgroundMs[0] += active - this.#activeMs;
    this.#activeMs = active;
  }
}

module.exports = { BackgroundWork };
