/**
 * Requests that go on without a render slot: event streams, and responses that stay open although the event loop has
 * time, because they wait for data or for a client that reads slowly. The worker may have one more render for each of
 * them, up to a bound (docs/adr/0060-streams-hold-no-slot.md).
 */
'use strict';

const { memoryLimitBytes } = require('./cgroup.cjs');

const EVENT_STREAM = /\r\ncontent-type: *text\/event-stream/i;
/** Any other response has to be open for so long, while the event loop was idle for this part of the time. */
const OPEN_MS = 1_000;
const IDLE_SHARE = 0.5;
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
      if (now - beganAt < (open.isEventStream ? STREAM_MS : DOWNLOAD_MS)) return true;
    return false;
  }

  /** At each beat: whether a render has given its slot back by now. One with requests to itself keeps it for these. */
  isDue(render) {
    const { response, parts } = render;
    if (!response.headersSent) return false;
    const now = performance.now();
    const [idleMs] = this.#metrics.idleMs;
    render.open ??= { atMs: now, idleMs, isEventStream: EVENT_STREAM.test(response._header) };
    if (parts.size > 0 || this.count >= this.#max) return false;
    const { open } = render;
    const ms = now - open.atMs;
    const isWaiting = ms >= OPEN_MS && idleMs - open.idleMs >= IDLE_SHARE * ms;
    return (open.isEventStream || isWaiting) && hasMemory();
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
