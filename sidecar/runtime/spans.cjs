/**
 * Spans of the pod (docs/tracing.md), in worker-0 only: a thread takes what nginx tells of sampled requests and sends
 * it on. It has a heap of its own with a limit, and an end of it is no end of the supervisor.
 */
'use strict';

const { existsSync } = require('node:fs');
const { join } = require('node:path');
const { log } = require('./log.cjs');
const { metric } = require('./metrics.cjs');
const { state } = require('./state.cjs');

const THREAD = join(__dirname, 'dist', 'spans.cjs');
/** sidecar/spans/sender.ts has the same order. */
const COUNTS = ['exported', 'failed', 'full', 'lost', 'invalid'];
const HEAP_MIB = { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 4 };
const RESTART_MS = 10_000;
/** At the end of the container. */
const FLUSH_MS = 2_000;

const { env } = process;
const counts = new Float64Array(new SharedArrayBuffer(8 * COUNTS.length));

/** Starts the thread, if there is anybody to send spans to. */
function start() {
  if (!env.CORELANE_SPANS_ENDPOINT) return;
  if (!existsSync(THREAD)) return log('spans', { message: `${THREAD} is missing` });
  const { Worker } = require('node:worker_threads');
  const workerData = {
    endpoint: env.CORELANE_SPANS_ENDPOINT,
    headers: env.CORELANE_SPANS_HEADERS ?? '',
    port: Number(env.CORELANE_SPANS_PORT),
    service: env.CORELANE_SPANS_SERVICE ?? '',
    namespace: env.CORELANE_SPANS_NAMESPACE ?? '',
    pod: env.CORELANE_SPANS_POD ?? '',
    revision: env.CORELANE_SPANS_REVISION ?? '',
    counts: counts.buffer,
  };
  let thread;
  try {
    // Neither the user's preloads nor what OTEL_... says to the program.
    thread = new Worker(THREAD, { workerData, env: {}, execArgv: [], argv: [], resourceLimits: HEAP_MIB });
  } catch (error) {
    return log('spans', { message: String(error?.message).slice(0, 256) }); // --permission without --allow-worker
  }
  thread.unref();
  state.spansThread = thread;
  thread.on('message', (message) => {
    if (message?.failed) log('spans', { message: message.failed });
  });
  thread.on('error', (error) => log('spans', { message: String(error?.message).slice(0, 256) }));
  thread.once('exit', () => {
    state.spansThread = undefined;
    setTimeout(start, RESTART_MS).unref();
  });
}

/** Sends what there is; calls `then` when that is done, or has taken too long, or at once if there is no thread. */
function flush(then) {
  const thread = state.spansThread;
  if (!thread) return then();
  setTimeout(then, FLUSH_MS);
  thread.once('exit', then);
  thread.on('message', (message) => message === 'flushed' && then());
  thread.postMessage('flush');
}

/** As text; nothing where there are no spans. */
function spansMetrics() {
  if (!env.CORELANE_SPANS_ENDPOINT) return '';
  const samples = COUNTS.map((result, index) => [{ result }, counts[index]]);
  return metric('corelane_worker_spans_total', 'counter', 'Spans of the pod, by what has become of them.', samples);
}

module.exports = { flush, spansMetrics, start };
