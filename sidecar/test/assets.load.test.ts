/**
 * Files of the application that nginx serves, to many at once, and while a pod ends. A load test: floods, and times of
 * the product.
 */
import http from 'node:http';
import type { Socket } from 'node:net';
import { APP_FILES, AppFiles } from '../../e2e/harness/engine/app-files.ts';
import { docker } from '../../e2e/harness/engine/docker.ts';
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import type { RenderServiceSpecInput } from '../../operator/src/api/spec.ts';
import { budget } from '../../operator/src/render/model/budget.ts';
import { figure } from '../../operator/test/support/figure.ts';
import { rawConnection } from './raw.ts';

const SCRIPT = `export const text = '${'a chunk '.repeat(500)}';\n`;

const files = new AppFiles({
  'static/app.js': SCRIPT,
  'static/chunks/1-0a1b2c.js': SCRIPT,
  // More than all sockets on the way hold.
  'static/huge.bin': Buffer.alloc(60_000_000),
});

const SPEC: Partial<RenderServiceSpecInput> = {
  workersPerPod: 1,
  limits: { perClient: {} },
  assets: [
    { path: '/_next/static/', from: `${APP_FILES}/static`, immutable: true },
    { path: '/closed/', from: `${APP_FILES}/static`, immutable: true, missing: 'NotFound' },
  ],
};

const worker = { options: files.options };
let pod: Pod;
beforeAll(async () => {
  pod = await Pod.start(SPEC, worker);
});
afterAll(async () => {
  await pod?.stop();
  files.remove();
});

test('10,000 requests for files that are not there: a slot each, or none where nginx says so', async () => {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 50 });
  const before = pod.events({ event: 'begin' }).length;
  const ask = (n: number) => pod.get(`/closed/${n}.js`, { agent });
  const answers = await Promise.all(Array.from({ length: 10_000 }, (_unused, n) => ask(n)));
  agent.destroy();
  const { status, headers, body } = answers[0] as (typeof answers)[0];
  expect([status, headers['x-corelane-error'], headers['cache-control'], body]).toEqual([
    ...[404, 'asset-not-found', 'no-store', '{"error":"asset-not-found"}'],
  ]);
  expect(new Set(answers.map((answer) => answer.status))).toEqual(new Set([404]));
  const begun = pod.events({ event: 'begin' });
  figure('renders begun by 10,000 requests for missing files', begun.length - before, '', '0');
  expect(begun).toHaveLength(before);
  expect((await pod.get('/closed/app.js')).body).toBe(SCRIPT);
});

test('more slow readers of files than there are places for requests: they make room, and no worker is held', async () => {
  const sidecar = { nginx: { memory: '32Mi', memoryLimit: '64Mi', ephemeralStorageLimit: '64Mi' } };
  const buffering = { request: { maxSize: '1Mi', memory: '8Ki' }, response: { memory: '64Ki' } };
  const small = await Pod.start({ ...SPEC, sidecar, buffering }, worker);
  const sockets: Socket[] = [];
  try {
    for (let left = budget(small.spec).requests + 20; left > 0; left -= 1) {
      const socket = await rawConnection(small.port(PORTS.http));
      socket.on('error', () => {}).pause();
      socket.write('GET /_next/static/huge.bin HTTP/1.1\r\nHost: a\r\n\r\n');
      sockets.push(socket);
    }
    await until('the slowest have gone', async () =>
      (await small.accessLog()).some(({ uri, error }) => /huge/.test(String(uri)) && error === 'response-too-slow'),
    );
    expect((await small.get('/?id=beside-slow-readers')).status).toBe(200);
    expect((await small.get('/_next/static/app.js')).status).toBe(200);
    expect(small.events({ event: 'begin' })).toHaveLength(1);
  } finally {
    for (const socket of sockets) socket.destroy();
    await small.stop();
  }
});

test('a pod that is to stop is not forgotten while files are asked for, and closes their connections', async () => {
  const leaving = await Pod.start({ ...SPEC, drain: { delay: '1s' } }, worker);
  try {
    const hooks = [leaving.haproxy, leaving.nginx].map((container) => docker('exec', container, 'corelane-drain'));
    const readiness = async () => (await leaving.get('/readyz', { port: PORTS.health })).body;
    await until('it drains', async () => (await readiness()).startsWith('draining'));
    // Three times the delay, in which no page is asked for.
    for (const end = Date.now() + 3_000; Date.now() < end; ) {
      const agent = new http.Agent({ keepAlive: true });
      const { status, headers } = await leaving.get('/_next/static/chunks/1-0a1b2c.js', { agent });
      // Beside nginx' own "keep-alive", over which it prevails.
      expect([status, headers.connection]).toEqual([200, 'keep-alive, close']);
      agent.destroy();
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    await Promise.all(hooks);
  } finally {
    await leaving.stop();
  }
});
