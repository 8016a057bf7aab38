/** Clients that speak HTTP/2. */
import { once } from 'node:events';
import http2 from 'node:http2';
import type { Pod } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import type { Came } from './apps/frames.mjs';

const sessions: http2.ClientHttp2Session[] = [];
/** Connections of frames, which closeAll closes, too. */
export const connections: Came[] = [];
/** After each test. */
export function closeAll(): void {
  for (const session of sessions.splice(0)) session.destroy();
  for (const { socket } of connections.splice(0)) socket.destroy();
}

/** A connection to a pod. */
export function session(there: Pod): http2.ClientHttp2Session {
  const opened = http2.connect(`http://127.0.0.1:${there.port(PORTS.http)}`).on('error', () => {});
  sessions.push(opened);
  return opened;
}

interface Call {
  method?: string;
  body?: string | Buffer;
  headers?: http2.OutgoingHttpHeaders;
}

/** What comes back for a stream, until it is closed. */
export async function answer(stream: http2.ClientHttp2Stream) {
  let head: http2.IncomingHttpHeaders & http2.IncomingHttpStatusHeader = {};
  let body = '';
  stream.on('response', (received) => (head = received)).on('data', (chunk) => (body += chunk));
  await once(stream, 'close');
  return { status: head[':status'], headers: head, body };
}

/** A request over it, with its stream. */
export function ask(from: http2.ClientHttp2Session, path: string, { method = 'GET', body, headers: more }: Call = {}) {
  const stream = from.request(
    { ':path': path, ':method': method, ':authority': 'a', ...more },
    { endStream: body === undefined },
  );
  stream.on('error', () => {});
  if (body !== undefined) stream.end(body);
  return Object.assign(answer(stream), { stream });
}
