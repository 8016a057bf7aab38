/**
 * The life of a worker as a table: which event leads from which phase to which, what is noted on the way, and what is
 * to be done. `next` only computes: times and facts come with the event, and supervise.cjs does what comes out.
 * docs/runtime.md has the picture that is made of TABLE, sidecar/test/unit/lifecycle.test.ts every cell of it.
 */
'use strict';

/** Back-off of a crash loop: at once, then 0.1 s doubling to 10 s; over when the worker has been up for 10 s. */
const BACKOFF_FIRST_MS = 100;
const BACKOFF_MAX_MS = 10_000;
const HEALTHY_MS = 10_000;
/** So many ends without being up for 10 s in between are a loop: from here on it waits for 1 s and more. */
const LOOP_FAILURES = 5;
/** While a worker is replaced because nobody waits for what it renders, it counts as busy for so long at most. */
const REPLACING_MS = 10_000;

/** Why a worker that is up is not watched, for its log. */
const UNWATCHED =
  'the server on PORT is not watched: a stuck render stays stuck. Either a script sets or unsets NODE_OPTIONS (write ' +
  'NODE_OPTIONS="$NODE_OPTIONS --flag"), or Node.js runs with --permission, or the server does not use node:net';

/** Before the first start. */
const FIRST = {
  phase: 'waiting',
  /** Why the supervisor ends the process: `stalled`, `abandoned`, `recycled`. */
  cause: undefined,
  everUp: false,
  /** Of this process; undefined before it is up. */
  upSinceMs: undefined,
  /** Since when an abandoned worker is being replaced; undefined once it is up. */
  replacingSinceMs: undefined,
  stopSignal: undefined,
  failures: 0,
  backoffMs: 0,
  lastExitCode: 0,
  restarts: { exit: 0, error: 0, signal: 0, stalled: 0, recycled: 0, abandoned: 0 },
};

// ---- conditions: in words for the picture, and as they are

const isAbandoned = { words: 'overdue before', holds: ({ cause }) => cause === 'abandoned' };
const isAwaited = { words: 'somebody waits for its exit code', holds: isExitAwaited };
const isCold = { words: 'to be warmed', holds: (_life, event) => event.isCold };
const isKilled = { words: 'being killed', holds: ({ cause }) => cause === 'stalled' };
const isOverruled = { words: 'flags to leave out', holds: (_life, event) => event.leftOut !== undefined };
const isRecycled = { words: 'told to end', holds: ({ cause }) => cause === 'recycled' };
const isSilent = { words: 'still silent', holds: ({ cause }, event) => event.isSilent && cause !== 'stalled' };
const isWanted = { words: 'not to end yet', holds: ({ cause }) => cause === undefined };

/** A script that has never listened is no server: whoever has started it goes on with its exit code. */
function isExitAwaited({ everUp }, event) {
  return !everUp && event.isExitAwaited;
}

// ---- what happens on the way: what is noted, and what is to be done

const start = () => ({ notes: { cause: undefined }, effects: [['start']] });

const warm = () => ({ notes: { cause: undefined, everUp: true }, effects: [['forgetLauncher'], ['warmUp']] });

function comeUp(_life, { atMs, isWatched, warmed }) {
  const log = warmed ? [['log', 'warm', warmed]] : [];
  const up = { watched: isWatched, message: isWatched ? undefined : UNWATCHED };
  return {
    notes: { cause: undefined, everUp: true, upSinceMs: atMs, replacingSinceMs: undefined },
    effects: [...log, ['forgetLauncher'], ['endTurn'], ['log', 'up', up]],
  };
}

/** Whoever comes late: the next server of a launcher, when its worker is to be replaced (PM2, nodemon), or to end. */
function greet({ phase, cause, stopSignal }, { server, below }) {
  const look = ['lookWhetherReady', server];
  if (cause === 'recycled') return { effects: [['kill'], look] };
  if (phase === 'stopping' && below !== undefined) return { effects: [['signalChild', stopSignal], look] };
  return { effects: [look] };
}

