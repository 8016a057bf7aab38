/**
 * An API server that knows some pods, and forwards a port of each: what was asked there, and what it answers. Objects
 * and logs are as a test has them.
 */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';

export interface Pod {
  name: string;
  phase?: string;
  /** What the port says, to a request with this head; none: nobody listens there. */
  answer?: string | ((head: string) => string | undefined);
  /** Leads to a real port instead. */
  connect?: (port: number) => Duplex;
  /** The object, but for its name and phase. */
  object?: { metadata?: object; spec?: object; status?: object };
  /** Of its nginx. */
  log?: string | Buffer;
}

/** RFC 6455. */
const ACCEPT = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const BINARY = 0x82;
const CLOSE = 0x88;
/** Data of the port that is forwarded, and what went wrong with it. */
const DATA = 0;
const FAILURE = 1;
const FRAME_BYTES = 32_768;

/** By pod: the head of each request. */
export type Asked = Record<string, string[]>;

/**
 * Listens on loopback until `close`.
 * @param objects by the end of their path: `renderservices/shop`; what is there at each look
 */
export async function forwardingApi(pods: Pod[], objects: Record<string, object> = {}) {
  const asked: Asked = {};
  const server = http.createServer(({ url = '' }, response) => {
    const { pathname } = new URL(url, 'http://api');
    const [, podName] = /\/pods\/([^/]+)\/log$/.exec(pathname) ?? [];
    if (podName !== undefined) return giveLog(response, pods.find(({ name }) => name === podName)?.log);
    const [, end = ''] = /\/namespaces\/[^/]+\/(.+)$/.exec(pathname) ?? [];
    if (!objects[end] && end.includes('/')) response.writeHead(404).end('{"message":"not found"}');
    else response.end(JSON.stringify(objects[end] ?? { items: end === 'pods' ? pods.map(podObject) : [] }));
  });
  server.on('upgrade', ({ url, headers }, socket) => {
    const { pathname, searchParams } = new URL(url ?? '', 'http://api');
    const pod = pods.find(({ name }) => pathname.split('/').includes(name));
    const accept = createHash('sha1').update(`${headers['sec-websocket-key']}${ACCEPT}`).digest('base64');
    const head = `Sec-WebSocket-Accept: ${accept}\r\nSec-WebSocket-Protocol: v4.channel.k8s.io`;
    socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n${head}\r\n\r\n`);
    const number = Number(searchParams.get('ports'));
    const port = Buffer.alloc(2);
    port.writeUInt16LE(number);
    for (const channel of [DATA, FAILURE]) send(socket, channel, port);
    if (!pod?.answer && !pod?.connect)
      send(socket, FAILURE, Buffer.from('dial tcp4 127.0.0.1: connect: connection refused'));
    if (pod?.connect) forwards(socket, pod.connect(number));
    else answers(socket, pod, asked);
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

function giveLog(response: http.ServerResponse, log: Pod['log']): void {
  response.writeHead(log === undefined ? 403 : 200).end(log ?? '{"message":"may not read logs"}');
}

function podObject({ name, phase = 'Running', object = {} }: Pod) {
  return { metadata: { ...object.metadata, name }, spec: object.spec, status: { ...object.status, phase } };
}

/** A kubeconfig that leads to such a server. */
export function kubeconfigFor(url: string): string {
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'a', cluster: { server: url, 'insecure-skip-tls-verify': true } }],
    contexts: [{ name: 'a', context: { cluster: 'a', user: 'a' } }],
    users: [{ name: 'a', user: {} }],
    'current-context': 'a',
  });
}

/** Calls `onPayload` for what a client sends, without its channel. */
function listen(socket: Duplex, onPayload: (payload: Buffer) => void): void {
  let frames = Buffer.alloc(0);
  socket.on('data', (bytes: Buffer) => {
    frames = Buffer.concat([frames, bytes]);
    for (let frame = firstOf(frames); frame; frame = firstOf(frames)) {
      frames = frames.subarray(frame.end);
      // Else the client waits for half a minute.
      if (frame.opcode === CLOSE) socket.end(Buffer.from([CLOSE, 0]));
      if (frame.opcode === BINARY) onPayload(frame.payload.subarray(1));
    }
  });
  socket.on('error', () => undefined);
}

function answers(socket: Duplex, pod: Pod | undefined, asked: Asked): void {
  const { name = '', answer = '' } = pod ?? {};
  let request = '';
  listen(socket, (payload) => {
    request += payload.toString('latin1');
    if (!answer || !request.endsWith('\r\n\r\n')) return;
    asked[name] = [...(asked[name] ?? []), request];
    const said = typeof answer === 'string' ? answer : answer(request);
    request = '';
    if (said !== undefined) send(socket, DATA, Buffer.from(said));
  });
}

function forwards(socket: Duplex, port: Duplex): void {
  listen(socket, (payload) => port.write(payload));
  port.on('data', (bytes: Buffer) => send(socket, DATA, bytes));
  port.on('error', (error) => send(socket, FAILURE, Buffer.from(error.message)));
  port.on('end', () => socket.end(Buffer.from([CLOSE, 0])));
  socket.on('close', () => port.destroy());
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

/** In frames of less than 64 kB, whose length has two bytes. */
function send(socket: Duplex, channel: number, payload: Buffer): void {
  for (let begin = 0; begin === 0 || begin < payload.length; begin += FRAME_BYTES) {
    const part = payload.subarray(begin, begin + FRAME_BYTES);
    const head = Buffer.from([BINARY, 126, 0, 0, channel]);
    head.writeUInt16BE(part.length + 1, 2);
    if (socket.writable) socket.write(Buffer.concat([head, part]));
  }
}
