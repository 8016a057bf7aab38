/** The supervisor's end of the connections to watchdog threads (thread.cjs), by process. */
'use strict';

const { state } = require('./state.cjs');

/** A line is a stack or a page of metrics. */
const LINE_BYTES_MAX = 1024 * 1024;

/** pid -> connection of its thread. */
const threads = new Map();
/** What has been asked: id -> `{ resolve, onPart, onBulk }`. */
const asked = new Map();
/** pid -> who waits for its thread. */
const awaited = new Map();

/** Takes over the connection of a thread. */
function attachThread(pid, socket) {
  threads.set(pid, socket);
  awaited.get(pid)?.();
  socket.unref();
  let text = '';
  socket.on('data', (chunk) => {
    text += chunk.toString('utf8');
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n')) {
      receive(text.slice(0, end));
      text = text.slice(end + 1);
    }
    if (text.length > LINE_BYTES_MAX) socket.destroy();
  });
  socket.on('close', () => {
    if (threads.get(pid) === socket) threads.delete(pid);
  });
  socket.resume();
}

/** Resolves when the thread of a process is there, or after `limitMs`: threads may be forbidden. */
function connected(pid, limitMs) {
  if (threads.has(pid)) return Promise.resolve();
  return new Promise((resolve) => {
    const timer = setTimeout(() => awaited.get(pid)?.(), limitMs);
    awaited.set(pid, () => {
      clearTimeout(timer);
      awaited.delete(pid);
      resolve();
    });
  });
}

function receive(line) {
  let content;
  try {
    content = JSON.parse(line);
  } catch {
    return;
  }
  const question = asked.get(content.id);
  if (content.part) question?.onPart?.(content);
  else question?.resolve(content);
}

/** Takes over the connection that brings something large; false if nobody has asked for it (any more). */
function attachBulk(id, socket) {
  const { onBulk } = asked.get(id) ?? {};
  onBulk?.(socket);
  return onBulk !== undefined;
}

/**
 * Asks the thread of a process.
 * @param options.onBulk gets the connection that brings something large; the answer comes when all has been sent over
 * it
 * @returns its answer; undefined if there is none in time, or no thread
 */
function ask(pid, command, { limitMs, argument = '', onPart, onBulk } = {}) {
  const socket = threads.get(pid);
  if (!socket?.writable) return Promise.resolve(undefined);
  state.lastQuestion += 1;
  const id = state.lastQuestion;
  return new Promise((resolve) => {
    const timer = setTimeout(() => done(undefined), limitMs);
    const done = (content) => {
      clearTimeout(timer);
      socket.off('close', gone);
      asked.delete(id);
      resolve(content);
    };
    const gone = () => done(undefined);
    socket.once('close', gone);
    let bulk;
    let last;
    // The two connections may be read in any order.
    const answered = (content) => {
      last = content;
      if (bulk || !onBulk || !content.isDone) done(content);
    };
    const connected = (source) => {
      if (bulk) return source.destroy();
      bulk = source;
      onBulk(source);
      if (last) done(last);
    };
    asked.set(id, { resolve: answered, onPart, onBulk: onBulk && connected });
    socket.write(`${command} ${id} ${argument}\n`);
  });
}

/** Something that needs no answer. */
function tell(pid, command) {
  threads.get(pid)?.write(`${command} 0\n`);
}

module.exports = { ask, attachBulk, attachThread, connected, tell };
