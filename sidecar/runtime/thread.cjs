/**
 * The watchdog thread of a worker process. It shares no event loop with the program, so it answers the supervisor while
 * a render runs, or never ends: metrics, the stack of what runs now, profiles.
 *
 * From the supervisor come lines `COMMAND ID [ARGUMENT]`; back go lines of JSON with the same `id`. What is large goes
 * over a connection of its own.
 */
'use strict';

const net = require('node:net');
const { workerData } = require('node:worker_threads');
const { compactSoon } = require('./compact.cjs');
const { inProgress, views } = require('./shared-metrics.cjs');
const { renderMetrics } = require('./metrics.cjs');
const { refuse } = require('./refused.cjs');
const { isProgram, mapped, plainFrames } = require('./stack.cjs');

const { port, token, spaces, isMainThread } = workerData;
const metrics = views(workerData.metrics);
const SAMPLE_US = 1_000;
/** As long as no frame of the program is found. */
const PAUSES_MAX = 50;
/**
 * Node.js 19 pauses neither a loop of microtasks nor a regular expression; there a statement does it. A frame of the
 * runtime.
 */
const PAUSE_HERE = `debugger //# sourceURL=${__filename}`;
const PAUSE_HERE_AFTER_MS = 200;
/** A chunk of a heap snapshot is about 100 kB. */
const CHUNKS_MAX_BYTES = 1024 * 1024 * 1024;

/** Open while a stack is being taken: as long as it is, a paused main thread stays paused. */
let capture;
/** Ends the profile that is being taken before its time. */
let endProfile;

const socket = net.connect({ host: '127.0.0.1', port, noDelay: true });
socket.on('error', () => {}); // the supervisor has gone: nobody asks any more
socket.write(`corelane-watch ${token} ${process.pid}\n`);
compactSoon();
let text = '';
socket.on('data', (chunk) => {
  text += chunk.toString('latin1');
  for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n')) {
    const [command, id, argument] = text.slice(0, end).split(' ');
    text = text.slice(end + 1);
    run(command, Number(id), argument);
  }
});

function answer(id, content) {
  if (socket.writable) socket.write(`${JSON.stringify({ id, ...content })}\n`);
}

function run(command, id, argument) {
  try {
    if (command === 'stack') takeStack(id);
    else if (command === 'resume') endCapture();
    else if (command === 'requests') answer(id, { requests: inProgress(metrics, Date.now()) });
    else if (command === 'now') answer(id, { requests: inProgress(metrics, Date.now(), true) });
    else if (command === 'counts') answer(id, { requests: metrics.requests[0] });
    else if (command === 'levels') answer(id, levels());
    else if (command === 'refuse') answer(id, { refused: refuse(metrics.refused, argument, Date.now()) });
    else if (command === 'metrics') answer(id, { text: renderMetrics(metrics, spaces, Date.now()) });
    else if (command === 'profile') profile(id, Number(argument));
    else if (command === 'stop') endProfile?.();
    else if (command === 'heap') heapSnapshot(id);
  } catch (error) {
    answer(id, { error: String(error) });
  }
}

/** For `concurrency: Auto`: all since the process began. */
function levels() {
  const { user, system } = process.cpuUsage();
  return {
    timeMs: Array.from(metrics.levelMs),
    idleMs: Array.from(metrics.levelIdleMs),
    cpuMs: (user + system) / 1000,
    atMs: performance.now(),
    residentBytes: process.memoryUsage.rss(),
    abandoned: metrics.abandoned[0] - metrics.setAside[0],
  };
}

function open() {
  if (!isMainThread) throw new Error('the server runs in a thread of its own, which the inspector does not reach');
  const { Session } = require('node:inspector');
  const session = new Session();
  session.connectToMainThread();
  return session;
}

/**
 * Pauses the main thread, wherever it is, or when the native function that it is in returns; the caller then kills it.
 */
function takeStack(id) {
  const requests = inProgress(metrics, Date.now());
  answer(id, { part: true, requests });
  endCapture();
  const session = open();
  capture = session;
  // The frames of a paused thread name their scripts by number only.
  const urls = new Map();
  session.on('Debugger.scriptParsed', ({ params }) => urls.set(params.scriptId, params.url));
  let pauses = 0;
  let isEnabled = false;
  session.on('Debugger.paused', ({ params }) => {
    if (!isEnabled) {
      // Paused before this thread has asked for it: by another session, which also lets it go on.
      endCapture();
      answer(id, { heldBy: 'a debugger' });
      return;
    }
    const frames = plainFrames(params.callFrames, urls);
    pauses += 1;
    if (!frames.some(isProgram) && pauses < PAUSES_MAX) {
      // Between two microtasks, say: Node.js itself is on the stack, the program will be in a moment.
      session.post('Debugger.stepInto');
      return;
    }
    // First as they are: a large map may be too much for this thread.
    answer(id, { part: true, frames });
    answer(id, { frames: mapped(frames) });
  });
  session.post('Debugger.enable', () => {
    isEnabled = true;
  });
  session.post('Debugger.pause');
  setTimeout(() => {
    if (capture === session && pauses === 0) session.post('Runtime.evaluate', { expression: PAUSE_HERE });
  }, PAUSE_HERE_AFTER_MS);
}

function endCapture() {
  capture?.disconnect();
  capture = undefined;
}

function bulk(id) {
  const connection = net.connect({ host: '127.0.0.1', port });
  connection.on('error', () => {});
  connection.write(`corelane-bulk ${token} ${id}\n`);
  return connection;
}

/**
 * Lets V8 throw its optimized code away and compile it anew, which counting calls does. The profiler is not told of
 * what has been optimized in the middle of a loop (OSR) before it starts: on Node.js 23 to 25 a render of one long loop
 * was shown as its caller, `emit`, in every second profile.
 */
function forgetOptimizedCode(session) {
  // Somebody counts calls already.
  if (process.env.NODE_V8_COVERAGE) return;
  session.post('Profiler.startPreciseCoverage', { callCount: true });
  session.post('Profiler.stopPreciseCoverage');
}

/** A CPU profile as Chrome's and VS Code's tools read it. */
function profile(id, ms) {
  const session = open();
  session.post('Profiler.enable');
  forgetOptimizedCode(session);
  session.post('Profiler.setSamplingInterval', { interval: SAMPLE_US });
  session.post('Profiler.start');
  const stop = () => {
    clearTimeout(timer);
    endProfile = undefined;
    session.post('Profiler.stop', (error, result) => {
      session.disconnect();
      if (error) answer(id, { error: error.message });
      else bulk(id).end(JSON.stringify(result.profile), () => answer(id, { isDone: true }));
    });
  };
  const timer = setTimeout(stop, ms);
  endProfile = stop;
}

function heapSnapshot(id) {
  const session = open();
  const connection = bulk(id);
  session.on('HeapProfiler.addHeapSnapshotChunk', ({ params }) => {
    // Nobody reads as fast as it is made; it waits in memory, and not without bound.
    if (connection.writableLength > CHUNKS_MAX_BYTES) connection.destroy();
    if (connection.writable) connection.write(params.chunk);
  });
  session.post('HeapProfiler.takeHeapSnapshot', (error) => {
    // The event loop turns again, whoever reads on.
    answer(id, error ? { error: error.message } : { isDone: connection.writable });
    connection.end();
    session.disconnect();
  });
}
