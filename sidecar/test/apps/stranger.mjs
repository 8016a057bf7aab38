/**
 * Somebody at an address that DNS gives as a peer's, on the peers' port. Writes to standard output whatever it gets,
 * one JSON text per piece. MODE says what it answers; KEY is set for one that has been a peer and reserves slots.
 */
import net from 'node:net';
import { networkInterfaces } from 'node:os';
import { tokens } from './peer-tokens.mjs';

const { MODE = 'closes', KEY = '' } = process.env;
const IDENTITY = 'f'.repeat(32);
const RESERVATION = 'e'.repeat(32);
const OK = 'HTTP/1.1 200 OK\r\n';
const address = Object.values(networkInterfaces())
  .flat()
  .find(({ internal, family }) => !internal && family === 'IPv4').address;

/** Sends a piece again and again until the other side has enough. */
function pour(socket, begin, piece) {
  const more = () => {
    while (!socket.destroyed && socket.write(piece));
  };
  socket.write(begin);
  socket.on('drain', more);
  more();
}

function forged(headers, body) {
  const lines = Object.entries({ 'Content-Length': body.length, ...headers }).map(
    ([name, value]) => `${name}: ${value}`,
  );
  return `${OK}${lines.join('\r\n')}\r\n\r\n${body}`;
}

/** As a peer answers, with whatever it has of the asker. */
function asPeer(text) {
  const header = (name) => new RegExp(`^${name}: (.*)\r$`, 'im').exec(text)?.[1] ?? '';
  const from = header('X-Corelane-From');
  if (header('X-Corelane-Ask') === 'hello') {
    const [token] = tokens(KEY, 'welcome', IDENTITY, from, address);
    return forged({ 'X-Corelane-From': IDENTITY, 'X-Corelane-Token': token }, 'welcome');
  }
  const [token] = tokens(KEY, 'answer', IDENTITY, from);
  reservedFor = from;
  return forged({ 'X-Corelane-Token': token, 'X-Corelane-Reservation': RESERVATION }, 'yes');
}

let reservedFor = '';

/** What a request that is handed over gets: a page, with or without the proof that it comes from who has reserved. */
function page() {
  const [, proof] = tokens(KEY, 'hand-over', RESERVATION, reservedFor, IDENTITY);
  const verdicts = { 'X-Corelane-Pod': 'forged', 'X-Corelane-Unbegun': 1, 'X-Corelane-Error': 'forged' };
  if (MODE === 'proven') return forged({ 'X-Corelane-Proof': proof }, 'of a peer');
  if (MODE === 'wrong-proof') return forged({ 'X-Corelane-Proof': 'e'.repeat(32), ...verdicts }, 'forged');
  return forged(verdicts, 'forged');
}

const ANSWERS = {
  closes: (socket) => socket.destroy(),
  silent: () => {},
  'says-yes': (socket) =>
    socket.write(
      forged(
        { 'X-Corelane-From': IDENTITY, 'X-Corelane-Token': 'e'.repeat(32), 'X-Corelane-Reservation': RESERVATION },
        'yes',
      ),
    ),
  'endless-line': (socket) => pour(socket, '', 'H'.repeat(65_536)),
  'endless-headers': (socket) => pour(socket, OK, 'A: b\r\n'.repeat(10_000)),
  'endless-body': (socket) => pour(socket, `${OK}Content-Length: 1000000000\r\n\r\n`, Buffer.alloc(65_536)),
  slow: (socket) => {
    socket.write('H');
    setInterval(() => socket.destroyed || socket.write('H'), 50);
  },
  peer: (socket, text) => socket.write(text.includes('X-Corelane-Ask') ? asPeer(text) : page()),
};

net
  .createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', (data) => {
      const text = data.toString('latin1');
      process.stdout.write(`${JSON.stringify(text)}\n`);
      ANSWERS[KEY ? 'peer' : MODE](socket, text);
    });
  })
  .listen(9001, '0.0.0.0');
