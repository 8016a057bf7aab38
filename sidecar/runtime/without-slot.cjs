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
/** With more memory than this no further request loses its slot: the next render might be the end of the process. */
const MEMORY_SHARE_MAX = 0.9;
/**
 * A client that reads slowly may keep a slot for so long where it cannot be given back: as long as a render takes. That
 * of a handler may do so for as long as the handler may take.
 */
const HELD_MS = 30_000;
/**
 * What a worker waits for before it is replaced, beside what has not begun to answer. An event stream comes back by
 * itself, a download does not. But the worker takes no requests meanwhile, and a client may read as slowly as it likes.
 */
const STREAM_MS = 5_000;
const DOWNLOAD_MS = 30_000;

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
    for (const { beganAt, renderMs, seen } of this.#renders) {
      const openMs = seen.isEventStream ? STREAM_MS : DOWNLOAD_MS;
      if (now - beganAt < (seen.isOpen ? openMs : renderMs)) return true;
    }
    return false;
  }

  /**
   * Notes in `render.seen` how a render stands: what was so when it was seen first, and anew when it has begun to
   * answer; since when its client has not taken what there is.
   */
  #look(render) {
    const { response } = render;
    const isOpen = response.headersSent;
    const atMs = performance.now();
    if (render.seen?.isOpen !== isOpen) {
      const isEventStream = isOpen && EVENT_STREAM.test(response._header);
      render.seen = { atMs, idleMs: this.#metrics.idleMs[0], isOpen, isEventStream };
    }
    render.seen.unreadAtMs = response.writableLength > 0 ? (render.seen.unreadAtMs ?? atMs) : undefined;
    return render.seen;
  }

  #hasWaited({ atMs, idleMs }) {
    const ms = performance.now() - atMs;
    return ms >= WAITING_MS && this.#metrics.idleMs[0] - idleMs >= IDLE_SHARE * ms;
  }

  /** One with requests to itself keeps its slot for these. */
  #hasRoomFor({ parts }) {
    return parts.size === 0 && this.count < this.#max;
  }

  /**
   * At each beat: whether a render gives its slot back, because it has begun to answer and waits. One whose client
   * reads slowly waits, however busy the event loop is with others.
   */
  isDue(render) {
    const seen = this.#look(render);
    if (!seen.isOpen || !this.#hasRoomFor(render)) return false;
    return (seen.isEventStream || isUnread(seen, WAITING_MS) || this.#hasWaited(seen)) && hasMemory();
  }

  /** Whether the client of a render that is not due has read slowly for too long. */
  isHeld({ seen, isHandler, renderMs }) {
    return isUnread(seen, isHandler ? Math.max(HELD_MS, renderMs) : HELD_MS);
  }

  /** Whether the slot of a render that was looked at would be free if its client has gone. */
  isDueWithoutClient(render) {
    const { response, seen } = render;
    if (seen?.isOpen !== response.headersSent) return false;
    if (seen.isOpen) return performance.now() - seen.atMs >= WAITING_MS;
    return this.#hasRoomFor(render) && this.#hasWaited(seen) && hasMemory();
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

/** Whether there has been something to read for so long, and never nothing. */
function isUnread({ unreadAtMs }, ms) {
  return performance.now() - unreadAtMs >= ms; // undefined: NaN, which is no time
}

function hasMemory() {
  return process.memoryUsage.rss() <= MEMORY_SHARE_MAX * (memoryLimitBytes() ?? Number.POSITIVE_INFINITY);
}

module.exports = { WithoutSlot };
