/**
 * A worker that answers in pieces, step by step as its client says; it notes what happens as worker.mjs does. A request
 * names its steps, in order, as step=NAME:VALUE:
 *   head           send the head
 *   write:N        write N bytes at once: one chunk
 *   noise:N        the same, of bytes that nobody can compress
 *   writes:NxM     N writes of M bytes, each in a turn of the event loop of its own
 *   paced:NxM@MS   the same, a pause of MS after each
 *   last:N         a byte, and in the same turn of the event loop N bytes with which the response ends
 *   hold:NAME      wait until the test releases NAME
 *   raw:BASE64     bytes for the connection itself, instead of what Node.js would send
 *   trailer:TEXT   a trailer
 *   destroy        end the connection
 * With length=N the response has a Content-Length, with header=NAME:VALUE that header; with unframed=1 it ends with its
 * connection.
 */
import { randomBytes } from 'node:crypto';
import { appendFileSync, existsSync } from 'node:fs';
import http from 'node:http';
import { setImmediate, setTimeout } from 'node:timers/promises';

const { PORT, WORKER_INDEX, EVENTS } = process.env;
/** Longer than a test waits for what should come before it. */
const HOLD_MS_MAX = 600_000;

function note(event) {
  appendFileSync(EVENTS, `${JSON.stringify({ worker: Number(WORKER_INDEX), pid: process.pid, ...event })}\n`);
}

async function hold(name) {
  note({ event: 'hold', id: name });
  const end = performance.now() + HOLD_MS_MAX;
  while (!existsSync(`${EVENTS}.${name}`) && performance.now() < end) await setTimeout(2);
}

async function writeMany(response, value, pause) {
  const [count, bytes] = value.split('x').map(Number);
  const text = 'x'.repeat(bytes);
  for (let n = 0; n < count && !response.destroyed; n += 1) {
    response.write(text);
    await pause();
  }
}

const STEPS = {
  head: (response) => response.flushHeaders(),
  write: (response, bytes) => response.write('x'.repeat(Number(bytes))),
  noise: (response, bytes) => response.write(randomBytes(Number(bytes))),
  writes: (response, value) => writeMany(response, value, setImmediate),
  paced(response, value) {
    const [writes, pauseMs] = value.split('@');
    return writeMany(response, writes, () => setTimeout(Number(pauseMs)));
  },
  last(response, bytes) {
    response.write('x');
    response.end('x'.repeat(Number(bytes)));
  },
  hold: (_response, name) => hold(name),
  raw: (response, bytes) => response.socket.write(Buffer.from(bytes, 'base64')),
  trailer: (response, text) => response.addTrailers({ 'x-trailer': text }),
  destroy: (response) => response.socket.destroySoon(),
};

const server = http.createServer(async (request, response) => {
  const { searchParams } = new URL(request.url, 'http://worker');
  const id = searchParams.get('id') ?? request.url;
  const steps = searchParams.getAll('step').map((step) => /^([a-z]+):?(.*)$/s.exec(step).slice(1));
  note({ event: 'begin', id, port: request.socket.remotePort });
  response.on('close', () => note({ event: 'end', id }));
  if (searchParams.has('length')) response.setHeader('content-length', searchParams.get('length'));
  for (const header of searchParams.getAll('header')) response.appendHeader(...header.split(':'));
  if (searchParams.has('unframed')) response.removeHeader('transfer-encoding');
  if (steps.some(([name]) => name === 'trailer')) response.setHeader('trailer', 'x-trailer');
  for (const [name, value] of steps) await STEPS[name](response, value);
  // Else the runtime would take it for a render that goes on, whoever has ended the connection.
  response.end();
});
server.listen(Number(PORT), '127.0.0.1', () => note({ event: 'up' }));
process.on('SIGTERM', () => process.exit(0));
