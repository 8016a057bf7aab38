/**
 * What HAProxy's questions hear: is the worker up, is it there, may its connections be kept. A question that would get
 * the same answer as the one before waits for news: HAProxy hears of a change at once, and asks once a second instead
 * of every 0.1 s, which would be half of what the runtime costs.
 */
'use strict';

/** A worker that is not up may come up without news: a server that cannot be watched is looked for at each question. */
const HOLD_DOWN_MS = 200;
/** A question so long after the last answer may come from a HAProxy that has just begun, and knows nothing. */
const KNOWS_MS = 300;

/** `performance` would load a part of Node.js that the supervisor does without. */
const nowMs = () => process.uptime() * 1000;

/** Whether an answer says "up": alone, or with the places of the worker (`up maxconn:3`). */
const saysUp = (answer) => answer === 'up' || answer.startsWith('up ');

/**
 * @param {{ answer(): Promise<string>, onAnswer(answer: string): void, holdDownMs?: number }} worker "up" or "down
 * #reason", either with a limit (auto-concurrency.cjs); what HAProxy has been told;
 *   how long a "down" waits
 * @param holdMs how long an answer waits for news: below `timeout check` (haproxy.cfg), with room for a supervisor or a
 * HAProxy that gets no CPU
 */
function agentOf({ answer, onAnswer = () => {}, holdDownMs = HOLD_DOWN_MS }, holdMs) {
  let last;
  let lastAtMs = 0;
  const waiting = new Set();

  /** The state may have changed. */
  function news() {
    for (const wake of waiting) wake();
  }

  function untilNews(socket, limitMs) {
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        waiting.delete(wake);
        resolve();
      };
      const timer = setTimeout(wake, limitMs);
      waiting.add(wake);
      socket.once('close', wake);
    });
  }

  /** Answers the question that came over `socket`. */
  async function ask(socket) {
    const askedAtMs = nowMs();
    const known = askedAtMs - lastAtMs < KNOWS_MS ? last : undefined;
    let current = await answer();
    if (current === known) {
      await untilNews(socket, saysUp(current) ? holdMs : holdDownMs);
      current = await answer();
    }
    // HAProxy has gone: the next one knows nothing.
    last = socket.destroyed ? undefined : current;
    lastAtMs = nowMs();
    if (socket.destroyed) return;
    onAnswer(current);
    // One write: HAProxy 3.0 reads past a limit that is not followed by the end of the line.
    socket.end(`${current}\n`);
  }

  return { ask, news };
}

module.exports = { agentOf, saysUp };
