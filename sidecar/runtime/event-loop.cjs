/**
 * What the event loop writes down about itself at each beat (shared-metrics.cjs says where), and the thread that gives
 * it away.
 */
'use strict';

const { PerformanceObserver, constants, performance } = require('node:perf_hooks');
const v8 = require('node:v8');
const { isMainThread, Worker } = require('node:worker_threads');
const { GC_KINDS, LAG_BUCKETS, SPACES_MAX, allocate, observe, views } = require('./shared-metrics.cjs');

/** Heap sizes are written down at most this often: asking V8 takes 20 microseconds. */
const HEAP_MS = 1_000;
/**
 * For the thread; a source map of 8 MiB needs most of it. Its young generation is small because its memory is the
 * user's.
 */
const THREAD_LIMITS = { maxOldGenerationSizeMb: 160, maxYoungGenerationSizeMb: 1, stackSizeMb: 1 };

const GC_OF_KIND = {
  [constants.NODE_PERFORMANCE_GC_MINOR]: GC_KINDS.indexOf('minor'),
  [constants.NODE_PERFORMANCE_GC_MAJOR]: GC_KINDS.indexOf('major'),
  [constants.NODE_PERFORMANCE_GC_INCREMENTAL]: GC_KINDS.indexOf('incremental'),
  [constants.NODE_PERFORMANCE_GC_WEAKCB]: GC_KINDS.indexOf('weakcb'),
};

const buffer = allocate();
const metrics = views(buffer);
let thread;
let before = performance.eventLoopUtilization();
let beatMs = 0;
let beforeMs = 0;
let heapMs = 0;

/** Names of V8's heap spaces, in the order of their metrics. */
function spaceNames() {
  return v8
    .getHeapSpaceStatistics()
    .slice(0, SPACES_MAX)
    .map(({ space_name: name }) => name.replace(/_space$/, ''));
}

function watchGarbageCollection() {
  const observer = new PerformanceObserver((list) => {
    for (const { duration, detail } of list.getEntries()) {
      const kind = GC_OF_KIND[detail?.kind] ?? 0;
      metrics.gcCount[kind] += 1;
      metrics.gcSeconds[kind] += duration / 1000;
    }
  });
  observer.observe({ entryTypes: ['gc'] });
}

function startThread({ port, token }) {
  try {
    thread = new Worker(require.resolve('./thread.cjs'), {
      // The user's preloads (an APM agent) have no business in it.
      env: { ...process.env, NODE_OPTIONS: '', CORELANE_SUPERVISOR: '' },
      execArgv: [],
      workerData: { port, token, spaces: spaceNames(), isMainThread, metrics: buffer },
      resourceLimits: THREAD_LIMITS,
      trackUnmanagedFds: false,
    });
    thread.on('error', () => {}); // out of memory, say: the worker goes on without
    thread.unref();
  } catch {
    // Threads may be forbidden (--permission): the supervisor does without stacks and metrics.
  }
}

function writeHeap() {
  for (const [index, space] of v8.getHeapSpaceStatistics().slice(0, SPACES_MAX).entries()) {
    metrics.heap[3 * index] = space.space_used_size;
    metrics.heap[3 * index + 1] = space.space_size;
    metrics.heap[3 * index + 2] = space.space_available_size;
  }
}

function beat() {
  const nowMs = performance.now();
  if (beforeMs > 0) observe(metrics.lag, LAG_BUCKETS, Math.max(0, nowMs - beforeMs - beatMs) / 1000);
  beforeMs = nowMs;
  const now = performance.eventLoopUtilization();
  metrics.idleMs[0] += now.idle - before.idle;
  metrics.activeMs[0] += now.active - before.active;
  metrics.beatAtMs[0] = Date.now();
  before = now;
  if (nowMs - heapMs < HEAP_MS) return;
  heapMs = nowMs;
  writeHeap();
}

/**
 * Begins with the first server on PORT.
 * @param supervisor `{ port, token, intervalMs }`
 */
function eventLoopOf(supervisor) {
  if (thread === undefined) {
    beatMs = supervisor.intervalMs;
    watchGarbageCollection();
    startThread(supervisor);
    writeHeap();
  }
  return { beat };
}

module.exports = { metrics, eventLoopOf };
