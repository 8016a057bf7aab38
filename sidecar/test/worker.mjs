/**
 * A worker for tests. Writes what happens to it as JSON lines to $EVENTS, so that a test can read it while the event
 * loop is blocked. Query parameters of a request:
 *   ms=N      render for N ms without blocking (a second request could come in, and would be counted)
 *   block=N   block the event loop for N ms without burning CPU
 *   die=1     end the process in the middle of the render
 *   size=N    answer with N bytes
 *   status=N  answer with that status
 */
import { appendFileSync } from 'node:fs';
import http from 'node:http';

const { PORT, WORKER_INDEX, EVENTS } = process.env;
let inFlight = 0;

function note(event) {
  appendFileSync(EVENTS, `${JSON.stringify({ worker: Number(WORKER_INDEX), at: Date.now(), ...event })}\n`);
}

async function bodyBytes(request) {
  let bytes = 0;
  for await (const chunk of request) bytes += chunk.length;
  return bytes;
}

async function render(url) {
  const number = (name) => Number(url.searchParams.get(name) ?? 0);
  if (number('block') > 0) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, number('block'));
  if (number('ms') > 0) await new Promise((resolve) => setTimeout(resolve, number('ms')));
  if (number('die') > 0) process.exit(1);
  return { status: number('status') || 200, size: number('size') };
}

const server = http.createServer(async (request, response) => {
  const url = new URL(request.url, 'http://worker');
  const id = url.searchParams.get('id') ?? url.pathname;
  inFlight += 1;
  note({ event: 'begin', id, method: request.method, inFlight });
  const bytes = await bodyBytes(request).catch(() => -1);
  const { status, size } = await render(url);
  inFlight -= 1;
  note({ event: 'end', id, bytes });
  const body =
    size > 0 ? 'x'.repeat(size) : JSON.stringify({ id, bytes, method: request.method, headers: request.headers });
  response.writeHead(status, { 'content-type': 'application/json', 'x-corelane-error': 'forged' }).end(body);
});
server.listen(Number(PORT), '127.0.0.1', () => note({ event: 'up' }));
process.on('SIGTERM', () => process.exit(0));
