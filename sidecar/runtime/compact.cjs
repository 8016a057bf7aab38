/**
 * Gives back the memory that a start leaves behind: V8 collects when it runs out of room, which an idle isolate hardly
 * ever does.
 */
'use strict';

/** When what has been loaded for the start is garbage. */
const AFTER_MS = 2_000;
/** Within so long after that. */
const SPREAD_MS = 10_000;
/** How often an isolate that lives long collects. */
const EVERY_MS = 30_000;

/** Collects the garbage of this thread once, and shrinks its heap: 2 to 3 MB of an isolate [measured]. */
function compact() {
  try {
    const { Session } = require('node:inspector');
    const session = new Session();
    session.connect();
    // Within the answer it would hang: the collection is still on the stack.
    session.post('HeapProfiler.collectGarbage', () => setImmediate(() => session.disconnect()));
  } catch {
    // Node.js without inspector, or forbidden: a few MB more.
  }
}

/**
 * Once, soon after the start. At a time of its own: the workers of a pod start together, one collection takes 12 to 18
 * ms of CPU [measured], and those of 15 workers at once held up renders.
 */
function compactSoon() {
  setTimeout(compact, AFTER_MS + Math.random() * SPREAD_MS);
}

/** Soon after the start, and regularly from then on. */
function compactRegularly() {
  setTimeout(
    () => {
      compact();
      setInterval(compact, EVERY_MS);
    },
    AFTER_MS + Math.random() * EVERY_MS,
  );
}

module.exports = { compactSoon, compactRegularly };
