/**
 * Runs in the user's program: lets the server on PORT listen on loopback, puts the concurrency limiter before it, and
 * tells the supervisor that the event loop turns. One byte every `intervalMs` over a connection that the kernel closes
 * when the process dies, whichever way. The same timer writes down the metrics that the watchdog thread gives away.
 */
'use strict';

const { closeSync, openSync } = require('node:fs');
const net = require('node:net');

/** As they are before a test or a library replaces them. */
const { setInterval, clearInterval } = globalThis;
const LOOPBACK = '127.0.0.1';
/** More files than a worker has open when its server listens, and connections that it accepts at a time. */
const LISTENING_FD_MIN = 256;
/** A server on another port only: the likely reason why a worker never comes up. */
const WRONG_PORT_AFTER_MS = 10_000;
/**
 * A render without a connection that nobody puts an end to keeps its place for timeouts.render (timeouts.handler), and
 * at least for this long.
 */
const ABANDONED_MIN_MS = 30_000;

const { listen: originalListen, close: originalClose } = net.Server.prototype;
/** Servers of this thread that listen on PORT. */
const listening = new Set();
/** Servers that have their limiter: one may listen again, after it was closed or its port was in use. */
const guarded = new WeakSet();
let supervisor;
/** NODE_OPTIONS as this process has begun with it, and Corelane's flags in it: programs change the variable. */
let given;
let inspector;
/** A Session of node:inspector was told to take a heap snapshot since the last beat. */
let isSnapshotAhead = false;
let connection;
let timer;
let limiter;

/** Bits of a beat. */
const INSPECTED = 1;
const BLOCKED = 2;
const BUSY = 4;
const RENDERS = 8;
const OVERDUE = 16;
const GUARDED = 32;
const BEAT = 0x40;
/** There was a render since the last beat, however short. */
const RENDERED = 0x80;
/** In the place of a beat: the event loop is about to stand still for a heap snapshot. */
const SNAPSHOT = '\x01';
/** Beside a beat, which has BEAT: this and how many requests go on without a slot. */
const WITHOUT_SLOT = 0x80;
const WITHOUT_SLOT_MAX = 63;
/** Beside a beat: a render waits in one of the places, all of which are taken. Has its client gone? */
const WAITS = 0x02;
/** Beside a beat: a request that may change something is in progress. */
const HANDLES = 0x04;
const ORDERS = /(limit|render|aside|gone) ([A-Za-z0-9._-]{1,128})\n/g;

function connect(eventLoop) {
  inspector ??= loadInspector();
  connection = net.connect({ host: LOOPBACK, port: supervisor.port, noDelay: true });
  // Nothing of the runtime keeps a program alive that has come to its end.
  connection.unref();
  connection.on('error', () => {}); // the supervisor has gone: the worker goes on without it
  connection.on('data', (chunk) => {
    for (const [, what, word] of chunk.toString('latin1').matchAll(ORDERS)) obey(what, word);
  });
  const { overriding } = require('./node-options.cjs');
  const words = [supervisor.token, process.pid, process.ppid, overriding(given).join(',')];
  connection.write(`corelane-worker ${words.join(' ')}\n`);
  const socket = connection;
  timer = setInterval(() => {
    eventLoop.beat();
    limiter?.beat();
    const withoutSlot = WITHOUT_SLOT + (limiter?.withoutSlot ?? 0);
    const notes = [...(limiter?.hasWaiting ? [WAITS] : []), ...(limiter?.runsHandler ? [HANDLES] : [])];
    // Since Node.js 22 a Session takes it when the event loop has turned: a beat would come in between.
    const sign = isSnapshotAhead ? SNAPSHOT : String.fromCharCode(beat());
    isSnapshotAhead = false;
    if (socket.writable) socket.write(String.fromCharCode(withoutSlot, ...notes) + sign, 'latin1');
  }, supervisor.intervalMs);
  timer.unref();
}

/** What the supervisor says: a number, or the id of a request whose client has gone. */
function obey(what, word) {
  const number = Number(word);
  if (what === 'gone') limiter?.giveUp(word);
  if (what === 'aside' && number >= 0) limiter?.setAsideMax(number);
  if (what === 'limit' && number > 0) limiter?.setLimit(number);
  if (what === 'render' && number > 0) limiter?.setRenderMs(number, abandonedMsOf(number));
}

/** HAProxy is to hear of it before the next beat. */
function tellWithoutSlot(count) {
  if (connection?.writable) connection.write(String.fromCharCode(WITHOUT_SLOT + count), 'latin1');
}

/** Calls that the watchdog must not take for a render that is stuck. */
function announceSnapshots(object, names, takesOne = () => true) {
  for (const name of names) {
    const original = object[name];
    object[name] = function (...args) {
      if (takesOne(...args) && connection?.writable) connection.write(SNAPSHOT);
      return original.apply(this, args);
    };
  }
}

