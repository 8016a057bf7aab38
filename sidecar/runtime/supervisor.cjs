/**
 * Enters every Node.js process of a worker container through NODE_OPTIONS (--require). docs/runtime.md tells what for.
 *
 * The container's first Node process stays as supervisor and runs the user's program as its child; a process below a
 * supervisor only gets worker.cjs. Everything else (a script run by `kubectl exec`, a version that is too old) runs as
 * if this file were not there: whatever goes wrong here must not keep the user's program from running.
 */
'use strict';

const { readFileSync } = require('node:fs');
const Module = require('node:module');
const { isMainThread } = require('node:worker_threads');

const LOOPBACK = '0100007F'; // 127.0.0.1 as /proc/net/tcp writes it
const LISTENING = '0A';

/** Whether a socket of this network namespace listens on 127.0.0.1:port, so that a supervisor is there already. */
function portIsTaken(port) {
  const local = `${LOOPBACK}:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return readFileSync('/proc/net/tcp', 'utf8')
    .split('\n')
    .some((line) => {
      const [, address, , state] = line.trim().split(/\s+/);
      return address === local && state === LISTENING;
    });
}

/** Whether this process runs a script file: not -e, a REPL, --test, --watch ..., which are nobody's server. */
function runsScript() {
  const [, script] = process.argv;
  if (script === undefined || script === '-' || script === 'inspect') return false;
  const other = /^(-e|-p|-pe|-i|-c|--eval|--print|--interactive|--check|--test|--watch|--watch-path|--run)(=|$)/;
  return !process.execArgv.some((argument) => other.test(argument));
}

/** The runtime port if this process should become a supervisor, else undefined. */
function portToSupervise() {
  const port = Number(process.env.CORELANE_RUNTIME_PORT);
  if (!isMainThread || !Number.isInteger(port) || port <= 0 || !runsScript()) return undefined;
  return portIsTaken(port) ? undefined : port;
}

/**
 * Stops here: what NODE_OPTIONS and the command line preload after this file is for the user's program (an APM agent
 * would cost its memory twice, and open its ports), and so is the main module.
 */
function becomeSupervisor(port) {
  const skipped = [];
  const originalLoad = Module._load;
  const originalRunMain = Module.runMain;
  Module._load = (id, parent, ...rest) => {
    if (parent?.id !== 'internal/preload') return originalLoad(id, parent, ...rest);
    skipped.push(id);
    return undefined;
  };
  Module.runMain = (...main) => {
    Module._load = originalLoad;
    Module.runMain = originalRunMain;
    const step = () => {
      // Two first processes at the same moment: the other one has become supervisor.
      for (const id of skipped) Module.createRequire(`${process.cwd()}/`)(id);
      originalRunMain(...main);
    };
    try {
      require('./supervise.cjs').supervise(port, step);
    } catch (error) {
      process.emitWarning(`Corelane's supervisor cannot start: ${error}`);
      step();
    }
  };
}

try {
  if (process.env.CORELANE_SUPERVISOR) {
    require('./worker.cjs').watchServers(process.env.CORELANE_SUPERVISOR);
  } else {
    const port = portToSupervise();
    if (port !== undefined) becomeSupervisor(port);
  }
} catch (error) {
  process.emitWarning(`Corelane's worker runtime is off in this process: ${error}`);
}
