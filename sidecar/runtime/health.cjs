/**
 * The runtime port on 127.0.0.1. Plain net instead of node:http, which would cost each worker about 2 MB more: a few
 * short dialogues, told apart by the first line.
 *   corelane-agent N          HAProxy's agent check (agent.cjs); a worker may have N requests; "up" or "down #reason"
 *   corelane-alive            the same for whether the worker is there, though it may be busy
 *   corelane-class NAME       the same for requests of a class, which are no renders
 *   corelane-guarded          HAProxy's question whether connections to the worker may be kept; the answer is the same
 *   corelane-worker TOKEN ... a server process below the supervisor; the connection stays and carries its heartbeat
 *   corelane-watch TOKEN PID  its watchdog thread; the connection stays
 *   corelane-bulk TOKEN ID    a profile from there
 *   GET /healthz, /metrics    for people and Prometheus; docs/runtime.md has the others
 * Whatever runs in the pod reaches it, and so does whoever can make the program fetch a URL.
 */
'use strict';

const net = require('node:net');
const { headOf } = require('./head.cjs');

/** Whoever has said nothing sensible by then is closed, and whoever has not taken its answer so long after it. */
const HEAD_MS = 5_000;
const TAKE_MS = 5_000;
/** HAProxy passes on no longer ones; what processes of the worker say is shorter. */
const HEAD_BYTES_MAX = 16_384;
const LINE_BYTES_MAX = 512;
/**
 * Connections of strangers, of which the proxies have a handful. Past that the oldest one goes: the next question of
 * HAProxy must get through.
 */
const STRANGERS_MAX = 128;
/** A reader of a heap snapshot that takes nothing for so long has gone. */
const UNREAD_MS = 60_000;
/** As the schema has it. */
const LIMIT_MAX = 1_000;

