/**
 * Requests that may change something (POST and others), until the program ends them or their time is over. A pod that
 * stops and a worker that is to be replaced wait for them, whether their clients wait or have left. Their place in the
 * worker may be another's before that: in a class it is free after timeouts.render.
 */
'use strict';

const { CUT_MS, untilEnded } = require('./given-up.cjs');

class Handlers {
  /** Each with the time at which it is over. Nothing in here refers to a response. */
  #handlers = new Set();

  /**
   * A handler begins.
   * @param ms how long it may take
   */
  add(response, ms) {
    const handler = { untilMs: performance.now() + ms };
    const end = () => this.#handlers.delete(handler);
    this.#handlers.add(handler);
    response.once('finish', end);
    response.once('close', () => {
      if (response.writableEnded) end();
      else untilEnded(response, response.headersSent ? CUT_MS : undefined, end);
    });
  }

  /** Whether one runs. */
  get isBusy() {
    const now = performance.now();
    for (const handler of this.#handlers) {
      if (now < handler.untilMs) return true;
      this.#handlers.delete(handler);
    }
    return false;
  }
}

module.exports = { Handlers };
