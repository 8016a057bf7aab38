/**
 * The supervisor: runs the user's program as its child, answers for it on the runtime port, starts it again when it has
 * ended, kills it when its event loop is stuck, warms it up and replaces it between requests. docs/runtime.md has the
 * rules in words.
 */
'use strict';

const { spawn } = require('node:child_process');
const { accessSync, constants: fsConstants, readFileSync, writeSync } = require('node:fs');
const { constants } = require('node:os');
const { join } = require('node:path');
const { agentOf } = require('./agent.cjs');
const begun = require('./begun.cjs');
const { compactRegularly } = require('./compact.cjs');
const { accepts, healthServer } = require('./health.cjs');
const { pagesOf } = require('./pages.cjs');
const { killAll, name } = require('./processes.cjs');
const recycling = require('./recycling.cjs');
const stallLog = require('./stalls.cjs');
const { ask, attachBulk, attachThread, connected, tell } = require('./watchers.cjs');
const warmup = require('./warmup.cjs');

/** Back-off of a crash loop: at once, then 0.1 s doubling to 10 s; over when the worker has been up for 10 s. */
const BACKOFF_FIRST_MS = 100;
const BACKOFF_MAX_MS = 10_000;
const HEALTHY_MS = 10_000;
/** So many ends without being up for 10 s in between are a loop: from here on it waits for 1 s and more. */
const LOOP_FAILURES = 5;
/** How often a worker that drains is looked at. */
const DRAIN_CHECK_MS = 100;
const UNDRAIN_CHECK_MS = 20;
const GUARD_CHECK_MS = 10;
/** After HAProxy has been told "down": the time it needs to act on it. */
const TOLD_MS = 100;
/** What must wait for that happens then even if no HAProxy has asked. */
const UNTOLD_MS = 500;
/** The same before the first start: HAProxy asks every 0.1 s, if it is there already. */
const UNTOLD_START_MS = 300;
/** Beats without a request after that: whatever HAProxy has sent before has been begun, and ended. */
const IDLE_BEATS = 2;
/** How often a worker is asked whether it is to be recycled. */
const RECYCLE_CHECK_MS = 2_000;
const RECYCLE_RETRY_MS = 200;
/** A recycled worker that takes longer to end is killed, and the next worker may be recycled however this one does. */
const RECYCLE_END_MS = 5_000;
const RECYCLE_LOCK_MS = 60_000;
/** How long HAProxy's questions wait for news: below its `timeout check`. */
const HOLD_MS = 900;
const HOLD_ALIVE_MS = 9_000;
const HOLD_GUARD_MS = 9_000;
const UNGUARDED = 'down #unguarded';
/** While a worker is replaced because nobody waits for what it renders, it counts as busy for so long at most. */
const REPLACING_MS = 10_000;
/** A server that accepts for so long without a heartbeat will have none. */
const UNWATCHED_MS = 2_000;
/** A worker waits so long for its watchdog thread before it takes requests without one. */
const THREAD_MS = 2_000;
/** The thread answers at once; a process that is stopped does not. */
const FIGURES_MS = 500;
/** A launcher (npm, nodemon ...) whose server has ended gets this long to end as well, or to bring up another one. */
const LAUNCHER_MS = 10_000;
/** Signals that mean "stop": no restart after them. */
const BUSY = 'down #busy';
const STOPS = ['SIGTERM', 'SIGINT', 'SIGQUIT'];
const FORWARDED = [...STOPS, 'SIGHUP', 'SIGUSR1', 'SIGUSR2'];
/** Programs that stand in front of others as process 1 and do not care how those end. */
const INITS = ['tini', 'tini-static', 'docker-init', 'dumb-init', 'catatonit'];
/** States in which a silent event loop is a stuck one. */
const WATCHED = ['up', 'warming', 'draining', 'stopping'];
/** Allowed in NODE_OPTIONS by each version: the list of all that are costs 1.5 MB, and these are there in most workers. */
const ALWAYS_ALLOWED = ['--max-old-space-size', '--max-semi-space-size'];
const REAPER = join(__dirname, 'reaper');

