/**
 * The supervisor: runs the user's program as its child, answers for it on the runtime port, starts it again when it has
 * ended, and kills it when its event loop is stuck. docs/runtime.md has the rules in words.
 */
'use strict';

const { spawn } = require('node:child_process');
const { accessSync, constants: fsConstants, readFileSync, writeSync } = require('node:fs');
const { constants } = require('node:os');
const { join } = require('node:path');
const { accepts, healthServer } = require('./health.cjs');
const { killAll, name } = require('./processes.cjs');

/** Back-off of a crash loop: at once, then 0.1 s doubling to 10 s; over when the worker has been up for 10 s. */
const BACKOFF_FIRST_MS = 100;
const BACKOFF_MAX_MS = 10_000;
const HEALTHY_MS = 10_000;
/** So many ends without being up for 10 s in between are a loop: from here on it waits for 1 s and more. */
const LOOP_FAILURES = 5;
/** How often the heartbeat is looked at. */
const TICK_MS = 100;
/** After HAProxy has been told "down": the time it needs to act on it. */
const TOLD_MS = 100;
/** The kill comes then even if no HAProxy has asked. */
const UNTOLD_MS = 500;
/** A launcher (npm, nodemon ...) whose server has ended gets this long to end as well, or to bring up another one. */
const LAUNCHER_MS = 10_000;
/** Signals that mean "stop": no restart after them. */
const STOPS = ['SIGTERM', 'SIGINT', 'SIGQUIT'];
const FORWARDED = [...STOPS, 'SIGHUP', 'SIGUSR1', 'SIGUSR2'];
/** Programs that stand in front of others as process 1 and do not care how those end. */
const INITS = ['tini', 'tini-static', 'docker-init', 'dumb-init', 'catatonit'];
const REAPER = join(__dirname, 'reaper');

/** From the kernel: node:crypto would cost memory in every worker. */
const token = readFileSync('/proc/sys/kernel/random/uuid', 'latin1').trim();
const port = Number(process.env.CORELANE_RUNTIME_PORT);
const workerPort = Number(process.env.PORT);
const stallMs = Number(process.env.CORELANE_STALL_TIMEOUT_MS) || 10_000;
const beatMs = Math.max(50, Math.min(250, Math.floor(stallMs / 5)));
const marker = `${port}:${token}:${beatMs}`;
let reaper = reaperPath();

/** @type {'starting' | 'up' | 'stalled' | 'waiting' | 'stopping'} */
let state = 'starting';
let child;
/** Servers that tell their heartbeat: by connection, `{ pid, ppid, silentMs, inspected }`. */
const servers = new Map();
let everUp = false;
let upSinceMs;
let startedAtSeconds = 0;
let failures = 0;
let backoffMs = 0;
let lastExitCode = 0;
let killedForStall = false;
let toldDown = false;
let launcherTimer;
let stalls = 0;
const restarts = { exit: 0, error: 0, signal: 0, stalled: 0 };

function log(event, details = {}) {
  const worker = Number(process.env.WORKER_INDEX ?? 0);
  const line = { time: new Date().toISOString(), corelane: 'supervisor', worker, event, ...details };
  try {
    writeSync(2, `${JSON.stringify(line)}\n`);
  } catch {
    // Nobody reads the log; the worker is more important.
  }
}

function nowMs() {
  return Number(process.hrtime.bigint() / 1_000_000n);
}

/** The helper that reaps orphans, if it is there and made for this machine (it is tried when the child is started). */
function reaperPath() {
  try {
    accessSync(REAPER, fsConstants.X_OK);
    return REAPER;
  } catch {
    return undefined;
  }
}

// ---- state

function setUp() {
  if (state !== 'starting') return;
  state = 'up';
  everUp = true;
  upSinceMs = nowMs();
  clearTimeout(launcherTimer);
  log('up', { watched: servers.size > 0 });
}

/** The server has gone, the process that was started may live on (a launcher, or a server that has closed its port). */
function setStarting() {
  if (state !== 'up') return;
  state = 'starting';
  log('down', { reason: 'the server has closed its port' });
}

/** Up for certain; a server that could not be watched (not made by node:net) counts as soon as it accepts. */
async function isUp() {
  if (state === 'starting' && workerPort > 0 && (await accepts(workerPort))) setUp();
  return state === 'up';
}

async function agent() {
  if (await isUp()) return 'up';
  if (state === 'stalled' && !toldDown) {
    toldDown = true;
    setTimeout(killStalled, TOLD_MS);
  }
  return `down #${state}`;
}