function beat() {
  const blocked = limiter?.isBlocked ? BLOCKED : 0;
  const isBusy = limiter?.isIdle === false ? BUSY : 0;
  const overdue = limiter?.isOverdue ? OVERDUE : 0;
  return (
    BEAT +
    (inspected() ? INSPECTED : 0) +
    blocked +
    isBusy +
    overdue +
    (limiter ? RENDERS : 0) +
    (limiter?.takeHasRendered() ? RENDERED : 0) +
    (isGuarded() ? GUARDED : 0)
  );
}

/**
 * Whether all that is answered on PORT goes through the limiter. The first process of a cluster has given its socket
 * away.
 */
function isGuarded() {
  return [...listening].every((server) => guarded.has(server) || server._handle === null);
}

/**
 * Somebody has opened the inspector: a break point looks like a stuck event loop, and must not get the process killed.
 */
function inspected() {
  return inspector?.url() !== undefined;
}

/**
 * Calls that may wait for a debugger at once: no beat would come before that says that the inspector is open. A second
 * beat says what has become of it: a loop that got stuck in the same turn, after a call that has failed or closed the
 * inspector, would never be found.
 */
function announceDebuggers(object) {
  for (const name of ['open', 'waitForDebugger', 'close']) {
    const original = object[name];
    if (typeof original !== 'function') continue;
    object[name] = function (...args) {
      tellBeat(INSPECTED);
      try {
        return original.apply(this, args);
      } finally {
        tellBeat();
      }
    };
  }
}

function tellBeat(further = 0) {
  if (connection?.writable) connection.write(String.fromCharCode(beat() | further), 'latin1');
}

/**
 * Undefined where Node.js was built without it. Loaded with the first server on PORT, and not when the inspector is
 * opened: a signal (SIGUSR1) opens it without a call.
 */
function loadInspector() {
  try {
    const loaded = require('node:inspector');
    announceDebuggers(loaded);
    announceSnapshots(loaded.Session.prototype, ['post'], (method) => {
      const takesOne = method === 'HeapProfiler.takeHeapSnapshot';
      isSnapshotAhead ||= takesOne;
      return takesOne;
    });
    return loaded;
  } catch {
    return undefined;
  }
}

function detach(server) {
  if (!listening.delete(server) || listening.size > 0) return;
  clearInterval(timer);
  connection.end();
}

function attach(server) {
  if (listening.has(server)) return;
  listening.add(server);
  if (listening.size > 1) return;
  connect(require('./event-loop.cjs').eventLoopOf(supervisor));
  process.off('exit', closePort);
  process.prependListener('exit', closePort);
}

/**
 * The process ends by itself: its port is closed while all connections are open, and before the program's own exit
 * handlers. Not `server.close`, which would begin with idle connections: the proxy sends the next request when one
 * ends.
 */
function closePort() {
  for (const server of listening) originalClose.call(server);
}

/** A server of node:http, or one that is made of it. That of node:http2 has no time-out of a request. */
function speaksHttp1(server) {
  return typeof server.setTimeout === 'function' && typeof server.requestTimeout === 'number';
}

function abandonedMsOf(renderMs) {
  return Math.max(ABANDONED_MIN_MS, Number.isFinite(renderMs) ? renderMs : 0);
}

/** The limiter of this process: one for all its servers on PORT. */
function guard(server) {
  if (!speaksHttp1(server) || guarded.has(server)) return; // node:net alone: no requests
  guarded.add(server);
  limiter ??= newLimiter();
  limiter.guard(server);
}

function newLimiter() {
  const { ChildWaits } = require('./child-waits.cjs');
  const { ConcurrencyLimiter } = require('./concurrency-limiter.cjs');
  const { ownClasses } = require('./classes.cjs');
  const { OwnRequests } = require('./own-requests.cjs');
  const { OwnSite } = require('./own-site.cjs');
  const { keepRedirectsOnSite } = require('./redirects.cjs');
  const { RequestJournal } = require('./request-journal.cjs');
  const renderMs = Number(process.env.CORELANE_RENDER_TIMEOUT_MS) || Number.POSITIVE_INFINITY;
  const handlerMs = Number(process.env.CORELANE_HANDLER_TIMEOUT_MS) || 0;
  const abandonedMs = abandonedMsOf(renderMs);
  const webSocketMs = Number(process.env.CORELANE_WEBSOCKET_MAX_AGE_MS) || 0;
  const { metrics } = require('./event-loop.cjs');
  const own = new OwnRequests(Number(process.env.PORT), supervisor.entry);
  new OwnSite(own, metrics);
  keepRedirectsOnSite(process.env);
  const giveTag = process.env.CORELANE_ETAG === 'Auto' ? require('./etag.cjs').giveTag : undefined;
  const levels = process.env.CORELANE_CONCURRENCY ? new (require('./loop-levels.cjs').LoopLevels)(metrics) : undefined;
  const withoutSlotMax = Math.min(WITHOUT_SLOT_MAX, Number(process.env.CORELANE_WITHOUT_SLOT_MAX) || 0);
  const ofTime = { renderMs, handlerMs, abandonedMs, webSocketMs };
  const childWaits = new ChildWaits(metrics);
  const options = { ...ofTime, giveTag, classes: ownClasses(), levels, withoutSlotMax, tellWithoutSlot, childWaits };
  return new ConcurrencyLimiter(metrics, new RequestJournal(supervisor), own, options);
}

