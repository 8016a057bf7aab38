/**
 * The worker of the benches: what it does is said by the request, so that every system gets the same work. It notes
 * what it begins and ends as JSON lines in $EVENTS; those are the facts that the benches count.
 *   GET or POST /?id=NAME&steps=b20,w30,b20   block the event loop 20 ms without burning CPU, wait 30 ms, block 20 ms
 *   steps=loop                                never return
 *   steps=s40000,w20,s1000                    stream: write 40,000 bytes at once, wait, write the rest
 *   size=N header=NAME:VALUE                  bytes of the page, and headers of it
 *   GET /files/NAME                           a file of $FILES
 */
import { createReadStream, fstatSync, openSync, writeSync } from 'node:fs';
import http from 'node:http';
import { basename, join } from 'node:path';

const { PORT, LISTEN = '127.0.0.1', EVENTS, WORKER_INDEX, NODE_APP_INSTANCE } = process.env;
const { FILES = '/srv/app/files', KEEP_ALIVE_MS } = process.env;
const worker = Number(WORKER_INDEX ?? NODE_APP_INSTANCE ?? 0);
const events = openSync(EVENTS, 'a');
const cell = new Int32Array(new SharedArrayBuffer(4));
const PAGE = '<!doctype html><title>rendered</title>'.padEnd(2_000, ' ');
let inFlight = 0;

function note(event) {
  const at = performance.timeOrigin + performance.now();
  writeSync(events, `${JSON.stringify({ worker, pid: process.pid, at, ...event })}\n`);
}

async function render(steps, response) {
  for (const step of steps) {
    const amount = Number(step.slice(1));
    if (step === 'loop') for (;;) Atomics.wait(cell, 0, 0);
    if (step.startsWith('b')) Atomics.wait(cell, 0, 0, amount);
    else if (step.startsWith('s')) response.write('x'.repeat(amount));
    else await new Promise((resolve) => setTimeout(resolve, amount));
  }
}

/** Headers that the request asks for. */
function headersOf(query) {
  const pairs = query.getAll('header').map((header) => header.split(/:(.*)/s));
  return Object.fromEntries([['content-type', 'text/html'], ...pairs]);
}

function sendFile(name, response) {
  const file = createReadStream(join(FILES, name));
  file.on('open', (descriptor) => {
    const headers = { 'content-type': 'text/javascript', 'content-length': fstatSync(descriptor).size };
    response.writeHead(200, headers);
  });
  file.on('error', () => response.writeHead(404).end());
  file.pipe(response);
}

/** Whether all of it has come. */
async function readBody(request) {
  try {
    for await (const _chunk of request);
    return true;
  } catch {
    return false;
  }
}

const server = http.createServer(async (request, response) => {
  const [path, search] = request.url.split('?');
  const query = new URLSearchParams(search);
  const id = query.get('id') ?? path;
  inFlight += 1;
  note({ event: 'begin', id, inFlight });
  if (path.startsWith('/files/')) {
    response.once('close', () => {
      inFlight -= 1;
      note({ event: 'end', id });
    });
    return sendFile(basename(path), response);
  }
  const isWhole = request.method === 'GET' || (await readBody(request));
  const steps = (query.get('steps') ?? '').split(',').filter(Boolean);
  const isStream = steps.some((step) => step.startsWith('s'));
  if (isStream) response.writeHead(200, headersOf(query));
  if (isWhole) await render(steps, response);
  inFlight -= 1;
  note({ event: 'end', id });
  if (isStream) return response.end();
  const page = query.has('size') ? PAGE.padEnd(Number(query.get('size')), ' ') : PAGE;
  response.writeHead(200, { ...headersOf(query), 'content-length': page.length }).end(page);
});
if (KEEP_ALIVE_MS) server.keepAliveTimeout = Number(KEEP_ALIVE_MS);
server.listen(Number(PORT), LISTEN, () => note({ event: 'up' }));

/** As servers should: finish what is there, take nothing new. */
function stop() {
  server.close(() => process.exit(0));
}
process.on('SIGTERM', stop);
process.on('SIGINT', stop);
