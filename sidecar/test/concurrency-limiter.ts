/** Clients of a worker behind its concurrency limiter. */
import net from 'node:net';
import { docker } from '../../e2e/harness/engine/docker.ts';
import { type Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';

/** Sends to the worker past the proxies, from inside its container. `send(path)` gives a request of node:http. */
export async function inside(there: Pod, script: string): Promise<string> {
  const send = `const send = (path, done = () => {}) => require('node:http').get({ host: '127.0.0.1', port: process.env.PORT, path, agent: false }, done).on('error', () => {});`;
  const limit = 'corelane_worker_concurrency_limit';
  await until(
    'the limiter knows its limit',
    async () => (await there.runtimeMetric(0, limit)) === there.spec.concurrency,
  );
  return docker('exec', '--env', 'NODE_OPTIONS=', there.workers[0] ?? '', 'node', '-e', `${send}\n${script}`);
}

/** Raw bytes to the pod: what has come back so far, and until some text has come. */
export function talk(there: Pod, text: string) {
  const socket = net.connect(there.port(PORTS.http), '127.0.0.1', () => socket.write(text));
  const conversation = { socket, received: '', ended: false };
  socket.on('data', (chunk) => {
    conversation.received += chunk;
  });
  socket.on('error', () => {});
  socket.on('close', () => {
    conversation.ended = true;
  });
  return conversation;
}

/** The request that opens a WebSocket. */
export const upgrade = (id: string) =>
  `GET /${id} HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n`;
