/**
 * A worker that "renders" by blocking its event loop without burning CPU, so that many of them fit on two cores: for
 * stories about requests, not about rendering. RENDER_MS is how long it blocks, WAIT_MS how long it waits for data
 * before, with its event loop idle, STATUS what it answers. Writes the id of each request that it begins. A request can
 * break it: /heap and /memory exhaust the heap and the container's memory, /loop never ends.
 */
import { writeSync } from 'node:fs';
import http from 'node:http';
import { hostname } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';

const { PORT, HOST, RENDER_MS = '50', WAIT_MS = '0', STATUS = '200' } = process.env;
const cell = new Int32Array(new SharedArrayBuffer(4));
let inProgress = 0;

const breakages = {
  '/heap': () => {
    for (const kept = []; ; ) kept.push(Array(10_000).fill(kept.length));
  },
  '/memory': () => {
    for (const kept = []; ; ) kept.push(Buffer.alloc(4_000_000, 1));
  },
  '/loop': () => {
    for (;;);
  },
};

const turn = () => new Promise((resolve) => setImmediate(resolve));

const server = http.createServer(async (request, response) => {
  inProgress += 1;
  // At once: the process may be killed in the middle of the render.
  writeSync(1, `begin ${request.headers['x-request-id']}\n`);
  breakages[request.url]?.();
  let most = inProgress;
  response.once('close', () => {
    inProgress -= 1;
  });
  request.resume();
  if (Number(WAIT_MS) > 0) await delay(Number(WAIT_MS));
  Atomics.wait(cell, 0, 0, Number(RENDER_MS));
  // A second request waits in the kernel while the loop is blocked; in a few turns it comes in and is counted.
  for (let count = 0; count < 3; count += 1) {
    await turn();
    most = Math.max(most, inProgress);
  }
  response
    .writeHead(Number(STATUS), { 'x-in-progress': most, 'x-served-by': `${hostname()}:${PORT}` })
    .end('rendered\n');
});
// The proxies close first: an idle connection must not be cut just as it is used.
server.keepAliveTimeout = 0;
server.listen(Number(PORT), HOST);
process.on('SIGTERM', () => server.close(() => process.exit(0)));
