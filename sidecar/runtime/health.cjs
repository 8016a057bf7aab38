/**
 * The runtime port on 127.0.0.1. Plain net instead of node:http, which would cost each worker about 2 MB more: a few
 * short dialogues, told apart by the first line.
 *   corelane-agent N          HAProxy's agent check; a worker may have N requests; the answer is "up" or "down #reason" (agent.cjs)
 *   corelane-worker TOKEN ... a server process below the supervisor; the connection stays and carries its heartbeat
 *   corelane-watch TOKEN PID  its watchdog thread; the connection stays
 *   corelane-bulk TOKEN ID    a profile from there
 *   GET /healthz, /metrics    for people and Prometheus; docs/runtime.md has the others
 */
'use strict';

const net = require('node:net');

/** Whoever has said nothing sensible by then is closed. */
const FIRST_LINE_MS = 5_000;
const FIRST_LINE_BYTES_MAX = 8_192;

function respond(socket, { status, type = 'text/plain', headers = {}, body, source }) {
  const head = [
    `HTTP/1.1 ${status} ${status === 200 ? 'OK' : 'Not OK'}`,
    `Content-Type: ${type}; charset=utf-8`,
    source ? 'Transfer-Encoding: chunked' : `Content-Length: ${Buffer.byteLength(body)}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    'Connection: close',
  ];
  if (!source) {
    socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
    return;
  }
  socket.write(`${head.join('\r\n')}\r\n\r\n`);
  // In chunks: not everybody in between passes on the end of a connection.
  source.on('data', (chunk) => {
    socket.write(`${chunk.length.toString(16)}\r\n`);
    socket.write(chunk);
    if (!socket.write('\r\n')) source.pause();
  });
  socket.on('drain', () => source.resume());
  source.on('end', () => socket.end('0\r\n\r\n'));
  source.on('error', () => socket.destroy());
  socket.on('close', () => source.destroy());
  source.resume();
}

/** Calls `handler` with the first line; what comes after it stays in the socket, which waits. */
function readFirstLine(socket, handler) {
  let read = Buffer.alloc(0);
  const onData = (chunk) => {
    read = Buffer.concat([read, chunk]);
    const end = read.indexOf('\n');
    if (end < 0) {
      if (read.length > FIRST_LINE_BYTES_MAX) socket.destroy();
      return;
    }
    socket.off('data', onData);
    socket.pause();
    socket.setTimeout(0);
    if (end + 1 < read.length) socket.unshift(read.subarray(end + 1));
    handler(read.toString('latin1', 0, end).trim());
  };
  socket.on('data', onData);
}

/**
 * @param {{ agent(socket: net.Socket): Promise<void>, setLimit(given: number): void, take(verb: string, words: string[], socket: net.Socket): boolean,
 *   page(path: string): Promise<{status: number, type?: string, headers?: object, body?: string, source?: net.Socket}> }} answers
 *   `take` keeps the connection of a process that it knows
 */
function healthServer(answers) {
  return net.createServer({ noDelay: true }, (socket) => {
    socket.on('error', () => socket.destroy());
    socket.setTimeout(FIRST_LINE_MS, () => socket.destroy());
    // What somebody asks for never ends the worker.
    readFirstLine(socket, (line) => answer(line, socket, answers).catch(() => socket.destroy()));
  });
}

async function answer(line, socket, answers) {
  const [verb, ...words] = line.split(' ');
  if (answers.take(verb, words, socket)) return;
  socket.resume(); // the other headers
  if (verb === 'corelane-agent') {
    answers.setLimit(Number(words[0]));
    await answers.agent(socket);
  } else if (verb === 'GET') respond(socket, await answers.page(words[0] ?? ''));
  else socket.destroy();
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
