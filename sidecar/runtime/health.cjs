/**
 * The runtime port on 127.0.0.1. Plain net instead of node:http, which would cost each worker about 2 MB more: three
 * short dialogues, told apart by the first line.
 *   corelane-agent            HAProxy's agent check; the answer is "up" or "down #reason"
 *   corelane-worker TOKEN ... a server process below the supervisor; the connection stays and carries its heartbeat
 *   GET /healthz, /metrics    for people and Prometheus
 */
'use strict';

const net = require('node:net');

/** Whoever has said nothing sensible by then is closed. */
const FIRST_LINE_MS = 5_000;
const FIRST_LINE_BYTES_MAX = 8_192;

function respond(socket, { status, type = 'text/plain', body }) {
  const head = [
    `HTTP/1.1 ${status} ${status === 200 ? 'OK' : 'Not OK'}`,
    `Content-Type: ${type}; charset=utf-8`,
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
}

/** Calls `handler` with the first line; nobody needs what comes after it. */
function readFirstLine(socket, handler) {
  let text = '';
  const onData = (chunk) => {
    text += chunk.toString('latin1');
    const end = text.indexOf('\n');
    if (end < 0) {
      if (text.length > FIRST_LINE_BYTES_MAX) socket.destroy();
      return;
    }
    socket.off('data', onData);
    socket.setTimeout(0);
    handler(text.slice(0, end).trim());
  };
  socket.on('data', onData);
}

/**
 * @param {{ agent(): Promise<string>, attach(words: string[], socket: net.Socket): boolean,
 *   page(path: string): Promise<{status: number, type?: string, body: string}> }} answers
 */
function healthServer(answers) {
  return net.createServer({ noDelay: true }, (socket) => {
    socket.on('error', () => socket.destroy());
    socket.setTimeout(FIRST_LINE_MS, () => socket.destroy());
    readFirstLine(socket, async (line) => {
      const [verb, ...words] = line.split(' ');
      if (verb === 'corelane-worker' && answers.attach(words, socket)) return;
      socket.resume(); // the other headers
      if (verb === 'corelane-agent') socket.end(`${await answers.agent()}\n`);
      else if (verb === 'GET') respond(socket, await answers.page(words[0] ?? ''));
      else socket.destroy();
    });
  });
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