/**
 * Starts the program again without flags of Corelane's that overrule the user's: Node.js takes the last of two, and a
 * script has put the user's in front.
 */
function startWithout(_life, { server, leftOut }) {
  return {
    notes: { cause: 'recycled', everUp: true },
    effects: [['log', 'flags', { leftOut }], ['kill'], ['lookWhetherReady', server]],
  };
}

/** The server has gone, the process that was started may live on: a launcher, or a server that has closed its port. */
function lose(life, event) {
  // Who is told to end closes its port.
  const isMeant = ['recycled', 'stalled'].includes(life.cause);
  const log = isMeant ? [] : [['log', 'down', { reason: 'the server has closed its port' }]];
  return { effects: [...log, ...awaitLauncher(life, event).effects] };
}

/** @param event.below the process of the server, if it stood below a launcher */
function awaitLauncher(_life, { below }) {
  return { effects: below === undefined ? [] : [['awaitLauncher', below]] };
}

function killLauncher(_life, { below }) {
  const reason = `the server process ${below} has ended, its launcher has not`;
  return { effects: [['log', 'kill', { reason }], ['kill']] };
}

/** Whoever could not be killed for an earlier stall may be for this one. */
function takeStack({ phase, cause }, { server }) {
  const notes = { cause: cause === 'stalled' ? undefined : cause };
  return { notes, effects: [['capture', server, { tellsFirst: phase !== 'stopping' }]] };
}

const killStalled = () => ({
  notes: { cause: 'stalled' },
  effects: [['log', 'kill', { reason: 'stalled' }], ['kill']],
});

const resume = (_life, { server }) => ({ effects: [['resume', server]] });

function recover({ upSinceMs }, { atMs, server }) {
  return {
    notes: { upSinceMs: upSinceMs ?? atMs },
    effects: [
      ['resume', server],
      ['log', 'recovered'],
    ],
  };
}

const replace = (_life, { server }) => ({ notes: { cause: 'abandoned' }, effects: [['replace', server]] });

const spare = () => ({ notes: { cause: undefined } });

const OVERDUE = 'no answer within timeouts.render (GET, HEAD, OPTIONS) or timeouts.handler (other methods)';

function killAbandoned(_life, { atMs, requests }) {
  const log = ['log', 'kill', { reason: 'abandoned', because: OVERDUE, requests }];
  return { notes: { replacingSinceMs: atMs }, effects: [log, ['kill']] };
}

const recycle = () => ({ notes: { cause: 'recycled' }, effects: [['forward', 'SIGTERM']] });

function stop(_life, { signal }) {
  return {
    notes: { stopSignal: signal },
    effects: [
      ['log', 'stopping', { signal }],
      ['forward', signal],
    ],
  };
}

const quit = (_life, { signal }) => ({
  effects: [
    ['log', 'stopping', { signal }],
    ['exit', 0],
  ],
});

function exit({ phase }, { exitCode: code, killedBy }) {
  const reason = phase === 'stopping' ? 'stopped' : 'no server';
  return {
    effects: [
      ['log', 'exit', { code, reason, killedBy }],
      ['exit', code],
    ],
  };
}

function restart(life, { atMs, code, signal, exitCode, killedBy }) {
  const reason = life.cause ?? (signal ? 'signal' : code === 0 ? 'exit' : 'error');
  const isExcused = isHealthy(life, atMs) || ['recycled', 'abandoned'].includes(life.cause);
  const failures = isExcused ? 0 : life.failures;
  const backoffMs = failures === 0 ? 0 : Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** (failures - 1));
  const restarts = { ...life.restarts, [reason]: life.restarts[reason] + 1 };
  return {
    notes: { upSinceMs: undefined, failures: failures + 1, backoffMs, restarts, lastExitCode: exitCode },
    effects: [
      ['forgetLauncher'],
      // What it has left behind may hold its port or its files.
      ['kill'],
      // Where the supervisor itself has sent SIGKILL, the kernel has killed another process.
      ['log', 'restart', { reason, code, signal, killedBy: life.cause ? undefined : killedBy, afterMs: backoffMs }],
      ['startIn', backoffMs],
    ],
  };
}

