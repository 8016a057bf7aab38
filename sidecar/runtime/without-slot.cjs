/**
 * Requests that go on without a render slot: event streams, responses that stay open although the event loop has time,
 * because they wait for data or for a client that reads slowly, and renders that wait although their client has gone.
 * The worker may have one more render for each of them, up to a bound (docs/adr/0060-streams-hold-no-slot.md).
 */
'use strict';

const { memoryLimitBytes } = require('./cgroup.cjs');

const EVENT_STREAM = /\r\ncontent-type: *text\/event-stream/i;
/** A request waits if the event loop was idle for this part of its time, and that is no less than this. */
const WAITING_MS = 1_000;
const IDLE_SHARE = 0.5;
/** Renders without a client all compute when what they wait for answers: no more than so many at a time. */
const WITHOUT_CLIENT_MAX = 8;
/** With more memory than this no further request loses its slot: the next render might be the end of the process. */
const MEMORY_SHARE_MAX = 0.9;
/** What a worker waits for before it is replaced: an event stream comes back by itself, a download does not. */
const STREAM_MS = 5_000;
const DOWNLOAD_MS = 300_000;

class WithoutSlot {
  #renders = new Set();
  #metrics;
  #max;
  #onChange;

  /**
   * @param metrics `idleMs` is the idle time of the event loop as of the last beat
   * @param max how many there may be at a time
   * @param onChange called with their number
   */
  constructor(metrics, max, onChange) {
    this.#metrics = metrics;
    this.#max = max;
    this.#onChange = onChange;
  }

  get count() {
    return this.#renders.size;
  }

  /** Whether a worker that is to be replaced waits for one of them. */
  get isBusy() {
    const now = performance.now();
    for (const { beganAt, open } of this.#renders)
      if (now - beganAt < (open?.isEventStream ? STREAM_MS : DOWNLOAD_MS)) return true;
    return false;
  }

  /** The present, for `#hasWaitedSince`. */
  mark() {
    return { atMs: performance.now(), idleMs: this.#metrics.idleMs[0] };
  }

  #hasWaitedSince({ atMs, idleMs }) {
    const ms = performance.now() - atMs;
    return ms >= WAITING_MS && this.#metrics.idleMs[0] - idleMs >= IDLE_SHARE * ms;
  }

  /** One with requests to itself keeps its slot for these. */
  #hasRoomFor({ parts }) {
    return parts.size === 0 && this.count < this.#max;
  }

  /** At each beat: whether a render has given its slot back by now. */
  isDue(render) {
    const { response } = render;
    if (!response.headersSent) return false;
    render.open ??= { ...this.mark(), isEventStream: EVENT_STREAM.test(response._header) };
    if (!this.#hasRoomFor(render)) return false;
    return (render.open.isEventStream || this.#hasWaitedSince(render.open)) && hasMemory();
  }

  /**
   * Whether a render gives its slot back if its client has gone.
   * @param render `begun` is what `mark` said at its begin
   */
  isDueWithoutClient(render) {
    if (render.response.headersSent || !this.#hasRoomFor(render)) return false;
    const before = [...this.#renders].filter(({ response }) => !response.headersSent).length;
    return before < WITHOUT_CLIENT_MAX && this.#hasWaitedSince(render.begun) && hasMemory();
  }

  add(render) {
    this.#renders.add(render);
    this.#tell();
  }

  delete(render) {
    if (this.#renders.delete(render)) this.#tell();
  }

  #tell() {
    this.#metrics.withoutSlot[0] = this.count;
    this.#onChange(this.count);
  }
}

function hasMemory() {
  return process.memoryUsage.rss() <= MEMORY_SHARE_MAX * (memoryLimitBytes() ?? Number.POSITIVE_INFINITY);
}

module.exports = { WithoutSlot };
