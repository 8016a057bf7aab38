/**
 * A hostile neighbour: `flood.mjs HOST PORT CONNECTIONS SECONDS KIND[:PATH]...` keeps so many connections open for so
 * long, of all kinds in turn, opens a new one for each that is closed (at most OPENED_PER_SECOND_MAX), and prints at
 * its end, as JSON, how it was received.
 *   idle      says nothing
 *   half      half of a request's head, and no more
 *   slow      a byte of a head every 0.2 s
 *   body      the same of a body of 8 KiB
 *   requests  asks for PATH, again and again
 *   unread    asks for PATH, and does not read
 *   h2        the preface of HTTP/2, and a stream
 */
import net from 'node:net';

const OPENED_PER_SECOND_MAX = 2_000;
const TICK_MS = 20;
const SLOW_MS = 200;

const [host = '', port = '', connections = '', seconds = '', ...kinds] = process.argv.slice(2);
const wanted = Number(connections);
const open = new Set();
const seen = { opened: 0, openAtOnce: 0, refused: 0, answers: {} };

// Preface, empty SETTINGS, and HEADERS of stream 1: GET / http, ended (RFC 9113).
const H2 = Buffer.concat([
  Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  Buffer.from('000000040000000000', 'hex'),
  Buffer.from('00000401050000000182868441', 'hex'),
]);

/** What a client of that kind sends first. */
function firstBytes(kind, path) {
  const head = `GET ${path} HTTP/1.1\r\nHost: pod\r\n`;
  const all = {
    idle: '',
    half: `${head}X-Half: `,
    slow: head,
    requests: `${head}\r\n`,
    body: `POST ${path} HTTP/1.1\r\nHost: pod\r\nContent-Length: 8192\r\n\r\nx`,
    unread: `${head}\r\n`,
    h2: H2,
  };
  if (!(kind in all)) throw new Error(`no kind ${kind}`);
  return all[kind];
}

function connect() {
  const [kind, path = '/'] = kinds[seen.opened % kinds.length].split(':');
  const first = firstBytes(kind, path);
  const socket = net.connect({ host, port: Number(port) });
  socket.isSlow = kind === 'slow' || kind === 'body';
  open.add(socket);
  seen.opened += 1;
  seen.openAtOnce = Math.max(seen.openAtOnce, open.size);
  socket.on('connect', () => first && socket.write(first));
  socket.on('error', () => {
    seen.refused += 1;
  });
  socket.on('close', () => open.delete(socket));
  if (kind === 'unread') return;
  socket.on('data', (chunk) => {
    const status = /^HTTP\/1\.[01] ([0-9]{3})/.exec(chunk.toString('latin1'))?.[1];
    if (status) seen.answers[status] = (seen.answers[status] ?? 0) + 1;
    if (status && kind === 'requests') socket.write(first);
  });
}

const timers = [
  setInterval(() => {
    for (let n = (OPENED_PER_SECOND_MAX * TICK_MS) / 1000; n > 0 && open.size < wanted; n -= 1) connect();
  }, TICK_MS),
  setInterval(() => {
    for (const socket of open) if (socket.isSlow) socket.write('x');
  }, SLOW_MS),
];
// The first ones at once.
for (let n = 0; n < wanted; n += 1) connect();
setTimeout(() => {
  for (const timer of timers) clearInterval(timer);
  for (const socket of open) socket.destroy();
  console.log(JSON.stringify(seen));
}, Number(seconds) * 1000);
