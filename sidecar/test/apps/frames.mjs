/** Clients of HTTP/2 that write their frames themselves, because they misbehave. Also runs in a worker's container. */
import net from 'node:net';

export const TYPE = {
  ...{
    data: 0,
    headers: 1,
    priority: 2,
    reset: 3,
    settings: 4,
    push: 5,
    ping: 6,
    goaway: 7,
    window: 8,
    continuation: 9,
  },
};
export const END_STREAM = 1;
export const ACK = 1;
export const END_HEADERS = 4;
const PREFACE = 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n';
const STATUSES = [200, 204, 206, 304, 400, 404, 500];

export function frame(type, flags, id, payload = Buffer.alloc(0)) {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(id, 5);
  return Buffer.concat([head, payload]);
}

/** A whole number of HPACK (RFC 7541, 5.1) whose first byte has `bits` for it, beside `rest`. */
function whole(value, bits, rest = 0) {
  const most = 2 ** bits - 1;
  if (value < most) return [rest | value];
  const bytes = [rest | most];
  let left = value - most;
  for (; left >= 128; left = Math.floor(left / 128)) bytes.push((left % 128) | 128);
  return [...bytes, left];
}

const text = (value) =>
  Buffer.concat([Buffer.from(whole(Buffer.byteLength(value, 'latin1'), 7)), Buffer.from(value, 'latin1')]);

/** One header; `kept`: in the table of the connection, where `indexed(62)` finds the latest. */
export const field = (name, value, kept = false) =>
  Buffer.concat([Buffer.from([kept ? 0x40 : 0]), text(name), text(value)]);
export const indexed = (index) => Buffer.from(whole(index, 7, 128));

export const block = (fields) => Buffer.concat(fields.map((one) => (Buffer.isBuffer(one) ? one : field(...one))));

/** What a request begins with. */
export const request = (path, method = 'GET', more = []) => [
  [':method', method],
  [':scheme', 'http'],
  [':path', path],
  [':authority', 'a'],
  ...more,
];

export const settings = (pairs = []) =>
  frame(
    TYPE.settings,
    0,
    0,
    Buffer.concat(
      pairs.map(([name, value]) => {
        const bytes = Buffer.alloc(6);
        bytes.writeUInt16BE(name);
        bytes.writeUInt32BE(value, 2);
        return bytes;
      }),
    ),
  );

export const headers = (id, fields, flags = END_STREAM | END_HEADERS) => frame(TYPE.headers, flags, id, block(fields));
export const data = (id, payload, flags = 0) => frame(TYPE.data, flags, id, Buffer.from(payload));
export const reset = (id) => frame(TYPE.reset, 0, id, Buffer.from([0, 0, 0, 8]));
export const ping = (text = '12345678') => frame(TYPE.ping, 0, 0, Buffer.from(text));
export function windowUpdate(id, bytes) {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(bytes);
  return frame(TYPE.window, 0, id, payload);
}

/** @returns all that has come of the connection, as it comes */
export function open({ port, host = '127.0.0.1', first = [settings()], before = '', ...options }) {
  const came = { frames: [], ended: false, socket: net.connect({ port, host, ...options }) };
  let left = Buffer.alloc(0);
  came.socket.write(Buffer.concat([Buffer.from(before + PREFACE, 'latin1'), ...first]));
  came.socket.on('error', () => {}).on('close', () => (came.ended = true));
  came.socket.on('data', (chunk) => {
    left = Buffer.concat([left, chunk]);
    while (left.length >= 9 && left.length >= 9 + left.readUIntBE(0, 3)) {
      const end = 9 + left.readUIntBE(0, 3);
      came.frames.push({
        type: left[3],
        flags: left[4],
        id: left.readUInt32BE(5) & 0x7fffffff,
        payload: left.subarray(9, end),
      });
      left = left.subarray(end);
    }
  });
  came.send = (...parts) => came.socket.write(Buffer.concat(parts));
  came.of = (type, id) => came.frames.filter((one) => one.type === type && (id === undefined || one.id === id));
  came.status = (id) => statusOf(came.of(TYPE.headers, id)[0]?.payload);
  came.body = (id) => Buffer.concat(came.of(TYPE.data, id).map(({ payload }) => payload)).toString();
  /** Error code of a stream. */
  came.reset = (id) => came.of(TYPE.reset, id)[0]?.payload.readUInt32BE(0);
  /** Error code of the connection. */
  came.goaway = () => came.of(TYPE.goaway)[0]?.payload.readUInt32BE(4);
  came.whole = (id) =>
    came.frames.some(
      (one) => one.id === id && (one.type === TYPE.data || one.type === TYPE.headers) && one.flags & END_STREAM,
    );
  return came;
}

function statusOf(payload) {
  if (!payload) return undefined;
  // The size of a table comes first, perhaps.
  const at = (payload[0] & 0xe0) === 0x20 ? 1 : 0;
  return payload[at] & 128 ? STATUSES[(payload[at] & 127) - 8] : Number(payload.subarray(at + 2, at + 5));
}
