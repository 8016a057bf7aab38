/** Signals of kubelet and of people: passed on to the worker; some end it for good. */
'use strict';

const { forward } = require('./child.cjs');
const { dispatch } = require('./state.cjs');

/** They mean "stop": no restart after them. */
const STOPS = ['SIGTERM', 'SIGINT', 'SIGQUIT'];
const OTHERS = ['SIGHUP', 'SIGUSR1', 'SIGUSR2'];

function handleSignals() {
  // Options that are meant for the program have listeners here, too: --heapsnapshot-signal=SIGUSR2.
  for (const signal of [...STOPS, ...OTHERS]) process.removeAllListeners(signal);
  for (const signal of STOPS) process.on(signal, () => dispatch('stop', { signal }));
  for (const signal of OTHERS) process.on(signal, () => forward(signal));
}

module.exports = { handleSignals };