// ---- heartbeat

function attach([given, pid, ppid], socket) {
  if (given !== token) return false;
  const server = { pid: Number(pid), ppid: Number(ppid), silentMs: 0, inspected: false };
  servers.set(socket, server);
  socket.unref();
  socket.on('data', (beats) => {
    server.silentMs = 0;
    server.inspected = beats[beats.length - 1] === 0x69;
    if (state === 'stalled' && !killedForStall) recover();
  });
  socket.on('close', () => {
    servers.delete(socket);
    if (servers.size > 0) return;
    setStarting();
    if (!isChild(server)) launcherTimer = setTimeout(endLauncher, LAUNCHER_MS, server.pid);
  });
  setUp();
  return true;
}

/** Whether it is the process that the supervisor started, not one that a launcher started below it. */
function isChild({ pid, ppid }) {
  return pid === child?.pid || ppid === child?.pid;
}

function endLauncher(pid) {
  if (state !== 'starting' || servers.size > 0) return;
  log('kill', { reason: `the server process ${pid} has ended, its launcher has not` });
  killTree();
}

/** Counts the supervisor's own time only: after a pause of the whole container nobody is stuck. */
function watch() {
  let before = nowMs();
  setInterval(() => {
    const elapsed = Math.min(nowMs() - before, 2 * TICK_MS);
    before = nowMs();
    for (const server of servers.values()) {
      server.silentMs += elapsed;
      if (isSilent(server) && !killedForStall && ['up', 'stopping'].includes(state)) stalled(server);
    }
  }, TICK_MS);
}

function isSilent({ silentMs, inspected }) {
  return silentMs >= stallMs && !inspected;
}

function stalled({ pid, silentMs }) {
  stalls += 1;
  log('stalled', { pid, silentMs: Math.round(silentMs) });
  if (state === 'stopping') {
    killStalled();
    return;
  }
  state = 'stalled';
  toldDown = false;
  killedForStall = false;
  // A kill without "down" first costs the next request as well.
  setTimeout(killStalled, UNTOLD_MS);
}

function recover() {
  state = 'up';
  log('recovered');
}

function killStalled() {
  if (killedForStall || (state !== 'stalled' && state !== 'stopping')) return;
  if (![...servers.values()].some(isSilent)) return; // it has come back while it was to be killed
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
  killedForStall = true;
  log('kill', { reason: 'stalled' });
  killTree();
}

/** Everything below the supervisor; the reaper ends by itself when nothing is left for it. */
function killTree() {
  killAll(`CORELANE_SUPERVISOR=${marker}`, reaper ? [child?.pid] : []);
}

// ---- the child

function start() {
  const { execPath, execArgv, argv, argv0 } = process;
  const command = [...execArgv, ...argv.slice(1)];
  state = 'starting';
  killedForStall = false;
  upSinceMs = undefined;
  startedAtSeconds = Date.now() / 1000;
  const env = { ...process.env, CORELANE_SUPERVISOR: marker };
  child = reaper
    ? spawn(reaper, [execPath, argv0, ...command], { env, stdio: 'inherit' })
    : spawn(execPath, command, { argv0, env, stdio: 'inherit' });
  let ended = false;
  const end = (code, signal) => {
    if (ended) return;
    ended = true;
    onEnd(code, signal);
  };
  child.once('exit', end);
  child.once('error', (error) => {
    log('error', { message: error.message });
    if (child.pid !== undefined) return;
    ended = true;
    if (!reaper) return onEnd(1, null);
    reaper = undefined; // a volume that nothing may be executed from, or another processor: it works without
    start();
  });
}

function exitCode(code, signal) {
  return signal ? 128 + constants.signals[signal] : (code ?? 1);
}

/** Whether somebody (a shell, a script) goes on with the exit code of this process; kubelet and inits only start it again. */
function exitCodeMatters() {
  if (process.pid === 1) return false;
  if (process.ppid === 1) return !INITS.includes(name(1));
  // No parent in sight: the container's first process, in a pod that shares its process ids. Else `kubectl exec`.
  return process.ppid !== 0 || name(1) !== 'pause';
}

