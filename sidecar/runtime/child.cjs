/** The process that the supervisor starts, and what runs below it. */
'use strict';

const { spawn } = require('node:child_process');
const { accessSync, constants: fsConstants } = require('node:fs');
const { constants } = require('node:os');
const { join } = require('node:path');
const { oomKills } = require('./cgroup.cjs');
const { log } = require('./log.cjs');
const { ENTRY, SIZES, nameOf, usersOptions, withoutOverruled } = require('./node-options.cjs');
const { killAll, name } = require('./processes.cjs');
const { marker } = require('./settings.cjs');
const { dispatch, state } = require('./state.cjs');

/** Programs that stand in front of others as process 1 and do not care how those end. */
const INITS = ['tini', 'tini-static', 'docker-init', 'dumb-init', 'catatonit'];
const REAPER = join(__dirname, 'reaper');
/** The exit code of a process that SIGKILL has ended. */
const KILLED = 137;

/** Looks for the helper that reaps orphans; whether it is made for this machine shows when the child is started. */
function findReaper() {
  try {
    accessSync(REAPER, fsConstants.X_OK);
    state.reaper = REAPER;
  } catch {
    state.reaper = undefined;
  }
}

/** Runs the supervisor's own command line once more, with the program. */
function start() {
  const { execPath, execArgv, argv, argv0 } = process;
  const command = [...execArgv, ...argv.slice(1)];
  // The key of who gets the spans is not for the program.
  const env = {
    ...process.env,
    NODE_OPTIONS: nodeOptions(),
    CORELANE_SUPERVISOR: marker,
    CORELANE_SPANS_HEADERS: undefined,
  };
  state.startedAtSeconds = Date.now() / 1000;
  const killsBefore = oomKills();
  const child = state.reaper
    ? spawn(state.reaper, [execPath, argv0, ...command], { env, stdio: 'inherit' })
    : spawn(execPath, command, { argv0, env, stdio: 'inherit' });
  state.child = child;
  let ended = false;
  const end = (code, signal) => {
    if (ended) return;
    ended = true;
    const exitCode = exitCodeOf(code, signal);
    // A launcher passes the code of its server on.
    const killedBy = exitCode === KILLED && oomKills() > killsBefore ? 'the memory limit of the container' : undefined;
    dispatch('ended', { code, signal, exitCode, isExitAwaited: isExitAwaited(), killedBy });
  };
  child.once('exit', end);
  child.once('error', (error) => {
    log('error', { message: error.message });
    if (child.pid !== undefined) return;
    if (!state.reaper) return end(1, null);
    ended = true;
    state.reaper = undefined; // a volume that nothing may be executed from, or another processor: it works without
    start();
  });
}

/**
 * CORELANE_NODE_FLAGS (Corelane's, then those of runtime.nodeFlags) before the user's own options, which win: the last
 * of two counts, and of sizes (SIZES) Corelane sets none that the user sets. A flag that this Node.js does not allow
 * there would keep it from starting.
 */
function nodeOptions() {
  const { env, execArgv } = process;
  const users = usersOptions(env);
  const flags = (env.CORELANE_NODE_FLAGS ?? '').split(' ').filter((flag) => flag && !state.leftOut.has(nameOf(flag)));
  // Each version allows the sizes: the list of all that are allowed costs 1.5 MB, and these are there in most workers.
  const isAllowed = (flag) => {
    const name = nameOf(flag);
    return SIZES.includes(name) || process.allowedNodeEnvironmentFlags.has(name);
  };
  const refused = flags.filter((flag) => !isAllowed(flag));
  if (refused.length > 0) log('flags', { refused, node: process.version });
  // One that is refused says nothing.
  const own = withoutOverruled(flags.filter(isAllowed), [...users, ...execArgv]);
  return [ENTRY, ...own, ...users].join(' ');
}

function exitCodeOf(code, signal) {
  return signal ? 128 + constants.signals[signal] : (code ?? 1);
}

/**
 * Whether somebody (a shell, a script) goes on with the exit code of this process; kubelet and inits only start it
 * again.
 */
function isExitAwaited() {
  if (process.pid === 1) return false;
  if (process.ppid === 1) return !INITS.includes(name(1));
  // No parent in sight: the container's first process, in a pod that shares its process ids. Else `kubectl exec`.
  return process.ppid !== 0 || name(1) !== 'pause';
}

function isRunning() {
  return state.child !== undefined && state.child.exitCode === null && state.child.signalCode === null;
}

/** Whether a process is the program that was started, not one that a launcher started below it. */
function isProgram({ pid, ppid }) {
  return (state.reaper ? ppid : pid) === state.child?.pid;
}

/** Everything below the supervisor; the reaper ends by itself when nothing is left for it. */
function killTree() {
  killAll(`CORELANE_SUPERVISOR=${marker}`, state.reaper ? [state.child?.pid] : []);
}

function signalChild(signal) {
  kill(state.child?.pid, signal);
}

/** The child gets it; below a launcher the server gets it, because not every launcher passes it on. */
function forward(signal) {
  const known = [...state.servers.values()];
  if (known.length === 0 || known.some(isProgram)) signalChild(signal);
  else for (const { pid } of known) kill(pid, signal);
}

function kill(pid, signal) {
  try {
    process.kill(pid, signal);
  } catch {
    // It has just ended; its end is being handled.
  }
}

module.exports = { findReaper, forward, isProgram, isRunning, killTree, signalChild, start };
