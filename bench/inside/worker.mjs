/**
 * The worker of the benches: what it does is said by the request, so that every system gets the same work. It notes
 * what it begins and ends as JSON lines in $EVENTS; those are the facts that the benches count.
 *   GET or POST /?id=NAME&steps=b20,w30,b20   block the event loop 20 ms without burning CPU, wait 30 ms, block 20 ms
 *   steps=loop                                never return
 */
import { openSync, writeSync } from 'node:fs';
import http from 'node:http';

const { PORT, LISTEN = '127.0.0.1', EVENTS, WORKER_INDEX, NODE_APP_INSTANCE } = process.env;
const worker = Number(WORKER_INDEX ?? NODE_APP_INSTANCE ?? 0);
const events = openSync(EVENTS, 'a');
const cell = new Int32Array(new SharedArrayBuffer(4));
const PAGE = '<!doctype html><title>rendered</title>'.padEnd(2_000, ' ');
let inFlight = 0;

function note(event) {
  const at = performance.timeOrigin + performance.now();
  writeSync(events, `${JSON.stringify({ worker, pid: process.pid, at, ...event })}\n`);
}

async function render(steps) {
  for (const step of steps) {
    const ms = Number(step.slice(1));
    if (step === 'loop') for (;;) Atomics.wait(cell, 0, 0);
    if (step.startsWith('b')) Atomics.wait(cell, 0, 0, ms);
    else await new Promise((resolve) => setTimeout(resolve, ms));
  }
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
  const query = new URLSearchParams(request.url.slice(request.url.indexOf('?')));
  const id = query.get('id');
  inFlight += 1;
  note({ event: 'begin', id, inFlight });
  const isWhole = request.method === 'GET' || (await readBody(request));
  if (isWhole) await render((query.get('steps') ?? '').split(',').filter(Boolean));
  inFlight -= 1;
  note({ event: 'end', id });
  response.writeHead(200, { 'content-type': 'text/html', 'content-length': PAGE.length }).end(PAGE);
});
server.listen(Number(PORT), LISTEN, () => note({ event: 'up' }));

/** As servers should: finish what is there, take nothing new. */
function stop() {
  server.close(() => process.exit(0));
}
process.on('SIGTERM', stop);
process.on('SIGINT', stop);
