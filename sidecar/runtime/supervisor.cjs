/**
 * Enters every Node.js process of a worker container through NODE_OPTIONS (--require). docs/runtime.md tells what for.
 *
 * The container's first Node process stays as supervisor and runs the user's program as its child; a process below a
 * supervisor only gets worker.cjs. Everything else (a script run by `kubectl exec`, a version that is too old) runs as
 * if this file were not there: whatever goes wrong here must not keep the user's program from running.
 */
'use strict';

const { readFileSync, writeSync } = require('node:fs');
const Module = require('node:module');
const { isMainThread } = require('node:worker_threads');

const LOOPBACK = '0100007F'; // 127.0.0.1 as /proc/net/tcp writes it
const LISTENING = '0A';

/** Writes a line to the log; --no-warnings does not hide it. */
function tell(text) {
  try {
    writeSync(2, `corelane: ${text}\n`);
  } catch {
    // Nobody reads the log.
  }
}

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

/**
 * The options of Node.js' permission model that a supervisor lacks: it starts a process, reads its own files, /proc and
 * the live settings, and connects to the worker.
 */
function missingPermissions() {
  const { permission, allowedNodeEnvironmentFlags, env } = process;
  if (!permission) return [];
  // Node.js before 25 does not restrict the network, and answers "no" all the same.
  const hasNet = permission.has('net') || !allowedNodeEnvironmentFlags.has('--allow-net');
  const unread = [__dirname, '/proc', env.CORELANE_LIVE].filter((path) => path && !permission.has('fs.read', path));
  return [
    ...(permission.has('child') ? [] : ['--allow-child-process']),
    ...(hasNet ? [] : ['--allow-net']),
    ...unread.map((path) => `--allow-fs-read=${path}`),
  ];
}

/** The runtime port if this process should become a supervisor, else undefined. */
function portToSupervise() {
  const port = Number(process.env.CORELANE_RUNTIME_PORT);
  if (!isMainThread || !Number.isInteger(port) || port <= 0 || !runsScript()) return undefined;
  const missing = missingPermissions();
  if (missing.length > 0) {
    const way = `Add ${missing.join(' ')}, or set runtime.instrument: false`;
    tell(`the worker runtime is off in this process, because Node.js runs with --permission. ${way}.`);
    return undefined;
  }
  return portIsTaken(port) ? undefined : port;
}

/**
 * Begins this process anew, with this file in front of the modules that a script has put before it: NODE_OPTIONS="-r
 * ./agent.cjs $NODE_OPTIONS". An agent that stayed in the supervisor would keep its memory, and its port.
 */
function dropPreloads() {
  const { entryFirst, hasPreloadInFront } = require('./node-options.cjs');
  const { argv, argv0, env, execArgv, execPath } = process;
  if (!hasPreloadInFront(env.NODE_OPTIONS)) return;
  try {
    const command = [argv0, ...execArgv, ...argv.slice(1)];
    process.execve(execPath, command, { ...env, NODE_OPTIONS: entryFirst(env) });
  } catch {
    // Node.js before 22.15. Up to 25 it aborts if the kernel refuses, which would refuse the program as well.
    const way = 'Put it behind: NODE_OPTIONS="$NODE_OPTIONS --require=FILE"';
    tell(`NODE_OPTIONS preloads a module before Corelane's, so the supervisor has loaded it, too. ${way}.`);
  }
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
      tell(`the supervisor cannot start: ${error}`);
      step();
    }
  };
}

try {
  if (process.env.CORELANE_SUPERVISOR) {
    require('./worker.cjs').watchServers(process.env.CORELANE_SUPERVISOR);
  } else {
    const port = portToSupervise();
    if (port !== undefined) {
      dropPreloads(); // from Node.js 22.15 on it does not return if there are any
      becomeSupervisor(port);
    }
  }
} catch (error) {
  tell(`the worker runtime is off in this process: ${error}`);
}
