/**
 * A server whose requests hold its event loop, or fill its heap. Each ends when the test makes the file $EVENTS.go:
 *   /write?file=F  v8.writeHeapSnapshot(F); F is a pipe that nobody reads yet
 *   /session       takes a snapshot through a Session of node:inspector, and reads its first piece; a beat is due then
 *   /open?file=F   opens F and writes nothing, as Node.js does while V8 makes a snapshot near the limit of the heap
 *   /pause         another thread pauses the program, as a debugger does
 *   /debug         opens the inspector, and waits for a debugger
 *   /closed        opens the inspector and closes it, and is stuck
 *   /leak          keeps small objects until there is no memory left
 */
'use strict';

const { closeSync, existsSync, openSync } = require('node:fs');
const http = require('node:http');
const v8 = require('node:v8');
const { isMainThread, Worker } = require('node:worker_threads');

const GO = `${process.env.EVENTS}.go`;
const SLICE = 20_000;
/** The runtime's beats come at least as often. */
const BEAT_MS = 250;

function sleep(ms) {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

function open(file) {
  const fd = openSync(file, 'w');
  while (!existsSync(GO)) sleep(10);
  closeSync(fd);
}

function takeThroughSession() {
  const { Session } = require('node:inspector');
  const session = new Session();
  session.connect();
  session.once('HeapProfiler.addHeapSnapshotChunk', () => {
    while (!existsSync(GO)) sleep(10);
  });
  session.post('HeapProfiler.takeHeapSnapshot', () => session.disconnect());
  // V8 takes it in a later turn of the event loop (since Node.js 22). The beat of this one comes before.
  sleep(BEAT_MS);
}

/** In a thread of its own. */
function pauseProgram() {
  const { Session } = require('node:inspector');
  const session = new Session();
  session.connectToMainThread();
  session.once('Debugger.paused', () => {
    while (!existsSync(GO)) sleep(10);
    session.disconnect(); // by which the program goes on
  });
  session.post('Debugger.enable');
  session.post('Debugger.pause');
  // It waits for the event.
  setInterval(() => {}, 60_000);
}

function closeAndLoop() {
  const inspector = require('node:inspector');
  inspector.open(0, '127.0.0.1');
  inspector.close();
  for (;;);
}

/** The event loop turns in between. */
function leak(kept = []) {
  for (let n = 0; n < SLICE; n += 1) kept.push({ n, text: `object-${n}` });
  setImmediate(leak, kept);
}

const ACTIONS = {
  '/write': (file) => v8.writeHeapSnapshot(file),
  '/session': takeThroughSession,
  '/open': open,
  '/pause': () => new Worker(__filename),
  '/debug': () => require('node:inspector').open(0, '127.0.0.1', true),
  '/closed': closeAndLoop,
  '/leak': () => leak(),
};

function serve() {
  http
    .createServer((request, response) => {
      const { pathname, searchParams } = new URL(request.url, 'http://worker');
      ACTIONS[pathname]?.(searchParams.get('file'));
      if (pathname === '/leak') return;
      // The program is paused by then, where it is to be.
      setTimeout(() => response.end(String(process.pid)), pathname === '/pause' ? 500 : 0);
    })
    .listen(process.env.PORT);
}

if (isMainThread) serve();
else pauseProgram();
