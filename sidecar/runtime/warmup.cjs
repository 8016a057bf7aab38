/**
 * The renders that a new worker process does before it takes requests: they compile what the first users would wait
 * for.
 */
'use strict';

const net = require('node:net');
const { state } = require('./state.cjs');

const REQUESTS = Number(process.env.CORELANE_WARMUP_REQUESTS) || 0;
const PATH = process.env.CORELANE_WARMUP_PATH || '/';
/** A render may take as long as any other. */
const limitMs = () => state.live?.renderMs ?? (Number(process.env.CORELANE_RENDER_TIMEOUT_MS) || 30_000);

/** Status of one render, 0 without an answer. */
function render(port) {
  return new Promise((resolve) => {
    const socket = net.connect({ host: '127.0.0.1', port });
    let head = '';
    const done = () => {
      socket.destroy();
      resolve(Number(/^HTTP\/1\.[01] ([0-9]{3})/.exec(head)?.[1] ?? 0));
    };
    socket.setTimeout(limitMs(), done);
    socket.on('connect', () => {
      const headers = ['Host: localhost', 'Connection: close', 'User-Agent: corelane-warmup', 'Accept: */*'];
      socket.write(`GET ${PATH} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`);
    });
    socket.on('data', (chunk) => {
      if (head.length < 32) head += chunk.toString('latin1', 0, 32);
    });
    socket.on('end', done);
    socket.on('error', done);
  });
}

/**
 * Renders one after the other; a worker that answers with errors is warm as well.
 * @param goesOn whether the process is still the one to be warmed
 */
async function warmUp(port, goesOn) {
  const began = Date.now();
  const statuses = {};
  for (let done = 0; done < REQUESTS && goesOn(); done += 1) {
    const status = await render(port);
    statuses[status] = (statuses[status] ?? 0) + 1;
  }
  return { requests: REQUESTS, ms: Date.now() - began, statuses };
}

module.exports = { isConfigured: REQUESTS > 0, warmUp };
