/** An API server that knows some pods, and forwards a port of each: what was asked there, and what it answers. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';

export interface Pod {
  name: string;
  phase?: string;
  /** What the port says; none: nobody listens there. */
  answer?: string;
}

/** RFC 6455. */
const ACCEPT = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const BINARY = 0x82;
const CLOSE = 0x88;
/** Data of the port that is forwarded, and what went wrong with it. */
const DATA = 0;
const FAILURE = 1;

/** By pod: the head of each request. */
export type Asked = Record<string, string[]>;

/** Listens on loopback until `close`. */
export async function forwardingApi(pods: Pod[]) {
  const asked: Asked = {};
  const server = http.createServer((_request, response) => {
    const items = pods.map(({ name, phase = 'Running' }) => ({ metadata: { name }, status: { phase } }));
    response.end(JSON.stringify({ items }));
  });
  server.on('upgrade', ({ url, headers }, socket) => {
    const { pathname, searchParams } = new URL(url ?? '', 'http://api');
    const pod = pods.find(({ name }) => pathname.split('/').includes(name));
    const accept = createHash('sha1').update(`${headers['sec-websocket-key']}${ACCEPT}`).digest('base64');
    const head = `Sec-WebSocket-Accept: ${accept}\r\nSec-WebSocket-Protocol: v4.channel.k8s.io`;
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n${head}\r\n\r\n`);
    const port = Buffer.alloc(2);
    port.writeUInt16LE(Number(searchParams.get('ports')));
    for (const channel of [DATA, FAILURE]) send(socket, channel, port);
    if (!pod?.answer) send(socket, FAILURE, Buffer.from('dial tcp4 127.0.0.1: connect: connection refused'));
    answers(socket, pod, asked);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  return {
    asked,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

function answers(socket: Duplex, pod: Pod | undefined, asked: Asked): void {
  const { name = '', answer = '' } = pod ?? {};
  let [frames, request] = [Buffer.alloc(0), ''];
  socket.on('data', (bytes: Buffer) => {
    frames = Buffer.concat([frames, bytes]);
    for (let frame = firstOf(frames); frame; frame = firstOf(frames)) {
      frames = frames.subarray(frame.end);
      // Else the client waits for half a minute.
      if (frame.opcode === CLOSE) socket.end(Buffer.from([CLOSE, 0]));
      // The first byte is the channel.
      if (frame.opcode === BINARY) request += frame.payload.toString('latin1', 1);
    }
    if (!answer || !request.endsWith('\r\n\r\n')) return;
    asked[name] = [...(asked[name] ?? []), request];
    request = '';
    send(socket, DATA, Buffer.from(answer));
  });
  socket.on('error', () => undefined);
}

/** Of a client, so it is masked; undefined until all of it is there. */
function firstOf(bytes: Buffer): { opcode: number; payload: Buffer; end: number } | undefined {
  if (bytes.length < 6) return undefined;
  const short = bytes.readUInt8(1) & 0x7f;
  const begin = short === 126 ? 4 : 2;
  const length = short === 126 ? bytes.readUInt16BE(2) : short;
  const end = begin + 4 + length;
  if (bytes.length < end) return undefined;
  const mask = bytes.subarray(begin, begin + 4);
  const payload = Buffer.from(bytes.subarray(begin + 4, end).map((byte, index) => byte ^ mask.readUInt8(index % 4)));
  return { opcode: bytes.readUInt8(0), payload: payload, end };
}

/** At most 125 bytes, so that their number fits into a byte. */
function send(socket: Duplex, channel: number, payload: Buffer): void {
  socket.write(Buffer.from([BINARY, payload.length + 1, channel, ...payload]));
}
