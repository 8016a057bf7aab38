/** The operator's own ports: how often the page of metrics is made, and that nobody keeps others from an answer. */
import { once } from 'node:events';
import { get, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { serveMetrics, serveProbes } from '../../src/http.ts';
import type { Metrics } from '../../src/metrics.ts';

const { now: realNow } = performance;
let now = 0;
let server: Server | undefined;
const others: Socket[] = [];

beforeEach(() => {
  now = 0;
  performance.now = () => now;
});

afterEach(() => {
  performance.now = realNow;
  for (const other of others.splice(0)) other.destroy();
  server?.close();
  server?.closeAllConnections();
});

function port(): number {
  return ((server as Server).address() as AddressInfo).port;
}

function ask(path: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  get({ host: '127.0.0.1', port: port(), path, agent: false }, async (response) => {
    resolve((await response.toArray()).join(''));
  }).on('error', reject);
  return promise;
}

/** Connections of others, which send this and read nothing. */
async function occupy(count: number, sent: string): Promise<void> {
  for (let made = 0; made < count; made += 1) {
    const other = connect({ host: '127.0.0.1', port: port() });
    other.on('error', () => {}).pause();
    others.push(other);
    await once(other, 'connect');
    other.write(sent);
  }
}

/** Asks at each of these times; the answers are the numbers of the pages, each of which takes `tookMs` to be made. */
async function pagesAt(times: number[], tookMs: number): Promise<string[]> {
  let made = 0;
  const metrics = async () => {
    now += tookMs;
    made += 1;
    return `page ${made}`;
  };
  server = await serveMetrics(0, { registry: { metrics, contentType: 'text/plain' } } as unknown as Metrics);
  const answers: string[] = [];
  for (const time of times) {
    now = time;
    answers.push(await ask('/metrics'));
  }
  return answers;
}

test('a page that takes no time is made ten times a second', async () => {
  expect(await pagesAt([0, 99, 100, 150, 200], 0)).toEqual(['page 1', 'page 1', 'page 2', 'page 2', 'page 3']);
});

test('one that takes long is kept for ten times as long: most of the time is for work', async () => {
  expect(await pagesAt([0, 100, 799, 800, 900], 80)).toEqual(['page 1', 'page 1', 'page 1', 'page 2', 'page 2']);
});

test('kubelet is answered, whatever connections any pod of the cluster holds', async () => {
  server = await serveProbes(0, { isLive: () => true, notReady: () => 'the Lease cannot be read' });
  await occupy(600, 'GET /livez HTTP/1.1\r\nX-Slow: ');
  expect([await ask('/livez'), await ask('/readyz')]).toEqual(['ok\n', 'the Lease cannot be read\n']);
});

test('pages that are not read make room for those that are, and are few', async () => {
  const page = 'x'.repeat(4 * 2 ** 20);
  server = await serveMetrics(0, {
    registry: { metrics: async () => page, contentType: 'text/plain' },
  } as unknown as Metrics);
  await occupy(150, 'GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n');
  expect((await ask('/metrics')).length).toBe(page.length);
  const { promise, resolve } = Promise.withResolvers<number>();
  server.getConnections((_error, count) => resolve(count));
  expect(await promise).toBeLessThanOrEqual(10);
});
