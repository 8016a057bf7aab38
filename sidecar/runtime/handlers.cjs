/**
 * Requests that may change something (POST and others), until the program ends them or their time is over. A pod that
 * stops and a worker that is to be replaced wait for them, whether their clients wait or have left.
 */
'use strict';

class Handlers {
  /** Each with the time at which it is over. */
  #handlers = new Set();

  /**
   * A handler begins.
   * @param ms how long it may take
   * @returns what is to be called at its end
   */
  begin(ms) {
    const handler = { untilMs: performance.now() + ms };
    this.#handlers.add(handler);
    return () => this.#handlers.delete(handler);
  }

  /** Whether one runs. */
  get isBusy() {
    const now = performance.now();
    for (const { untilMs } of this.#handlers) if (now < untilMs) return true;
    return false;
  }
}

module.exports = { Handlers };