/** From the kernel: node:crypto would cost memory in every worker. */
const token = readFileSync('/proc/sys/kernel/random/uuid', 'latin1').trim();
const port = Number(process.env.CORELANE_RUNTIME_PORT);
const workerPort = Number(process.env.PORT);
const workerIndex = Number(process.env.WORKER_INDEX ?? 0);
const stallMs = Number(process.env.CORELANE_STALL_TIMEOUT_MS) || 10_000;
const beatMs = Math.max(50, Math.min(250, Math.floor(stallMs / 5)));
const marker = `${port}:${token}:${beatMs}`;
let reaper = reaperPath();

/** @type {'starting' | 'warming' | 'up' | 'draining' | 'stalled' | 'waiting' | 'stopping'} */
let state = 'waiting';
let child;
/** Servers that tell their heartbeat: by connection, see `attach`. */
const servers = new Map();
/** Requests that one server may have at a time, as HAProxy's last check said; 0 if none has said it. */
let limit = 0;
let everUp = false;
let upSinceMs;
let startedAtSeconds = 0;
let failures = 0;
let backoffMs = 0;
let lastExitCode = 0;
let killedForStall = false;
let launcherTimer;
let stopSignal;
/** When heartbeats were looked at last. */
let watchedAtMs = 0;
/** Called when HAProxy has been told that the worker is down. */
let onTold;
let acceptsSinceMs;
let isRecycled = false;
let isAbandoned = false;
/** When the worker was replaced because of that; undefined once it is up. */
let replacingSinceMs;
/** Since when HAProxy knows that all places are taken; undefined when it does not. */
let toldBusySinceMs;
let recycleLimits;
let releaseLock;
const restarts = { exit: 0, error: 0, signal: 0, stalled: 0, recycled: 0, abandoned: 0 };

function log(event, details = {}) {
  const line = { time: new Date().toISOString(), corelane: 'supervisor', worker: workerIndex, event, ...details };
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

function setState(next) {
  state = next;
  agent.news();
  alive.news();
}

function setUp() {
  if (state !== 'starting' && state !== 'warming') return;
  setState('up');
  everUp = true;
  upSinceMs = nowMs();
  replacingSinceMs = undefined;
  clearTimeout(launcherTimer);
  endRecycling();
  log('up', { watched: servers.size > 0 });
}

/** The server listens. It takes requests when it is watched and warm. */
async function onListening(pid) {
  if (pid !== undefined) await connected(pid, THREAD_MS);
  await guardTold();
  if (state !== 'starting' || (pid !== undefined && servers.size === 0)) return;
  if (!warmup.isConfigured) {
    setUp();
    return;
  }
  setState('warming');
  everUp = true;
  clearTimeout(launcherTimer);
  const warmed = child;
  const result = await warmup.warmUp(workerPort, () => state === 'warming' && child === warmed);
  if (state !== 'warming' || child !== warmed) return;
  log('warm', result);
  setUp();
}

/** The server has gone, the process that was started may live on (a launcher, or a server that has closed its port). */
function setStarting() {
  if (!['up', 'warming', 'draining'].includes(state)) return;
  setState('starting');
  if (!isRecycled) log('down', { reason: 'the server has closed its port' });
}

/** Up for certain; a server that cannot be watched (not made by node:net) counts when it has accepted for a while. */
async function isUp() {
  if (state === 'starting' && servers.size === 0 && !isRecycled && workerPort > 0) await lookForUnwatched();
  return state === 'up';
}

async function lookForUnwatched() {
  if (!(await accepts(workerPort))) {
    acceptsSinceMs = undefined;
    return;
  }
  acceptsSinceMs ??= nowMs();
  if (servers.size > 0 || nowMs() - acceptsSinceMs < UNWATCHED_MS) return;
  begun.expectNotesOf({ port, token }, undefined);
  await onListening();
}

function isReplacing() {
  return replacingSinceMs !== undefined && nowMs() - replacingSinceMs < REPLACING_MS;
}

const agent = agentOf(
  {
    async answer() {
      if (await isUp()) return isBlocked() ? BUSY : 'up';
      return `down #${state}`;
    },
    onAnswer(answer) {
      toldBusySinceMs = answer === BUSY ? (toldBusySinceMs ?? nowMs()) : undefined;
      if (answer !== 'up') onTold?.();
    },
  },
  HOLD_MS,
);

/** Busy is not down, nor is a worker that is replaced because nobody waits for what it renders. */
const alive = agentOf(
  { answer: async () => ((await isUp()) || isReplacing() ? 'up' : `down #${state}`) },
  HOLD_ALIVE_MS,
);

/** What HAProxy has heard last of the guard; before the first question it may know the answer of an earlier supervisor. */
let guardSaid;
const guard = agentOf(
  {
    answer: async () => (isGuarded() ? 'up' : UNGUARDED),
    onAnswer(answer) {
      guardSaid = answer;
    },
    holdDownMs: HOLD_GUARD_MS,
  },
  HOLD_GUARD_MS,
);

/** Whether every server process sees to it that a response is as long as it says; one that only hands out connections has none. */
function isGuarded() {
  const all = [...servers.values()];
  return all.every(({ guarded }) => guarded) && all.some(({ renders }) => renders);
}

/** A worker that is not guarded, or not yet, must not be up as long as HAProxy may still believe in the guard of the one before. */
async function guardTold() {
  const limitMs = nowMs() + UNTOLD_MS;
  while (guardSaid !== UNGUARDED && !isGuarded() && nowMs() < limitMs) await sleep(GUARD_CHECK_MS);
}

/** How many requests HAProxy may give to this worker. */
function setLimit(given) {
  if (!(given > 0) || given === limit) return;
  limit = given;
  for (const socket of servers.keys()) sendLimit(socket);
}

function sendLimit(socket) {
  if (limit > 0) socket.write(`limit ${limit}\n`);
}

/** A render whose connection has ended goes on: HAProxy thinks that the worker is free. */
function isBlocked() {
  return [...servers.values()].some(({ blocked }) => blocked);
}

/** Resolves when HAProxy has been told that the worker is down, to true, or else after `limitMs`. */
function heard(limitMs) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, limitMs, false);
    onTold = () => {
      onTold = undefined;
      clearTimeout(timer);
      resolve(true);
    };
  });
}

