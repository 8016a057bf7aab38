/**
 * Renders that were given up and only wait for something that does not answer (`concurrency: Auto`): they are set aside
 * from the places of the worker. So many at a time, as the supervisor says; each counts until the program ends it, or
 * until nothing refers to its response any more, so that nobody can.
 */
'use strict';

const { untilEnded } = require('./given-up.cjs');

/** From here on the event loop had time, so that it was not the CPU that the render wanted. */
const IDLE_SHARE = 0.05;

class SetAside {
  /** How many there may be at a time. */
  max = 0;
  #count = 0;
  #levels;
  #onChange;
  /** Forgets those whose response is garbage. */
  #dropped = new FinalizationRegistry((forget) => forget());

  /**
   * @param levels loop-levels.cjs; undefined: none is ever set aside
   * @param onChange called with their number
   */
  constructor(levels, onChange) {
    this.#levels = levels;
    this.#onChange = onChange;
  }

  get count() {
    return this.#count;
  }

  /** How many more there may be. */
  get room() {
    return this.#levels === undefined ? 0 : Math.max(0, this.max - this.#count);
  }

  /** What `waits` needs to know of a render that begins now. */
  begin() {
    return this.#levels?.idleMs;
  }

  /**
   * Whether a render that had its time has spent it waiting. One with parts of its own goes on, and so does one that
   * has begun to answer.
   * @param idleMs what `begin` has given
   */
  waits({ beganAt, renderMs, response, parts, idleMs }) {
    const ms = performance.now() - beganAt;
    if (ms < renderMs || response.headersSent || parts === undefined || parts.size > 0) return false;
    return this.#levels !== undefined && this.#levels.idleMs - idleMs >= IDLE_SHARE * ms;
  }

  add(response) {
    const forget = this.#forgetter();
    // Nothing that outlives the response may refer to it.
    untilEnded(response, undefined, forget);
    this.#dropped.register(response, forget);
  }

  #forgetter() {
    let isThere = true;
    this.#count += 1;
    this.#onChange(this.#count);
    return () => {
      if (!isThere) return;
      isThere = false;
      this.#count -= 1;
      this.#onChange(this.#count);
    };
  }
}

module.exports = { SetAside };
