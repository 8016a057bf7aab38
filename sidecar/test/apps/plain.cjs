/**
 * A server that speaks HTTP without node:http and keeps connections: what it sends beyond its Content-Length is not
 * cut. Requests: id=NAME, ms=N (time of the render), length=N (announce N bytes and send 10), more=TEXT (0.1 s after
 * the response). With HTTP_FIRST it is one of node:http until $EVENTS.plain exists; with CLUSTER=N there are N of it.
 */
'use strict';

const cluster = require('node:cluster');
const { appendFileSync, existsSync } = require('node:fs');
const http = require('node:http');
const net = require('node:net');

const { PORT, EVENTS, WORKER_INDEX, HTTP_FIRST, CLUSTER } = process.env;

function note(event) {
  appendFileSync(
    EVENTS,
    `${JSON.stringify({ worker: Number(WORKER_INDEX), pid: process.pid, at: Date.now(), ...event })}\n`,
  );
}

/** Body and length of the response, and what comes after it. */
function render(target, port) {
  const parameters = new URL(target, 'http://worker').searchParams;
  const id = parameters.get('id') ?? target;
  note({ event: 'begin', id, port });
  const length = parameters.get('length');
  const body = length ? 'x'.repeat(10) : JSON.stringify({ id });
  return {
    ms: Number(parameters.get('ms') ?? 0),
    length: length ?? body.length,
    body,
    more: parameters.get('more') ?? '',
  };
}

function talk(socket) {
  let text = '';
  socket.on('error', () => {});
  socket.on('data', (chunk) => {
    text += chunk.toString('latin1');
    for (let end = text.indexOf('\r\n\r\n'); end >= 0; end = text.indexOf('\r\n\r\n')) {
      const { ms, length, body, more } = render(text.split(' ')[1], socket.remotePort);
      text = text.slice(end + 4);
      setTimeout(() => {
        socket.write(`HTTP/1.1 200 OK\r\nContent-Length: ${length}\r\n\r\n${body}`);
        setTimeout(() => socket.write(more), 100);
      }, ms);
    }
  });
}

function answer(request, response) {
  const { ms, length, body, more } = render(request.url, request.socket.remotePort);
  setTimeout(() => {
    response.writeHead(200, { 'content-length': length }).write(body);
    setTimeout(() => response.end(more), more ? 100 : 0);
  }, ms);
}

const isHttp = HTTP_FIRST && !existsSync(`${EVENTS}.plain`);
const server = isHttp ? http.createServer(answer) : net.createServer(talk);
if (CLUSTER && cluster.isPrimary) for (let n = 0; n < Number(CLUSTER); n += 1) cluster.fork();
else server.listen(Number(PORT), '127.0.0.1', () => note({ event: 'up' }));
