/**
 * Sends bytes as they are. Reads JSON lines `{ id, host, port, parts, done, waitMs }` from standard input, and writes
 * `{ id, received, isClosed }` for each: `parts` are hexadecimal bytes, or pauses in milliseconds; it waits until the
 * connection ends, until `done` (a pattern) fits to what has come and no more comes for a moment, or for `waitMs`.
 * Bytes that come are hexadecimal.
 */
import net from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';

const AT_ONCE = 16;
const MOMENT_MS = 250;
const RECEIVED_MAX = 200_000;

/** As the cases see an answer: its statuses. */
function statuses(received) {
  return [...received.matchAll(/HTTP\/1\.[01] ([0-9]{3})/g)].map(([, status]) => status).join(' ');
}

async function send(socket, parts) {
  for (const part of parts) {
    if (typeof part === 'number') await delay(part);
    else if (socket.writable) socket.write(Buffer.from(part, 'hex'));
  }
}

function talk({ id, host, port, parts, done, waitMs }) {
  return new Promise((resolve) => {
    const pattern = new RegExp(done);
    let received = '';
    let moment;
    let isSent = false;
    const socket = net.connect({ host, port });
    const end = (isClosed) => {
      clearTimeout(moment);
      clearTimeout(limit);
      socket.destroy();
      resolve({ id, received: Buffer.from(received, 'latin1').toString('hex'), isClosed });
    };
    const limit = setTimeout(end, waitMs, false);
    const look = () => {
      clearTimeout(moment);
      if (isSent && received && pattern.test(statuses(received))) moment = setTimeout(end, MOMENT_MS, false);
    };
    socket.on('data', (chunk) => {
      if (received.length < RECEIVED_MAX) received += chunk.toString('latin1');
      look();
    });
    socket.on('connect', async () => {
      await send(socket, parts);
      isSent = true;
      look();
    });
    socket.on('error', () => {});
    socket.on('close', () => end(true));
  });
}

const waiting = [];
let isEnd = false;
let running = 0;
function next() {
  while (running < AT_ONCE && waiting.length > 0) {
    running += 1;
    talk(waiting.shift()).then((answer) => {
      running -= 1;
      process.stdout.write(`${JSON.stringify(answer)}\n`);
      next();
    });
  }
  if (isEnd && running === 0 && waiting.length === 0) process.exit(0);
}
createInterface({ input: process.stdin })
  .on('line', (line) => {
    waiting.push(JSON.parse(line));
    next();
  })
  .on('close', () => {
    isEnd = true;
    next();
  });
