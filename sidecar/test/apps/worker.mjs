/**
 * A worker for tests. Writes what happens to it as JSON lines to $EVENTS, so that a test can read it while the event
 * loop is blocked. Query parameters of a request:
 *   ms=N      render for N ms without blocking (a second request could come in, and would be counted)
 *   block=N   block the event loop for N ms without burning CPU
 *   slices=N  the same for N ms, with a turn of the event loop every 20 ms
 *   keep=N    keep N MB of memory for as long as the process lives
 *   hold=1    render without blocking until the test releases this id; hold=block with the event loop blocked,
 *             hold=busy with an event loop that has no time, and turns
 *   until=X   render without blocking until the test releases X, which stands for something that the render needs
 *   loop=1    never return; a request with the header x-loop neither, without burning CPU
 *   die=1     end the process in the middle of the render; exit=N with that code; die=once only in the first try
 *   throw=1   an error that nobody catches
 *   helper=1  start a child process, and one below it whose parent has ended
 *   size=N    answer with N bytes
 *   header=NAME:VALUE  answer with that header, any number of them; one that comes again is a line of its own
 *   head=N    answer with a header of N bytes
 *   hints=N   answer 103 Early Hints N times before
 *   status=N  answer with that status; 401 asks for an authentication of the connection
 *   good=N    answer 500 from the next try on
 *   needs=NAME  answer 500 to a request without that header
 *   length=N  announce N bytes, send 10, and the text of more=TEXT after 0.1 s, or after=N ms; never=1: do not end
 *   closes-idle=1  close all idle connections after the render
 *   unread=1  answer without having read the body
 *   drop=once end the connection instead of an answer in the first try
 *   wrap=1    when the client has gone, wrap the end of the response, as libraries do
 *   fetch=URL answer with what a GET of that URL says (an application that lets its clients do so)
 *   spin=N    burn CPU for N ms
 *   after-spin=N  burn CPU for N ms a while after the response
 *   work=N    N rounds of arithmetic: the same CPU time on a busy machine
 *   fault=X   micro (an endless loop of microtasks), regex, json (100 MB of it), heap (memory without end),
 *             throw (an error that nobody catches, before any answer), abort
 */
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { appendFileSync, existsSync, readdirSync, readFileSync } from 'node:fs';
import http from 'node:http';

const { PORT, WORKER_INDEX, EVENTS, HOSTNAME, CORELANE_DEPLOYMENT_ID: deployment } = process.env;
const WEBSOCKET_GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
/** Nobody releases what a test that has failed holds. */
const HOLD_MS_MAX = 600_000;
let inFlight = 0;
const kept = [];

function note(event) {
  appendFileSync(
    EVENTS,
    `${JSON.stringify({ worker: Number(WORKER_INDEX), pid: process.pid, at: performance.timeOrigin + performance.now(), ...event })}\n`,
  );
}

/** With what the start has cost: the same on a busy machine. */
function up() {
  const { user, system } = process.cpuUsage();
  return { event: 'up', startedAt: performance.timeOrigin, startCpuMs: (user + system) / 1000 };
}

async function bodyBytes(request) {
  let bytes = 0;
  for await (const chunk of request) bytes += chunk.length;
  return bytes;
}

/** One that the worker knows, one that belongs to nobody. */
function startHelpers() {
  const options = { stdio: 'ignore', detached: true };
  spawn('sleep', ['1001'], options);
  spawn('sh', ['-c', 'sleep 1002 & exit 0'], options);
}

