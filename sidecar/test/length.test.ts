/** The length of a response on a kept connection, whatever a program does to it: with node:http, and read as bytes. */
import { once } from 'node:events';
import http from 'node:http';
import { createRequire } from 'node:module';
import net, { type AddressInfo } from 'node:net';

type Render = (response: http.ServerResponse) => void;
const { keepLength } = createRequire(import.meta.url)('../runtime/length.cjs') as {
  keepLength(request: http.IncomingMessage, response: http.ServerResponse): void;
};

let render: Render;
const server = http.createServer((request, response) => {
  if (request.url === '/next') return response.end('next');
  keepLength(request, response);
  render(response);
});
beforeAll(() => once(server.listen(0, '127.0.0.1'), 'listening'));
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

/** Two requests over one connection: the body of the first response, and whether the second one was answered. */
async function talk(program: Render, method = 'GET'): Promise<[body: string, next: 'next' | 'closed']> {
  render = program;
  const socket = net.connect((server.address() as AddressInfo).port, '127.0.0.1');
  let received = '';
  socket.setEncoding('utf8').on('data', (text) => {
    received += text;
  });
  socket.once('data', () => socket.write('GET /next HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'));
  socket.on('error', () => {}); // a reset is an end, too
  socket.write(`${method} / HTTP/1.1\r\nHost: a\r\n\r\n`);
  await once(socket, 'close');
  const [, body = '', next = ''] = received.split(/HTTP\/1\.1 [0-9]{3} [^\r]*\r\n(?:[^\r]+\r\n)*\r\n/);
  return [body, next.endsWith('next') ? 'next' : 'closed'];
}

const LENGTH = { 'content-length': 4 };
const fits: [name: string, program: Render, body: string][] = [
  ['exact', (response) => response.writeHead(200, LENGTH).end('body'), 'body'],
  ['exact, in parts', (response) => response.writeHead(200, LENGTH).write('bo') && response.end('dy'), 'body'],
  ['exact, in latin1', (response) => response.writeHead(200, LENGTH).end('b\u00f6dy', 'latin1'), 'b\ufffddy'],
  [
    'exact, ended by a callback',
    (response) => response.writeHead(200, LENGTH).write('body') && response.end(() => {}),
    'body',
  ],
  ['without a length', (response) => response.end('body'), 'body'],
  [
    'without a length, in chunks',
    (response) => response.write('bo') && response.end('dy'),
    '2\r\nbo\r\n2\r\ndy\r\n0\r\n\r\n',
  ],
  ['no body, whatever is announced', (response) => response.writeHead(304, LENGTH).end(), ''],
  ['too long', (response) => response.writeHead(200, LENGTH).end('body and more'), 'body'],
  [
    'too long, the length set before',
    (response) => response.setHeader('Content-Length', '4').end('body and more'),
    'body',
  ],
  [
    'too long, in parts',
    (response) => response.writeHead(200, LENGTH).write('bod') && response.write('y a') && response.end('nd'),
    'body',
  ],
  [
    'too long, in bytes',
    (response) => response.writeHead(200, LENGTH).end(new TextEncoder().encode('body and more')),
    'body',
  ],
  [
    'too long, in characters of several bytes',
    (response) => response.writeHead(200, { 'content-length': 2 }).end('\u00fcber'),
    '\u00fc',
  ],
  [
    'too long, the length given twice',
    (response) => response.writeHead(200, { 'content-length': '4, 4' }).end('body and more'),
    'body',
  ],
  [
    'exact, in base64 with line breaks',
    (response) => response.writeHead(200, LENGTH).write('Ym9\n', 'base64') && response.end('ZHk=\n', 'base64'),
    'body',
  ],
  [
    'chunks beside a length',
    (response) => response.writeHead(200, { ...LENGTH, 'transfer-encoding': 'chunked' }).end('body+'),
    '5\r\nbody+\r\n0\r\n\r\n',
  ],
];
test.each(fits)('%s: the next one is answered', async (_name, program, body) => {
  expect(await talk(program)).toEqual([body, 'next']);
});

test('a HEAD has no body, whatever is announced', async () => {
  expect(await talk((response) => response.writeHead(200, LENGTH).end(), 'HEAD')).toEqual(['', 'next']);
});

const short: [name: string, program: Render, body: string][] = [
  ['too short', (response) => response.writeHead(200, LENGTH).end('bod'), 'bod'],
  ['too short, in parts', (response) => response.setHeader('content-length', 4).write('b') && response.end('o'), 'bo'],
  ['nothing at all', (response) => response.writeHead(200, LENGTH).end(), ''],
];
test.each(short)('%s: the connection ends', async (_name, program, body) => {
  expect(await talk(program)).toEqual([body, 'closed']);
});

test('a Node.js that keeps no account of lengths keeps no connection', async () => {
  const forget = (_request: http.IncomingMessage, response: http.ServerResponse) =>
    Reflect.deleteProperty(response, '_contentLength');
  server.prependListener('request', forget);
  const result = await talk((response) => response.end('body'));
  server.off('request', forget);
  expect(result).toEqual(['body', 'closed']);
});