/** Resolves when HAProxy gives nothing to this worker any more, as far as one can tell. */
async function told() {
  if (await heard(UNTOLD_MS)) await sleep(TOLD_MS);
}

/**
 * Takes the worker out of rotation and waits until it has nothing left to do.
 * @param isWanted asked meanwhile; `undrain` is the caller's, however it ends
 * @returns false if something else has happened meanwhile (it died, it is stuck, the pod stops), or nobody wants it any more
 */
async function drain(isWanted = () => true) {
  setState('draining');
  const drained = child;
  const goesOn = () => state === 'draining' && child === drained && servers.size > 0 && isWanted();
  await told();
  for (const server of servers.values()) server.idleBeats = 0;
  while (goesOn() && [...servers.values()].some(({ idleBeats }) => idleBeats < IDLE_BEATS)) await sleep(DRAIN_CHECK_MS);
  return goesOn();
}

/** Ends a drain after which the worker goes on: when its event loop turns, and not before. Else the watchdog ends it. */
async function undrain(server) {
  const drained = child;
  const { beats } = server;
  const isMine = () => state === 'draining' && child === drained;
  const isThere = () => [...servers.values()].includes(server);
  while (isMine() && isThere() && server.beats === beats) await sleep(UNDRAIN_CHECK_MS);
  if (isMine()) setState('up');
}

function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

// ---- heartbeat

/** Connections of the processes below: a server, its watchdog thread, something large from there. */
function take(verb, [given, number, ppid], socket) {
  if (given !== token) return false;
  if (verb === 'corelane-worker') attach(Number(number), Number(ppid), socket);
  else if (verb === 'corelane-watch') attachThread(Number(number), socket);
  else if (verb === 'corelane-bulk') return attachBulk(Number(number), socket);
  else return false;
  return true;
}

