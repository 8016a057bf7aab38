/** Preloaded into programs that are not ours: notes each request that their servers begin, as worker.mjs does. */
const { openSync, writeSync } = require('node:fs');
const { subscribe } = require('node:diagnostics_channel');

const events = openSync(process.env.EVENTS, 'a');

function note(event) {
  const at = performance.timeOrigin + performance.now();
  const worker = Number(process.env.WORKER_INDEX ?? 0);
  writeSync(events, `${JSON.stringify({ worker, pid: process.pid, at, ...event })}\n`);
}

note({ event: 'up' });
subscribe('http.server.request.start', ({ request }) => note({ event: 'begin', id: request.url }));