function onEnd(code, signal) {
  const stopping = state === 'stopping';
  if (stopping || (!everUp && exitCodeMatters())) {
    log('exit', { code: exitCode(code, signal), reason: stopping ? 'stopped' : 'no server' });
    process.exit(exitCode(code, signal));
  }
  clearTimeout(launcherTimer);
  killTree(); // what it has left behind may hold its port or its files
  const reason = restartReason(code, signal);
  restarts[reason] += 1;
  lastExitCode = exitCode(code, signal);
  if (isHealthy()) failures = 0;
  backoffMs = failures === 0 ? 0 : Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** (failures - 1));
  failures += 1;
  state = 'waiting';
  log('restart', { reason, code, signal, afterMs: backoffMs });
  setTimeout(() => state === 'waiting' && start(), backoffMs);
}

function isHealthy() {
  return upSinceMs !== undefined && nowMs() - upSinceMs >= HEALTHY_MS;
}

function restartReason(code, signal) {
  if (killedForStall) return 'stalled';
  if (signal) return 'signal';
  return code === 0 ? 'exit' : 'error';
}

// ---- signals

/** The child gets it; below a launcher the server gets it, because not every launcher passes it on. */
function forward(signal) {
  const known = [...servers.values()];
  const targets = known.length === 0 || known.some(isChild) ? [child.pid] : known.map(({ pid }) => pid);
  for (const pid of targets) {
    try {
      process.kill(pid, signal);
    } catch {
      // It has just ended; its end is being handled.
    }
  }
}

function onSignal(signal) {
  if (STOPS.includes(signal)) {
    log('stopping', { signal });
    if (state === 'waiting') process.exit(0);
    state = 'stopping';
  }
  forward(signal);
}

// ---- pages

async function page(path) {
  if (path === '/metrics') return { status: 200, type: 'text/plain; version=0.0.4', body: await metrics() };
  if (path !== '/healthz') return { status: 404, body: 'not found\n' };
  if (await isUp()) return { status: 200, body: 'up\n' };
  return { status: state === 'stopping' ? 404 : 503, body: `${state}\n` };
}

async function metrics() {
  const worker = `worker="${Number(process.env.WORKER_INDEX ?? 0)}"`;
  const metric = (metricName, type, help, ...samples) =>
    [`# HELP ${metricName} ${help}`, `# TYPE ${metricName} ${type}`, ...samples].join('\n');
  const one = (metricName, type, help, value) => metric(metricName, type, help, `${metricName}{${worker}} ${value}`);
  const up = Number(await isUp());
  const looping = Number(failures >= LOOP_FAILURES && !isHealthy());
  const silentMs = Math.max(0, ...[...servers.values()].map((server) => server.silentMs));
  const restartSamples = Object.entries(restarts).map(
    ([reason, count]) => `corelane_worker_restarts_total{${worker},reason="${reason}"} ${count}`,
  );
  return `${[
    one('corelane_worker_up', 'gauge', 'Whether the worker takes requests.', up),
    metric('corelane_worker_restarts_total', 'counter', 'Restarts of the worker process.', ...restartSamples),
    one('corelane_worker_stalls_total', 'counter', 'Times that the event loop was declared stuck.', stalls),
    one('corelane_worker_backoff_seconds', 'gauge', 'Wait before the last restart.', backoffMs / 1000),
    one('corelane_worker_backoff_active', 'gauge', 'Whether a restart is waiting.', Number(state === 'waiting')),
    one('corelane_worker_crash_looping', 'gauge', 'Whether the worker ends again and again.', looping),
    one('corelane_worker_last_exit_code', 'gauge', 'Exit code of the last worker process that ended.', lastExitCode),
    one('corelane_worker_heartbeat_age_seconds', 'gauge', 'Age of the last heartbeat.', silentMs / 1000),
    one('corelane_worker_start_time_seconds', 'gauge', 'Start of the worker process.', startedAtSeconds),
  ].join('\n')}\n`;
}

/**
 * Becomes the supervisor, for as long as this process lives.
 * @param runtimePort where the supervisor answers; who holds it is the only supervisor of the container
 * @param stepAside called instead when another process holds the port
 */
function supervise(runtimePort, stepAside) {
  const server = healthServer({ agent, attach, page });
  server.once('error', stepAside);
  server.listen({ port: runtimePort, host: '127.0.0.1', backlog: 64 }, () => {
    server.off('error', stepAside);
    // --inspect is meant for the program, which could not open the same port.
    if ([...process.execArgv, process.env.NODE_OPTIONS].some((option) => option?.includes('--inspect'))) {
      require('node:inspector').close();
    }
    for (const signal of FORWARDED) process.on(signal, onSignal);
    start();
    watch();
  });
}

module.exports = { supervise };
