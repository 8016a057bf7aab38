/**
 * Requests that are no renders (spec.classes): those of a class have places of their own in a worker, beside the one of
 * its render. HAProxy says which class a request is of, and keeps to the same limit; this one counts as well what goes
 * on when its client has gone.
 */
'use strict';

const { DURATION_BUCKETS, observe } = require('./shared-metrics.cjs');
const { keepLength } = require('./length.cjs');
const { CUT_MS, untilEnded } = require('./given-up.cjs');

/** A response that has been begun may take so long to come to its end before it counts as one that has none. */
const STREAM_MS = 5_000;

class ClassPlaces {
  #limit;
  #index;
  #begin;
  #metrics;
  #abandonedMs;
  #giveTag;
  #responses = new Map();
  /** By response, in their order. */
  #waiting = new Map();

  /**
   * @param index of the class, for its metrics
   * @param begin notes a request; gives what is to be called at its end, or undefined if it must not begin
   * @param abandonedMs how long a request without connection keeps its place at most
   * @param giveTag gives a response an ETag, or nothing
   */
  constructor({ limit, index, metrics, abandonedMs, giveTag, begin }) {
    this.#limit = limit;
    this.#index = index;
    this.#begin = begin;
    this.#metrics = metrics;
    this.#abandonedMs = abandonedMs;
    this.#giveTag = giveTag;
  }

  /** Somebody waits for an answer, or for the rest of one that has an end. */
  get isBusy() {
    if (this.#waiting.size > 0) return true;
    const before = performance.now() - STREAM_MS;
    for (const [response, beganAt] of this.#responses) if (!response.headersSent || beganAt > before) return true;
    return false;
  }

  enter(run, request, response) {
    if (this.#responses.size < this.#limit) return this.#run(run, request, response);
    this.#metrics.classWaited[this.#index] += 1;
    this.#waiting.set(response, { run, request });
    // As often as somebody likes: HAProxy has a place again for each that goes, and sends the next one.
    response.once('close', () => this.#waiting.delete(response));
    return true;
  }

  #next() {
    for (const [response, { run, request }] of this.#waiting) {
      if (this.#responses.size >= this.#limit) return;
      this.#waiting.delete(response);
      if (response.destroyed || response.closed || request.socket?.destroyed) continue;
      this.#run(run, request, response);
    }
  }

  #run(run, request, response) {
    const metrics = this.#metrics;
    const noteEnd = this.#begin(request, response);
    if (noteEnd === undefined) return true;
    const beganAt = performance.now();
    this.#responses.set(response, beganAt);
    metrics.classRequests[this.#index] += 1;
    metrics.classInFlight[this.#index] = this.#responses.size;
    const end = () => {
      if (!this.#responses.delete(response)) return;
      metrics.classInFlight[this.#index] = this.#responses.size;
      noteEnd();
      const offset = this.#index * (DURATION_BUCKETS.length + 2);
      observe(metrics.classDuration, DURATION_BUCKETS, (performance.now() - beganAt) / 1000, offset);
      if (this.#waiting.size > 0) setImmediate(() => this.#next());
    };
    keepLength(request, response);
    this.#giveTag?.(request, response);
    response.once('finish', end);
    response.once('close', () => {
      if (response.writableEnded) end();
      else untilEnded(response, response.headersSent ? CUT_MS : this.#abandonedMs, end);
    });
    return run();
  }
}

module.exports = { ClassPlaces };
