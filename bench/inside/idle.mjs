/**
 * Connections that send one request and stay open: idle.mjs HOST PORT PATH COUNT. Prints `open N` when that many have
 * had their answer, waits for a line on standard input, and prints how many are open then.
 */
import net from 'node:net';
import { createInterface } from 'node:readline';

const [host, port, path, count] = process.argv.slice(2);
/** Connects and answers that are waited for at a time. */
const AT_A_TIME = 100;
const GIVE_UP_MS = 10_000;
const request = `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`;
const open = new Set();
let started = 0;

/** Gives whether an answer came. */
function connect() {
  return new Promise((resolve) => {
    const socket = net.connect({ host, port: Number(port) });
    const timer = setTimeout(() => socket.destroy(), GIVE_UP_MS);
    socket.on('connect', () => socket.write(request));
    socket.once('data', (chunk) => {
      clearTimeout(timer);
      if (chunk.toString('latin1').startsWith('HTTP/1.1 200')) open.add(socket);
      resolve();
    });
    socket.on('error', ({ code }) => {
      // Limits of this side must not look like those of the other one.
      if (code !== 'EMFILE' && code !== 'EADDRNOTAVAIL') return;
      console.error(`the client may not open more than ${open.size} connections: ${code}`);
      process.exit(1);
    });
    socket.on('close', () => {
      clearTimeout(timer);
      open.delete(socket);
      resolve();
    });
  });
}

async function lane() {
  while (started < Number(count)) {
    started += 1;
    await connect();
  }
}

await Promise.all(Array.from({ length: AT_A_TIME }, lane));
console.log(`open ${open.size}`);
for await (const _line of createInterface({ input: process.stdin })) break;
console.log(`open ${open.size}`);
process.exit(0);