// The table: phase -> event -> ways, of which the first whose condition holds is taken. Without `to` the phase stays.
// `ends`: so does the supervisor.

const greeting = [{ act: greet }];

/** While there is a process and the container is not to stop; a phase may have ways of its own instead. */
const RUNNING = {
  ended: [
    { when: isAwaited, act: exit, ends: true },
    { to: 'waiting', act: restart },
  ],
  stop: [{ to: 'stopping', act: stop }],
  attached: greeting,
  captured: [{ act: resume }],
  kept: [{ when: isAbandoned, act: spare }],
};

const closed = [{ to: 'starting', act: lose }];
const stalled = [{ to: 'stalled', act: takeStack }];
const captured = [{ when: isSilent, act: killStalled }, { act: resume }];
const abandoned = [{ when: isAbandoned, to: 'draining', act: killAbandoned }];

const TABLE = {
  /** For HAProxy to hear "down", or for the end of the back-off. */
  waiting: {
    due: [{ to: 'starting', act: start }],
    stop: [{ act: quit, ends: true }],
    attached: greeting,
  },
  /** No server listens yet, or any more. */
  starting: {
    ...RUNNING,
    listening: [
      { when: isCold, to: 'warming', act: warm },
      { to: 'up', act: comeUp },
    ],
    closed: [{ act: awaitLauncher }],
    'launcher-late': [{ act: killLauncher }],
    attached: [{ when: isOverruled, act: startWithout }, ...greeting],
  },
  warming: {
    ...RUNNING,
    warm: [{ to: 'up', act: comeUp }],
    stalled,
    closed,
  },
  up: {
    ...RUNNING,
    drain: [{ to: 'draining' }],
    overdue: [{ when: isWanted, act: replace }],
    abandoned,
    stalled,
    closed,
  },
  /** Out of rotation; ends what it has. */
  draining: {
    ...RUNNING,
    undrained: [{ to: 'up' }],
    recycled: [{ when: isWanted, act: recycle }],
    abandoned,
    kept: [{ when: isAbandoned, to: 'up', act: spare }],
    stalled,
    closed,
  },
  /** Its event loop stands still, and its stack is being taken. */
  stalled: {
    ...RUNNING,
    captured,
    recovered: [
      { when: isKilled },
      // It has been told to end.
      { when: isRecycled, to: 'draining', act: recover },
      { to: 'up', act: recover },
    ],
    closed,
  },
  /** The container is to end. */
  stopping: {
    ended: [{ act: exit, ends: true }],
    stop: [{ act: stop }],
    attached: greeting,
    stalled: [{ act: takeStack }],
    captured,
  },
};

/**
 * What an event makes of a life.
 * @param event `{ type, atMs, ... }`; one that means nothing in this phase changes nothing
 * @returns the next life, and what is to be done: `[name, ...arguments]`, in this order
 */
function next(life, event) {
  const ways = TABLE[life.phase][event.type] ?? [];
  const way = ways.find(({ when }) => when === undefined || when.holds(life, event));
  if (way === undefined) return { life, effects: [] };
  const { notes, effects = [] } = way.act?.(life, event) ?? {};
  return { life: { ...life, ...notes, phase: way.to ?? life.phase }, effects };
}

// ---- what a life means

/** Whether its process has been up for so long that an end of it is no part of a crash loop. */
function isHealthy({ upSinceMs }, nowMs) {
  return upSinceMs !== undefined && nowMs - upSinceMs >= HEALTHY_MS;
}

function isLooping(life, nowMs) {
  return life.failures >= LOOP_FAILURES && !isHealthy(life, nowMs);
}

function isReplacing({ replacingSinceMs }, nowMs) {
  return replacingSinceMs !== undefined && nowMs - replacingSinceMs < REPLACING_MS;
}

module.exports = { FIRST, RUNNING, TABLE, isLooping, isReplacing, next };