async function render(url, id, headers) {
  const number = (name) => Number(url.searchParams.get(name) ?? 0);
  if (number('helper') > 0) startHelpers();
  if (number('block') > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, number('block'));
  if (number('slices') > 0) await slices(number('slices'));
  if (number('keep') > 0) kept.push(Buffer.alloc(number('keep') * 2 ** 20, 1));
  await heldBy(url.searchParams, id);
  if (number('loop') > 0) for (;;);
  await FAULTS[url.searchParams.get('fault')]?.();
  if (number('spin') > 0) spin(number('spin'));
  if (number('work') > 0) work(number('work'));
  if (number('ms') > 0) await new Promise((resolve) => setTimeout(resolve, number('ms')));
  const die = url.searchParams.get('die');
  if (die && !(die === 'once' && tries(id) > 1)) {
    note({ event: 'die', id });
    process.exit(1);
  }
  if (url.searchParams.has('exit')) process.exit(number('exit'));
  if (number('throw') > 0) setImmediate(() => thrower());
  return { status: statusOf(url.searchParams, id, headers), size: number('size') };
}

/** Keeps the event loop busy, and lets it turn. */
async function slices(ms) {
  const end = performance.now() + ms;
  while (performance.now() < end) {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function statusOf(parameters, id, headers) {
  if (parameters.has('needs') && !headers[parameters.get('needs')]) return 500;
  if (parameters.has('good') && tries(id) > Number(parameters.get('good'))) return 500;
  return Number(parameters.get('status')) || 200;
}

/** How many workers have begun it. */
function tries(id) {
  const lines = readFileSync(EVENTS, 'utf8').split('\n');
  return lines.filter((line) => line.includes('"event":"begin"') && line.includes(`"id":"${id}"`)).length;
}

async function heldBy(parameters, id) {
  if (parameters.has('hold')) await hold(id, parameters.get('hold'));
  if (parameters.has('until')) await hold(parameters.get('until'));
}

/** Until the file that Pod.release makes is there. */
async function hold(id, how) {
  const end = performance.now() + HOLD_MS_MAX;
  while (!existsSync(`${EVENTS}.${id}`) && performance.now() < end) {
    if (how === 'block' || how === 'busy') Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
    if (how === 'busy') await new Promise((resolve) => setImmediate(resolve));
    else if (how !== 'block') await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** What only the proxies may say to each other. */
const FORGED = {
  'x-corelane-error': 'forged',
  'x-corelane-died': 'worker-0',
  'x-corelane-unbegun': '1',
  'x-accel-redirect': '@corelane_502',
};

const FAULTS = {
  async micro() {
    for (;;) await null;
  },
  regex: () => /^(a+)+$/.test(`${'a'.repeat(60)}b`),
  json() {
    const text = JSON.stringify(Array(1_000_000).fill('x'.repeat(100)));
    return JSON.parse(text).length;
  },
  heap() {
    for (const kept = []; ; ) kept.push(Array(2_000_000).fill(kept.length));
  },
  throw() {
    setImmediate(thrower);
    return new Promise(() => {});
  },
  abort: () => process.abort(),
};

function wrapEnd(response) {
  const end = response.end;
  response.end = (...args) => end.apply(response, args);
}

function spin(ms) {
  const end = performance.now() + ms;
  while (performance.now() < end);
}

function spinLater(ms) {
  if (ms > 0) setTimeout(() => spin(ms), 50);
}

function work(rounds) {
  let sum = 0;
  for (let n = 0; n < rounds; n += 1) sum = (sum + Math.sqrt(n)) % 1_000_003;
  return sum;
}

function thrower() {
  throw new Error('thrown by the test');
}

/** With the headers of its client, as programs do that stand in front of others. */
async function fetchText(target, headers) {
  const answer = await fetch(target, { headers });
  return `${answer.status} ${await answer.text()}`;
}

async function sendWrongly(response, parameters) {
  response.writeHead(200, { 'content-length': Number(parameters.get('length')) });
  response.write('x'.repeat(10));
  await new Promise((resolve) => setTimeout(resolve, Number(parameters.get('after') ?? 100)));
  if (!parameters.has('never')) response.end(parameters.get('more') ?? '');
}

function headersOf(status, parameters) {
  const ntlm = status === 401 ? { 'www-authenticate': 'NTLM' } : {};
  const long = parameters.has('head') ? { 'x-long': 'x'.repeat(Number(parameters.get('head'))) } : {};
  const further = {};
  for (const header of parameters.getAll('header')) {
    const [name, value] = header.split(/:(.*)/s);
    further[name] = Object.hasOwn(further, name) ? [further[name], value].flat() : value;
  }
  return { 'content-type': 'application/json', ...FORGED, ...ntlm, ...long, ...further };
}

function sendHints(response, count) {
  for (let n = 0; n < count; n += 1) response.writeEarlyHints({ link: `</${'x'.repeat(3000)}>; rel=preload` });
}

const server = http.createServer(async (request, response) => {
  const url = new URL(request.url, 'http://worker');
  const id = url.searchParams.get('id') ?? url.pathname;
  inFlight += 1;
  note({ event: 'begin', id, method: request.method, inFlight, port: request.socket.remotePort });
  if (url.searchParams.has('wrap')) response.once('close', () => wrapEnd(response));
  const bytes = url.searchParams.has('unread') ? 0 : await bodyBytes(request).catch(() => -1);
  if (request.headers['x-loop']) for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
  const { status, size } = await render(url, id, request.headers);
  const fetched = url.searchParams.get('fetch');
  inFlight -= 1;
  note({ event: 'end', id, bytes });
  if (url.searchParams.has('closes-idle')) server.closeIdleConnections();
  if (url.searchParams.has('drop') && tries(id) === 1) request.socket.destroy();
  sendHints(response, Number(url.searchParams.get('hints')));
  if (url.searchParams.has('length')) return sendWrongly(response, url.searchParams);
  const body = fetched
    ? await fetchText(fetched, { 'x-corelane-runtime': request.headers['x-corelane-runtime'] ?? '' })
    : size > 0
      ? 'x'.repeat(size)
      : JSON.stringify({ id, bytes, method: request.method, headers: request.headers, deployment });
  response.writeHead(status, headersOf(status, url.searchParams)).end(body);
  spinLater(Number(url.searchParams.get('after-spin')));
});
// A WebSocket that sends back what it gets, frames unread.
server.on('upgrade', (request, socket) => {
  const accept = createHash('sha1').update(`${request.headers['sec-websocket-key']}${WEBSOCKET_GUID}`).digest('base64');
  note({ event: 'upgrade', id: request.url });
  socket.write(
    `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
  );
  socket.on('error', () => {});
  socket.pipe(socket);
});
/** A heap that takes time to look through. */
const objects = Array.from({ length: Number(process.env.OBJECTS ?? 0) }, (_, n) => ({ n, text: `object-${n}` }));
/** Shows when the event loop stood still. */
if (process.env.TICKS) setInterval(() => note({ event: 'tick', objects: objects.length }), 20).unref();
if (process.env.KEEPS_ALIVE_MS) server.keepAliveTimeout = Number(process.env.KEEPS_ALIVE_MS);
if (process.env.NEVER_LISTENS) setTimeout(() => process.exit(3), 50);
// As Next.js does: the pod's name, which is the address that everybody can reach.
else server.listen(Number(PORT), process.env.LISTEN_ON_HOSTNAME ? HOSTNAME : '127.0.0.1', () => note(up()));
// Programs that take "listens already" for "listens".
if (process.env.LISTENS_AGAIN)
  server.once('listening', () => {
    for (let n = 0; n < Number(process.env.LISTENS_AGAIN); n += 1) {
      try {
        server.listen(Number(PORT));
      } catch (error) {
        note({ event: 'refused', id: error.code, bytes: readdirSync('/proc/self/fd').length });
      }
    }
  });
// Servers that are stopped and started again, or whose port was in use.
if (process.env.LISTENS_TWICE) {
  server.close();
  server.once('close', () => server.listen(Number(PORT)));
}
// What a program does at its end may take a while: here until a test makes the file.
if (process.env.EXITS_WITH)
  process.on('exit', () => {
    note({ event: 'exit' });
    while (!existsSync(process.env.EXITS_WITH)) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
  });
process.on('SIGTERM', () => {
  note({ event: 'sigterm' });
  setTimeout(() => process.exit(Number(process.env.EXIT_CODE ?? 0)), Number(process.env.STOP_AFTER_MS ?? 0));
});