function attach(pid, ppid, socket) {
  const server = { pid, ppid, silentMs: 0, beats: 0, idleBeats: 0, inspected: false, blocked: false, exempt: false };
  servers.set(socket, server);
  guard.news();
  // A launcher has started its server again, which was told to end (PM2, nodemon).
  if (isRecycled) killTree();
  else if (state === 'stopping' && !isChild(server)) signalChild(stopSignal);
  begun.expectNotesOf({ port, token }, pid);
  sendLimit(socket);
  socket.unref();
  socket.on('data', (beats) => {
    const last = beats[beats.length - 1];
    // The next look adds all the time since the last one.
    server.silentMs = watchedAtMs - nowMs();
    server.beats += 1;
    server.inspected = (last & 1) !== 0;
    const blocked = (last & 2) !== 0;
    if (blocked !== server.blocked) {
      server.blocked = blocked;
      agent.news();
    }
    const wasGuarded = isGuarded();
    server.renders = (last & 8) !== 0;
    server.guarded = (last & 32) !== 0;
    if (isGuarded() !== wasGuarded) guard.news();
    server.idleBeats = (last & 4) !== 0 ? 0 : server.idleBeats + 1;
    server.overdue = (last & 16) !== 0 && !server.inspected;
    if (server.overdue && state === 'up' && !isAbandoned && !pages.isTaking()) void endAbandoned(server);
    if (server.isStalled && state === 'stalled' && !killedForStall) recover(server);
  });
  socket.on('close', () => {
    servers.delete(socket);
    guard.news();
    if (servers.size > 0) return;
    setStarting();
    if (!isChild(server)) launcherTimer = setTimeout(endLauncher, LAUNCHER_MS, server.pid);
  });
  socket.resume();
  void onListening(pid);
}

/** The server that renders: the first process of a cluster listens as well, but only hands out connections. */
function renderer() {
  const all = [...servers.values()];
  return all.find(({ renders }) => renders) ?? all[0];
}

/** Has a server promise not to begin this try of a request any more. Only one whose requests all pass its gate can. */
async function refuse(pid, token) {
  const own = [...servers.values()].filter((server) => server.pid === pid);
  if (!/^[A-Za-z0-9-]+$/.test(token) || own.length !== 1 || !own[0].guarded) return false;
  const answer = await ask(pid, 'refuse', { argument: token, limitMs: FIGURES_MS });
  return answer?.refused === true;
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
  watchedAtMs = nowMs();
  setInterval(() => {
    const elapsed = Math.min(nowMs() - watchedAtMs, 2 * beatMs);
    watchedAtMs = nowMs();
    for (const server of servers.values()) {
      server.silentMs += elapsed;
      if (isSilent(server) && !server.isStalled && WATCHED.includes(state)) void stalled(server);
    }
  }, beatMs);
}

function isSilent({ silentMs, inspected, exempt }) {
  return silentMs >= stallMs && !inspected && !exempt;
}

/** Takes it out, finds out where it is, kills it. A kill without "down" first costs the next request as well. */
async function stalled(server) {
  const { pid, silentMs } = server;
  const isStopping = state === 'stopping';
  server.isStalled = true;
  if (!isStopping) setState('stalled');
  killedForStall = false;
  const [found] = await Promise.all([stallLog.capture(pid, stallMs), isStopping ? undefined : told()]);
  log('stalled', { ...stallLog.record(pid, silentMs, found), worker: workerIndex });
  if (!killStalled()) tell(pid, 'resume');
  server.isStalled = false;
}

function recover({ pid }) {
  setState('up');
  tell(pid, 'resume');
  log('recovered');
}

function killStalled() {
  if (killedForStall || (state !== 'stalled' && state !== 'stopping')) return false;
  if (![...servers.values()].some(isSilent)) return false; // it has come back while it was to be killed
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return false;
  killedForStall = true;
  log('kill', { reason: 'stalled' });
  killTree();
  return true;
}

/** Everything below the supervisor; the reaper ends by itself when nothing is left for it. */
function killTree() {
  killAll(`CORELANE_SUPERVISOR=${marker}`, reaper ? [child?.pid] : []);
}

// ---- renders that were given up

