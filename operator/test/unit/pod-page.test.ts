/** How the operator reads a page of a pod, which may be anybody's: within its time, and never more than it wants. */
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { getFromPod } from '../../src/pods/http.ts';

let server: Server | undefined;
const sockets = new Set<Socket>();

afterEach(() => {
  for (const socket of sockets) socket.destroy();
  sockets.clear();
  server?.close();
});

/** Asks a server that does this with each connection once it has been asked. */
async function ask(answer: (socket: Socket, question: string) => void, signal?: AbortSignal, host = '127.0.0.1') {
  server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('data', (question) => answer(socket, question.toString()));
  });
  server.listen(0, host);
  await once(server, 'listening');
  return await getFromPod(host, (server.address() as AddressInfo).port, '/metrics?a=b', signal);
}

const HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n';

test.each([
  ['in chunks', `${HEAD}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n`],
  ['of a length', `${HEAD}Content-Length: 5\r\n\r\nabcde`],
  ['to the end of the connection', `${HEAD}\r\nabcde`],
  ['after an interim one', `HTTP/1.1 103 Early Hints\r\n\r\n${HEAD}\r\nabcde`],
])('an answer %s', async (_what, text) => {
  expect(await ask((socket) => socket.end(text))).toBe('abcde');
});

test('it asks for one page, and for no more than that', async () => {
  let asked = '';
  await ask((socket, question) => {
    asked = question;
    socket.end(`${HEAD}\r\nabc`);
  });
  expect(asked).toMatch(/^GET \/metrics\?a=b HTTP\/1\.1\r\n/);
  expect(asked).toMatch(/^Connection: close\r$/m);
});

test('an address of IPv6', async () => {
  let asked = '';
  const body = await ask(
    (socket, question) => {
      asked = question;
      socket.end(`${HEAD}\r\nabc`);
    },
    undefined,
    '::1',
  );
  expect(body).toBe('abc');
  expect(asked).toMatch(/^Host: \[::1\]:\d+\r$/m);
});

const chunk = 'x'.repeat(64 * 1024);

test.each<[string, (socket: Socket) => void, RegExp]>([
  ['another status', (socket) => socket.end('HTTP/1.1 429 Too Many\r\n\r\nwait'), /\/metrics\?a=b answers 429/],
  ['no HTTP', (socket) => socket.end('hello\r\n\r\n'), /Parse Error/],
  ['a connection that ends', (socket) => socket.destroy(), /hang up|ECONNRESET/],
  ['half an answer', (socket) => socket.end(`${HEAD}Content-Length: 9\r\n\r\nabc`), /aborted|ECONNRESET/],
  ['half a chunk', (socket) => socket.end(`${HEAD}Transfer-Encoding: chunked\r\n\r\n9\r\nabc`), /aborted|ECONNRESET/],
  [
    'another protocol',
    (socket) => socket.write('HTTP/1.1 101 Up\r\nUpgrade: a\r\nConnection: Upgrade\r\n\r\n'),
    /answers 101/,
  ],
  ['a head without end', (socket) => pour(socket, `HTTP/1.1 200 OK\r\nA: ${chunk}`), /Overflow|Parse Error/],
  ['a body without end', (socket) => pour(socket, `${HEAD}\r\n${chunk}`), /answers more than 512 kB/],
])('%s is none', async (_what, answer, why) => {
  await expect(ask(answer)).rejects.toThrow(why);
});

/** Writes again and again, as long as somebody reads. */
function pour(socket: Socket, text: string): void {
  socket.write(text);
  Readable.from(Array.from({ length: 1_000 }, () => chunk)).pipe(socket, { end: false });
}

test('nobody listens', async () => {
  await expect(getFromPod('127.0.0.1', 1, '/')).rejects.toThrow(/ECONNREFUSED/);
});

test('a word now and then is none after two seconds', async () => {
  const began = performance.now();
  const timers: NodeJS.Timeout[] = [];
  const asked = ask((socket) => {
    socket.write(`${HEAD}\r\n`);
    timers.push(setInterval(() => socket.write('a'), 100));
  });
  await expect(asked).rejects.toThrow('no answer within 2 s');
  for (const timer of timers) clearInterval(timer);
  expect(performance.now() - began).toBeGreaterThan(1_900);
});

test('whoever asks may give up earlier, or before it has begun', async () => {
  const controller = new AbortController();
  await expect(ask(() => controller.abort(), controller.signal)).rejects.toThrow('no answer in time');
  await expect(getFromPod('127.0.0.1', 1, '/', AbortSignal.abort())).rejects.toThrow('no answer in time');
});
