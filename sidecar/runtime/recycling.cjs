/**
 * When a worker is to be replaced between two requests, and whether it may: never two workers of a pod at the same
 * time, and never so that less than half of them would be left.
 */
'use strict';

const { readFileSync } = require('node:fs');
const net = require('node:net');

const { env } = process;
const REQUESTS_MAX = Number(env.CORELANE_RECYCLE_REQUESTS) || 0;
const MEMORY_BYTES_MAX = Number(env.CORELANE_RECYCLE_MEMORY_BYTES) || 0;
const AGE_MS_MAX = Number(env.CORELANE_RECYCLE_AGE_MS) || 0;
const WORKERS = Number(env.CORELANE_WORKERS) || 1;
const INDEX = Number(env.WORKER_INDEX) || 0;
const RUNTIME_PORT = Number(env.CORELANE_RUNTIME_PORT);
/** Who listens here is the worker of the pod that is being replaced; the kernel takes it back from one that dies. */
const LOCK_PORT = RUNTIME_PORT - INDEX + 99;
/** Workers that were started at the same moment must not come to their end at the same moment. */
const JITTER = 0.1;
const SIBLING_MS = 500;

const isConfigured = REQUESTS_MAX > 0 || MEMORY_BYTES_MAX > 0 || AGE_MS_MAX > 0;
const needsCount = REQUESTS_MAX > 0;

/** The limits of one worker process. */
function drawLimits() {
  const draw = (value) => value * (1 - JITTER + 2 * JITTER * Math.random());
  return { requests: draw(REQUESTS_MAX), memoryBytes: MEMORY_BYTES_MAX, ageMs: draw(AGE_MS_MAX) };
}

/** Resident memory of a process; 0 if it has gone. */
function residentBytes(pid) {
  try {
    // Not statm, which counts pages, of 4, 16 or 64 KiB.
    return Number(/^VmRSS:\s*([0-9]+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
}

/** The limit that a process has passed, or undefined. */
function reasonToRecycle(limits, { requests, ageMs, pid }) {
  if (REQUESTS_MAX > 0 && requests >= limits.requests) return 'requests';
  if (AGE_MS_MAX > 0 && ageMs >= limits.ageMs) return 'age';
  if (MEMORY_BYTES_MAX > 0 && residentBytes(pid) >= limits.memoryBytes) return 'memory';
  return undefined;
}

/** Becomes the one of the pod that is replaced: a function that ends this, or undefined if another one is. */
function takeLock() {
  return new Promise((resolve) => {
    const server = net.createServer((socket) => socket.destroy());
    server.unref();
    server.once('error', () => resolve(undefined));
    server.listen({ port: LOCK_PORT, host: '127.0.0.1' }, () => resolve(() => server.close()));
  });
}

function siblingIsUp(port) {
  return new Promise((resolve) => {
    const socket = net.connect({ host: '127.0.0.1', port });
    let text = '';
    const done = (result) => {
      socket.destroy();
      resolve(result);
    };
    socket.setTimeout(SIBLING_MS, () => done(false));
    socket.on('connect', () => socket.write('GET /healthz HTTP/1.1\r\n\r\n'));
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
      if (text.includes('\n')) done(text.startsWith('HTTP/1.1 200'));
    });
    socket.on('error', () => done(false));
  });
}

/**
 * Whether half of the pod's workers are left without this one. The only worker of a pod may go: nothing else can
 * replace it.
 */
async function enoughWithoutMe() {
  if (WORKERS === 1) return true;
  const others = Array.from({ length: WORKERS }, (_unused, index) => index).filter((index) => index !== INDEX);
  const up = await Promise.all(others.map((index) => siblingIsUp(RUNTIME_PORT - INDEX + index)));
  return up.filter(Boolean).length >= WORKERS / 2;
}

module.exports = { drawLimits, enoughWithoutMe, isConfigured, needsCount, reasonToRecycle, residentBytes, takeLock };
