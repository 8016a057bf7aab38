/** Requests that wait for a place of their class in the worker. */
import http from 'node:http';
import { createRequire } from 'node:module';
import net, { type AddressInfo } from 'node:net';
import { jest } from '@jest/globals';

type Enter = (run: () => boolean, request: http.IncomingMessage, response: http.ServerResponse) => boolean;
const require = createRequire(import.meta.url);
const { ClassPlaces } = require('../../runtime/class-places.cjs') as {
  ClassPlaces: new (options: object) => { isBusy: boolean; enter: Enter };
};
const { allocate, views } = require('../../runtime/shared-metrics.cjs');

async function until(what: string, condition: () => boolean): Promise<void> {
  for (let tries = 0; !condition(); tries += 1) {
    if (tries === 300) throw new Error(`in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

test('who has gone waits no more, and holds nothing', async () => {
  const metrics = views(allocate());
  const places = new ClassPlaces({ limit: 1, index: 0, metrics, abandonedMs: 60_000, begin: () => () => {} });
  const began: http.ServerResponse[] = [];
  const server = http.createServer((request, response) => {
    const run = () => began.push(response) > 0;
    places.enter(run, request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const send = () => {
    const socket = net.connect(port, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n'));
    return socket;
  };
  try {
    const stream = send();
    await until('one has the place', () => began.length === 1);
    began[0]?.flushHeaders();
    const others = [send(), send(), send()];
    await until('they wait', () => metrics.classWaited[0] === 3);
    for (const other of others) other.destroy();
    // A stream that has been open for longer is not waited for.
    const { now } = performance;
    jest.spyOn(performance, 'now').mockImplementation(() => now.call(performance) + 60_000);
    await until('nobody waits', () => !places.isBusy);
    const last = send();
    await until('it waits', () => places.isBusy);
    began[0]?.end();
    await until('it has the place', () => began.length === 2);
    for (const socket of [stream, last]) socket.destroy();
  } finally {
    jest.restoreAllMocks();
    server.closeAllConnections();
    server.close();
  }
});
