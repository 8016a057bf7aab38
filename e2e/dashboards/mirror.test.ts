/** What keeps asking after its end keeps Jest from ending, after all tests have passed. */
import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { Mirror } from './mirror.ts';

let server: http.Server;
let mirror: Mirror | undefined;
const url = () => `http://127.0.0.1:${(server.address() as AddressInfo).port}/metrics`;

beforeEach(async () => {
  server = http.createServer();
  await once(server.listen(0, '127.0.0.1'), 'listening');
});
afterEach(async () => {
  await mirror?.stop();
  server.closeAllConnections();
  server.close();
});

test('a page is handed on again and again, and an empty one where there is none', async () => {
  let status = 200;
  server.on('request', (request, response) => {
    if (status === 200) response.end('up 1');
    else request.socket.destroy();
  });
  const pages: string[] = [];
  const { promise: both, resolve } = Promise.withResolvers<void>();
  mirror = new Mirror(url, (text) => {
    pages.push(text);
    status = 0;
    if (pages.length === 2) resolve();
  });
  await both;
  expect(pages).toEqual(['up 1', '']);
});

test('one that is ended while it asks gives its question up, and hands nothing on', async () => {
  const pages: string[] = [];
  const asked = once(server, 'request') as Promise<[http.IncomingMessage, http.ServerResponse]>;
  mirror = new Mirror(url, (text) => pages.push(text));
  const [, response] = await asked;
  const gone = once(response, 'close');
  await mirror.stop();
  await gone;
  expect(pages).toEqual([]);
});
