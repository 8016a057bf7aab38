/**
 * Live settings, as far as they are the supervisor's: it reads the file that HAProxy reads (docs/live-settings.md), in
 * its own container. What HAProxy has taken is right; a file that is missing or not whole changes nothing here.
 */
'use strict';

const { readFileSync, watchFile } = require('node:fs');
const { state } = require('./state.cjs');

/** A change is seen at most this much later. */
const LOOK_MS = 250;
const BYTES_MAX = 16_384;
const LIMIT_MAX = 1_000;
/** As HAProxy has it (sidecar/haproxy/live/document.lua), and the schema: unit render/live-bounds. */
const RENDER_MS_MIN = 100;
const RENDER_MS_MAX = 86_400_000;

/** The numbers in the text by name; undefined if it is not whole. */
function parseLive(text) {
  if (text.length >= BYTES_MAX || !text.endsWith('\n')) return undefined;
  const lines = [...text.matchAll(/^([a-z0-9-]+)=([0-9]+)$/gm)];
  const values = Object.fromEntries(lines.map(([, name, number]) => [name, +number]));
  const { concurrency, 'concurrency-min': min, 'concurrency-max': max, 'render-ms': renderMs } = values;
  const start = values['concurrency-start'];
  const isWhole =
    Object.keys(values).length === lines.length &&
    concurrency >= 0 &&
    min >= 1 &&
    min <= max &&
    max <= LIMIT_MAX &&
    renderMs >= RENDER_MS_MIN &&
    renderMs <= Math.min(values['worker-ms'], RENDER_MS_MAX);
  return isWhole ? { concurrency, min, max, renderMs, ...(start >= 1 && { start }) } : undefined;
}

const path = process.env.CORELANE_LIVE;

function read() {
  try {
    return path ? parseLive(readFileSync(path, 'latin1')) : undefined;
  } catch {
    return undefined; // there is none
  }
}

/** Calls `onChange` with each next one. */
function watchLive(onChange) {
  if (!path) return;
  // The kernel is asked outside of JavaScript, which hears of changes only.
  watchFile(path, { interval: LOOK_MS }, () => {
    const next = read();
    if (next === undefined || JSON.stringify(next) === JSON.stringify(state.live)) return;
    state.live = next;
    onChange(next);
  });
}

state.live = read();

module.exports = { parseLive, watchLive };
