/**
 * Goes into the workers of `corelane run` beside the worker runtime, so that somebody can see what a bad render does: a
 * signal that no program uses makes its next request turn for ever, another one ends the process. Never in a cluster.
 * As text, because the command line is also a bundle of its own.
 */

/** What can be done to the program of a worker, and by which signal. */
export const FAULT_SIGNALS = {
  kill: 'SIGKILL',
  freeze: 'SIGSTOP',
  loop: 'SIGPWR',
  exit: 'SIGSTKFLT',
} as const;
export type WorkerFault = keyof typeof FAULT_SIGNALS;

/**
 * A module that a worker is to load. The loop begins in the next request, where the program would: what a worker has
 * not begun is rendered by another one. (With something in it: nobody can pause where there is no statement.)
 */
export const FAULTS_MODULE = `'use strict';
const { Server } = require('node:http');
const { emit } = Server.prototype;
let isArmed = false;
function endlessLoop() {
  for (;;) Math.random();
}
Server.prototype.emit = function emitOrLoop(event, ...args) {
  if (isArmed && event === 'request') endlessLoop();
  return emit.call(this, event, ...args);
};
process.on('${FAULT_SIGNALS.loop}', () => { isArmed = true; });
process.on('${FAULT_SIGNALS.exit}', () => process.exit(0));
`;