/**
 * Nobody waits any more for what the worker renders, and it does not end: something that it waits for does not answer. A new
 * process takes requests. Who hangs in all its places goes at once, all of a pod together if need be; who renders something
 * else drains first, one worker of the pod at a time.
 */
async function endAbandoned(server) {
  isAbandoned = true;
  const isEmpty = server.idleBeats >= IDLE_BEATS && nowMs() - (toldBusySinceMs ?? Number.POSITIVE_INFINITY) >= TOLD_MS;
  isAbandoned = isEmpty || (await drainInTurn());
  const answer = isAbandoned ? await ask(server.pid, 'requests', { limitMs: FIGURES_MS }) : undefined;
  // It may have come to its end after all.
  isAbandoned &&= ['up', 'draining'].includes(state) && server.overdue;
  if (!isAbandoned) {
    if (state === 'draining') setState('up');
    return endRecycling();
  }
  log('kill', { reason: 'abandoned', requests: answer?.requests?.map(({ id }) => id) ?? [] });
  replacingSinceMs = nowMs();
  setState('draining');
  killTree();
}

async function drainInTurn() {
  releaseLock = await recycling.takeLock();
  if (!releaseLock || state !== 'up') return false;
  setTimeout(endRecycling, RECYCLE_LOCK_MS, releaseLock);
  return drain();
}

// ---- the child

/**
 * As long as HAProxy has not been told "down" in so many words, a port that is open counts as up: the worker would get
 * requests before it is warm.
 */
async function startFirst() {
  await heard(UNTOLD_START_MS);
  if (state === 'waiting') start();
}

function start() {
  const { execPath, execArgv, argv, argv0 } = process;
  const command = [...execArgv, ...argv.slice(1)];
  setState('starting');
  killedForStall = false;
  upSinceMs = undefined;
  isRecycled = false;
  isAbandoned = false;
  acceptsSinceMs = undefined;
  recycleLimits = recycling.drawLimits();
  begun.sweep({ port, token });
  startedAtSeconds = Date.now() / 1000;
  const env = { ...process.env, NODE_OPTIONS: nodeOptions(), CORELANE_SUPERVISOR: marker };
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

/** CORELANE_NODE_FLAGS before the user's own, which win. A flag that this Node.js does not allow there would keep it from starting. */
function nodeOptions() {
  const [entry = '', ...users] = (process.env.NODE_OPTIONS ?? '').split(' ');
  const flags = (process.env.CORELANE_NODE_FLAGS ?? '').split(' ').filter(Boolean);
  const isAllowed = (flag) => {
    const [option] = flag.split('=');
    return ALWAYS_ALLOWED.includes(option) || process.allowedNodeEnvironmentFlags.has(option);
  };
  const refused = flags.filter((flag) => !isAllowed(flag));
  if (refused.length > 0) log('flags', { refused, node: process.version });
  return [entry, ...flags.filter(isAllowed), ...users].join(' ');
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
  if (isHealthy() || isRecycled || isAbandoned) failures = 0;
  backoffMs = failures === 0 ? 0 : Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** (failures - 1));
  failures += 1;
  setState('waiting');
  log('restart', { reason, code, signal, afterMs: backoffMs });
  setTimeout(() => state === 'waiting' && start(), backoffMs);
}

function isHealthy() {
  return upSinceMs !== undefined && nowMs() - upSinceMs >= HEALTHY_MS;
}

function restartReason(code, signal) {
  if (killedForStall) return 'stalled';
  if (isAbandoned) return 'abandoned';
  if (isRecycled) return 'recycled';
  if (signal) return 'signal';
  return code === 0 ? 'exit' : 'error';
}

// ---- recycling

async function watchRecycling() {
  let isRefused = false;
  for (;;) {
    // Who has been refused looks again sooner, so that one worker cannot always be the first.
    await sleep(isRefused ? RECYCLE_RETRY_MS : RECYCLE_CHECK_MS);
    isRefused = (await checkRecycling()) === false;
  }
}