/**
 * Whether options of `listen` are about a port, as Node.js takes them: a socket that is open already comes before it, a
 * path does not (SvelteKit gives `path: false` beside its port).
 */
function isPort(options, port) {
  const { fd, handle, _handle } = options;
  const isOpen = (typeof fd === 'number' && fd >= 0) || typeof (_handle ?? handle) === 'object';
  return !isOpen && Number(options.port) === port;
}

/** The arguments of `listen` with the host replaced, or undefined if they are not about `port`. */
function onLoopback(args, port) {
  const [first, second] = args;
  if (typeof first === 'object' && first !== null) {
    if (!isPort(first, port)) return undefined;
    return [{ ...first, host: LOOPBACK }, ...args.slice(1)];
  }
  if (typeof first === 'function' || first === undefined || first === null || Number(first) !== port) return undefined;
  return [
    first,
    LOOPBACK,
    ...args.slice(typeof second === 'string' || second === undefined || second === null ? 2 : 1),
  ];
}

/**
 * Lets the next socket have a high number, until the function that it gives is called. When a process is killed, Linux
 * releases its highest file first. Were that a connection, the proxy would see it end and send the next request to
 * a port that is still open for some microseconds; that request would be lost although nobody has begun it.
 */
function reserveLowNumbers() {
  const reserved = [];
  try {
    for (let fd = -1; fd < LISTENING_FD_MIN; reserved.push(fd)) fd = openSync('/dev/null', 'r');
  } catch {
    // A low limit of open files: as high as it goes, with some left for the server.
    for (const fd of reserved.splice(-16)) closeSync(fd);
  }
  return () => {
    for (const fd of reserved.splice(0)) closeSync(fd);
  };
}

/**
 * Only the proxy in the same pod may reach a worker, and it comes over loopback: a host in HOSTNAME or 0.0.0.0 is
 * overruled.
 */
function patchListen(port) {
  net.Server.prototype.listen = function listen(...args) {
    const changed = onLoopback(args, port);
    if (changed === undefined) {
      noteOtherPort(this, port);
      return originalListen.apply(this, args);
    }
    guard(this);
    const release = reserveLowNumbers();
    this.once('listening', () => {
      release();
      attach(this);
    });
    this.once('error', release);
    this.once('close', () => {
      release();
      detach(this);
    });
    try {
      return originalListen.apply(this, changed);
    } catch (error) {
      release(); // no event will come of it
      throw error;
    }
  };
  // At once, not when the last connection has ended: the port is closed from now on.
  net.Server.prototype.close = function close(...args) {
    detach(this);
    return originalClose.apply(this, args);
  };
}

let noted = false;
function noteOtherPort(server, port) {
  if (noted) return;
  noted = true;
  server.once('listening', () => {
    const address = server.address();
    if (typeof address !== 'object' || address === null) return;
    setTimeout(() => {
      if (listening.size > 0) return;
      process.stderr.write(
        `corelane: nothing listens on PORT=${port}, but a server listens on ${address.port}; let it use process.env.PORT\n`,
      );
    }, WRONG_PORT_AFTER_MS).unref();
  });
}

/** @param marker `port:token:intervalMs`, from the supervisor */
function watchServers(marker) {
  const [port, token, intervalMs] = marker.split(':');
  const entry = `CORELANE_SUPERVISOR=${marker}`;
  supervisor = { port: Number(port), token, intervalMs: Number(intervalMs), entry };
  const { NODE_OPTIONS, CORELANE_NODE_FLAGS, PORT } = process.env;
  given = { NODE_OPTIONS, CORELANE_NODE_FLAGS };
  if (!(Number(PORT) > 0)) return;
  patchListen(Number(PORT));
  require('./refusals.cjs').watchRefusals();
  announceSnapshots(require('node:v8'), ['getHeapSnapshot', 'writeHeapSnapshot']);
}

module.exports = { watchServers, onLoopback };