function respond(socket, { status, type = 'text/plain', headers = {}, body, source, isWhole }) {
  const head = [
    `HTTP/1.1 ${status} ${status === 200 ? 'OK' : 'Not OK'}`,
    `Content-Type: ${type}; charset=utf-8`,
    source ? 'Transfer-Encoding: chunked' : `Content-Length: ${Buffer.byteLength(body)}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    'Connection: close',
  ];
  if (source) {
    socket.write(`${head.join('\r\n')}\r\n\r\n`);
    stream(socket, source, isWhole);
    return;
  }
  socket.setTimeout(TAKE_MS, () => socket.destroy());
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
}

/**
 * In chunks: not everybody in between passes on the end of a connection. One that is not whole ends without the last
 * chunk.
 */
function stream(socket, source, isWhole) {
  let unread;
  const stop = () => {
    clearTimeout(unread);
    source.destroy();
    socket.destroy();
  };
  source.on('data', (chunk) => {
    socket.write(`${chunk.length.toString(16)}\r\n`);
    socket.write(chunk);
    if (socket.write('\r\n')) return;
    source.pause();
    clearTimeout(unread);
    unread = setTimeout(stop, UNREAD_MS);
  });
  socket.on('drain', () => {
    clearTimeout(unread);
    source.resume();
  });
  source.on('end', async () => {
    if (!(await isWhole)) return stop();
    socket.setTimeout(UNREAD_MS, stop);
    socket.end('0\r\n\r\n');
  });
  source.on('error', stop);
  socket.on('close', stop);
  if (socket.destroyed) stop();
  source.resume();
}

/**
 * Calls `handler` with the first line, for HTTP with the whole head; what comes after it stays in the socket, which
 * waits.
 */
function readHead(socket, handler) {
  let read = Buffer.alloc(0);
  const late = setTimeout(() => socket.destroy(), HEAD_MS);
  late.unref();
  const refuse = () => {
    clearTimeout(late);
    socket.destroy();
  };
  socket.once('close', () => clearTimeout(late));
  const onData = (chunk) => {
    read = Buffer.concat([read, chunk]);
    const isVerb = read.toString('latin1', 0, 9) === 'corelane-';
    const end = isVerb ? read.indexOf('\n') : endOfHead(read);
    if (end < 0) {
      if (read.length > (isVerb ? LINE_BYTES_MAX : HEAD_BYTES_MAX)) refuse();
      return;
    }
    clearTimeout(late);
    socket.off('data', onData);
    socket.pause();
    if (end + 1 < read.length) socket.unshift(read.subarray(end + 1));
    handler(read.toString('latin1', 0, end), end + 1 < read.length);
  };
  socket.on('data', onData);
}

/** Where the empty line of an HTTP head ends; -1 if it has not come yet. */
function endOfHead(bytes) {
  const ends = ['\r\n\r\n', '\n\n'].map((text) => [bytes.indexOf(text), text.length]).filter(([at]) => at >= 0);
  return ends.length === 0 ? -1 : Math.min(...ends.map(([at, length]) => at + length - 1));
}

/**
 * @typedef {object} Page
 * @property {number} status
 * @property {string} [type]
 * @property {object} [headers]
 * @property {string} [body]
 * @property {net.Socket} [source]
 * @property {Promise<boolean>} [isWhole]
 */

/**
 * @typedef {object} Answers who answers which dialogue
 * @property {(socket: net.Socket) => Promise<void>} agent
 * @property {(socket: net.Socket) => Promise<void>} alive
 * @property {(name: string) => undefined | ((socket: net.Socket) => Promise<void>)} classAgent
 * @property {(socket: net.Socket) => Promise<void>} guard
 * @property {(given: number) => void} setLimit
 * @property {(verb: string, words: string[], socket: net.Socket) => boolean} take keeps the connection of a process
 *   that it knows
 * @property {(request: object, socket: net.Socket) => Promise<Page>} page answers what head.cjs has read
 */

/** @param {Answers} answers */
function healthServer(answers) {
  const strangers = new Set();
  return net.createServer({ noDelay: true }, (socket) => {
    const trust = () => strangers.delete(socket);
    strangers.add(socket);
    if (strangers.size > STRANGERS_MAX) {
      const [oldest] = strangers;
      strangers.delete(oldest);
      oldest.destroy();
    }
    socket.once('close', trust);
    socket.on('error', () => socket.destroy());
    // What somebody asks for never ends the worker.
    readHead(socket, (text, hasMore) =>
      answer(text, hasMore, { socket, trust }, answers).catch(() => socket.destroy()),
    );
  });
}

async function answer(text, hasMore, { socket, trust }, answers) {
  if (socket.destroyed) return;
  const [verb, ...words] = text.split('\n', 1)[0].trim().split(' ');
  if (answers.take(verb, words, socket)) {
    trust();
    return;
  }
  // Nothing comes after a question. The socket is read all the same: so its end is seen.
  socket.on('data', () => socket.destroy());
  socket.resume();
  const question = questionOf(verb, words[0], answers);
  if (question) {
    await question(socket);
    socket.setTimeout(TAKE_MS, () => socket.destroy());
  } else if (verb === 'GET') {
    const reply = await answers.page(headOf(text, hasMore), socket);
    if (reply.source) trust();
    if (socket.destroyed) reply.source?.destroy();
    else respond(socket, reply);
  } else socket.destroy();
}

/** What answers a question of HAProxy's; undefined if it is none. */
function questionOf(verb, word, answers) {
  if (verb === 'corelane-agent') {
    const limit = Number(word);
    if (Number.isInteger(limit) && limit <= LIMIT_MAX) answers.setLimit(limit);
    return answers.agent;
  }
  if (verb === 'corelane-alive') return answers.alive;
  if (verb === 'corelane-class') return answers.classAgent(word);
  if (verb === 'corelane-guarded') return answers.guard;
  return undefined;
}

/** Whether something accepts connections on 127.0.0.1:port. */
function accepts(port, limitMs = 200) {
  return new Promise((resolve) => {
    const socket = net.connect({ host: '127.0.0.1', port });
    const done = (result) => {
      socket.destroy();
      resolve(result);
    };
    socket.setTimeout(limitMs, () => done(false));
    socket.on('connect', () => done(true));
    socket.on('error', () => done(false));
  });
}

module.exports = { healthServer, accepts };
