/**
 * Express with a cache in its process, as most write it: a page is kept for a minute, and who asks for it while it is
 * rendered waits for that render. Files of $FILES by its own static middleware. Notes as bench/inside/worker.mjs does.
 */
import { openSync, writeSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import express from 'express';

const { PORT, EVENTS, FILES = '/srv/app/files' } = process.env;
const TTL_MS = 60_000;
const PAGES_MAX = 1_000;
const events = openSync(EVENTS, 'a');
const cell = new Int32Array(new SharedArrayBuffer(4));
/** By URL: the page's promise, and until when it may be used. */
const cache = new Map();

function note(event) {
  const at = performance.timeOrigin + performance.now();
  writeSync(events, `${JSON.stringify({ worker: 0, pid: process.pid, at, ...event })}\n`);
}

async function render({ id, steps = '', size = '2000' }) {
  note({ event: 'begin', id });
  for (const step of steps.split(',').filter(Boolean)) {
    const ms = Number(step.slice(1));
    if (step.startsWith('b')) Atomics.wait(cell, 0, 0, ms);
    else await setTimeout(ms);
  }
  note({ event: 'end', id });
  return '<!doctype html><title>rendered</title>'.padEnd(Number(size), ' ');
}

function cached(url, query) {
  const kept = cache.get(url);
  if (kept && kept.until > Date.now()) return kept.page;
  const page = render(query);
  cache.set(url, { page, until: Date.now() + TTL_MS });
  if (cache.size > PAGES_MAX) cache.delete(cache.keys().next().value);
  return page;
}

const app = express();
app.use(
  '/files',
  (request, _response, next) => {
    note({ event: 'begin', id: request.originalUrl });
    next();
  },
  express.static(FILES),
);
app.get('/', async (request, response) => {
  response.type('html').send(await cached(request.originalUrl, request.query));
});
app.listen(Number(PORT), '127.0.0.1', () => note({ event: 'up' }));