/** @returns false if the worker is due but may not be recycled now */
async function checkRecycling() {
  const server = renderer();
  if (state !== 'up' || !server || pages.isTaking()) return undefined;
  const answer = recycling.needsCount ? await ask(server.pid, 'counts', { limitMs: FIGURES_MS }) : {};
  const ageMs = Date.now() - startedAtSeconds * 1000;
  const facts = { requests: answer?.requests ?? 0, ageMs, pid: server.pid };
  const reason = recycling.reasonToRecycle(recycleLimits, facts);
  if (!reason) return undefined;
  return recycle(reason, { ...facts, residentBytes: recycling.residentBytes(server.pid) });
}

/** Replaces the worker between two requests, if it is its turn. */
async function recycle(reason, facts) {
  releaseLock = await recycling.takeLock();
  if (!releaseLock) return false;
  if (!(await recycling.enoughWithoutMe()) || state !== 'up' || pages.isTaking()) {
    endRecycling();
    return false;
  }
  log('recycle', { reason, ...facts });
  if (!(await drain())) {
    endRecycling();
    return false;
  }
  isRecycled = true;
  const ended = child;
  forward('SIGTERM');
  setTimeout(() => child === ended && killTree(), RECYCLE_END_MS);
  setTimeout(endRecycling, RECYCLE_LOCK_MS, releaseLock);
  return true;
}

/** Lets other workers of the pod take their turn. */
function endRecycling(lock = releaseLock) {
  if (lock !== releaseLock) return;
  releaseLock?.();
  releaseLock = undefined;
}

// ---- signals

/** The child gets it; below a launcher the server gets it, because not every launcher passes it on. */
function forward(signal) {
  const known = [...servers.values()];
  if (known.length === 0 || known.some(isChild)) signalChild(signal);
  else for (const { pid } of known) kill(pid, signal);
}

function signalChild(signal) {
  kill(child?.pid, signal);
}

function kill(pid, signal) {
  try {
    process.kill(pid, signal);
  } catch {
    // It has just ended; its end is being handled.
  }
}

function onSignal(signal) {
  if (STOPS.includes(signal)) {
    log('stopping', { signal });
    if (state === 'waiting') process.exit(0);
    stopSignal = signal;
    setState('stopping');
  }
  forward(signal);
}

// ---- what others may know

const pages = pagesOf({
  supervisor: { port, token },
  state: () => state,
  isUp,
  renderer,
  refuse,
  drain,
  undrain,
  figures: () => ({
    restarts,
    limit,
    lastExitCode,
    startedAtSeconds,
    isLooping: failures >= LOOP_FAILURES && !isHealthy(),
    backoffSeconds: backoffMs / 1000,
    silentSeconds: Math.max(0, ...[...servers.values()].map(({ silentMs }) => silentMs)) / 1000,
  }),
});

/**
 * The supervisor allocates little and has time: without these flags its heap grows to 15 MB more within minutes, and without
 * collections by 2 MB in a minute [measured]; one takes some milliseconds.
 */
function saveMemory() {
  const { setFlagsFromString } = require('node:v8');
  for (const flag of ['--gc-global', '--no-opt', '--no-sparkplug']) setFlagsFromString(flag);
  compactRegularly();
}

/**
 * Becomes the supervisor, for as long as this process lives.
 * @param runtimePort where the supervisor answers; who holds it is the only supervisor of the container
 * @param stepAside called instead when another process holds the port
 */
function supervise(runtimePort, stepAside) {
  const server = healthServer({
    agent: agent.ask,
    alive: alive.ask,
    guard: guard.ask,
    setLimit,
    take,
    page: pages.page,
  });
  server.once('error', stepAside);
  server.listen({ port: runtimePort, host: '127.0.0.1', backlog: 64 }, () => {
    server.off('error', stepAside);
    // --inspect is meant for the program, which could not open the same port.
    if ([...process.execArgv, process.env.NODE_OPTIONS].some((option) => option?.includes('--inspect'))) {
      require('node:inspector').close();
    }
    for (const signal of FORWARDED) process.on(signal, onSignal);
    saveMemory();
    void startFirst();
    watch();
    if (recycling.isConfigured) void watchRecycling();
  });
}

module.exports = { supervise };
