/**
 * What clients can do to the memory of nginx, with the limits of the plan: who is turned away is told to come back,
 * others are served (I3, I4), and the least limits that admission lets in are enough.
 */
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { budget } from '../../operator/src/render/model/budget.ts';
import { clients, endClients, expectUnharmed, KIB, post, refused, remember, SMALL, stall } from './budget.ts';
import { rawConnection } from './raw.ts';

let small: Pod;
beforeAll(async () => {
  small = await Pod.start(SMALL);
  await remember(small);
});
afterAll(() => small?.stop());
afterEach(() => endClients(small));

test('more requests than memory is for: who comes then is refused, and told who refuses', async () => {
  const { requests, bodies } = budget(small.spec);
  await stall(small, bodies, 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8192\r\n\r\n');
  const pages = `GET /?size=${64 * KIB}&id=many HTTP/1.1\r\nHost: a\r\n\r\n`;
  const busy = small.get('/?hold=1&id=busy');
  await small.begun('busy');
  await stall(small, requests + 3, pages);
  // Before any is served: that would make room.
  await until('some are refused', () => refused('requests-full').length === 4);
  await until('those of slow bodies are told', () => refused('body-too-slow').length === bodies);
  small.release('busy');
  expect((await busy).status).toBe(200);
  await until('the others are served', () => clients.every(({ received }) => received !== ''));
  expect(refused('requests-full').length).toBe(4);
  await expectUnharmed(small);
});

test.each([
  ['pings', 'GET /ping HTTP/1.1\r\nHost: a\r\n\r\n', 'HTTP/1.1 200'],
  ['refused hosts', 'GET / HTTP/1.1\r\nHost: a!\r\n\r\n', 'HTTP/1.1 400'],
])('who asks for %s again and again needs a new connection', async (_what, bytes, status) => {
  const socket = await rawConnection(small.port(PORTS.http));
  let received = '';
  socket.on('data', (chunk) => {
    received += chunk;
  });
  const ended = new Promise((resolve) => socket.once('close', resolve));
  // All at once, so that no time passes between them.
  socket.write(bytes.repeat(100));
  await ended;
  const answers = received.split(status).length - 1;
  expect(answers).toBeGreaterThanOrEqual(2);
  expect(answers).toBeLessThan(20);
});

test('who pings once a second keeps the connection', async () => {
  const socket = await rawConnection(small.port(PORTS.http));
  for (const _ of [1, 2, 3]) {
    socket.write('GET /ping HTTP/1.1\r\nHost: a\r\n\r\n');
    expect(`${await new Promise((resolve) => socket.once('data', resolve))}`).toContain('Connection: keep-alive');
    // A load balancer's interval, which is what is tested.
    await new Promise((resolve) => setTimeout(resolve, 1_000));
  }
  socket.destroy();
});

const LEAST = { nginx: { memoryLimit: '64Mi', ephemeralStorageLimit: '64Mi' }, haproxy: { memoryLimit: '80Mi' } };
test.each([
  ['memory and disk', LEAST],
  // More requests than the disk has buffers for.
  ['disk for much memory', { ...LEAST, nginx: { ...LEAST.nginx, memoryLimit: '8Gi' } }],
])('a pod starts and serves with the least that admission lets in: %s', async (_what, sidecar) => {
  const least = await Pod.start({
    workersPerPod: 1,
    buffering: { request: { maxSize: '8Mi', memory: '8Ki' }, response: { memory: '8Ki' } },
    sidecar,
  });
  try {
    await remember(least);
    expect((await post(least, 8192 * KIB)).status).toBe(200);
    expect((await least.get(`/?size=${4096 * KIB}`)).body).toHaveLength(4096 * KIB);
    await expectUnharmed(least);
  } finally {
    await least.stop();
  }
});
