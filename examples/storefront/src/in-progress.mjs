/**
 * Counts the requests that are in progress in this process. A request is in progress from its `request` event until its
 * response has left (or its client has) *and* its handler is done with it: a render whose client went away still keeps
 * the process busy, so it still counts.
 *
 * @returns {{ enter: (response: import('node:http').ServerResponse) => Entry }} the counter
 *
 * @typedef {object} Entry one request
 * @property {() => number} maxSeen the most requests in progress at any moment of this request's life, itself included
 * @property {() => void} handled to be called before the response is ended, when no work is left to do
 */
export function createInProgress() {
  const running = new Set();
  return {
    enter(response) {
      const entry = { max: 0, isHandled: false, isClosed: false };
      const leaveWhenDone = () => {
        if (entry.isHandled && entry.isClosed) running.delete(entry);
      };
      const close = () => {
        entry.isClosed = true;
        leaveWhenDone();
      };
      running.add(entry);
      // The newcomer overlaps with all the others, and they with it.
      for (const other of running) other.max = Math.max(other.max, running.size);
      response.once('finish', close);
      response.once('close', close);
      return {
        maxSeen: () => entry.max,
        handled: () => {
          entry.isHandled = true;
          leaveWhenDone();
        },
      };
    },
  };
}
