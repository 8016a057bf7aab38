/**
 * What clients, and the node, can do to the memory of HAProxy, with the limit of the plan: it does not end, and others
 * are served. Here because these are floods.
 */
import type net from 'node:net';
import { logs } from '../../e2e/harness/engine/docker.ts';
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { rawConnection } from './raw.ts';

/** As large as HAProxy takes a head. */
const HEAD_BYTES = 65_000;
const LINE = 'x'.repeat(30_000);

let pod: Pod;
const sockets: net.Socket[] = [];
let startedAt: string;
beforeAll(async () => {
  // nginx lets in fewer requests with a large head by default.
  pod = await Pod.start({ workersPerPod: 2, queue: { maxLength: 300 }, sidecar: { nginx: { memoryLimit: '2Gi' } } });
  startedAt = await pod.startedAt(pod.haproxy);
});
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});
afterAll(() => pod?.stop());

/**
 * Half heads, which keep a buffer each. The published port makes them come from the node, which may have more than
 * others.
 */
async function halfHeads(port: number, count: number): Promise<void> {
  const open = async () => {
    const socket = await rawConnection(pod.port(port)).catch(() => undefined);
    if (!socket) return;
    sockets.push(socket);
    socket.on('error', () => {}).resume();
    socket.write(`GET /livez HTTP/1.1\r\nHost: a\r\nX-Half: ${'x'.repeat(HEAD_BYTES)}`);
  };
  for (let left = count; left > 0; left -= 100) await Promise.all(Array.from({ length: Math.min(left, 100) }, open));
}

async function expectUnharmed(): Promise<void> {
  const answers = await Promise.all(Array.from({ length: 20 }, (_unused, n) => pod.get(`/?id=honest-${n}`)));
  expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200));
  expect(await pod.startedAt(pod.haproxy)).toBe(startedAt);
  expect((await pod.state(pod.haproxy)).Running).toBe(true);
  expect(await logs(pod.haproxy)).not.toMatch(/ended with|out of memory/i);
}

/** More than it has buffers for: who comes waits for one until others have gone. */
test('half heads of 65 kB on all of its ports at once', async () => {
  const ports = [
    [PORTS.health, 3_000],
    [PORTS.stats, 500],
    [PORTS.peers, 1_500],
  ] as const;
  await Promise.all([...ports.map(([port, count]) => halfHeads(port, count)), expectUnharmed(), expectUnharmed()]);
  await expectUnharmed();
});

test('a queue of requests with large heads, whose answers have large heads, too', async () => {
  const headers = { 'x-big-1': LINE, 'x-big-2': LINE };
  const busy = [0, 1].map((n) => pod.get(`/?hold=1&id=busy-${n}`));
  await Promise.all([0, 1].map((n) => pod.begun(`busy-${n}`)));
  const waiting = Array.from({ length: 250 }, (_unused, n) => pod.get(`/?size=100000&id=wait-${n}`, { headers }));
  await until(
    'they wait in the queue',
    async () => (await pod.metric('haproxy_backend_current_queue{proxy="line"}')) >= 250,
  );
  pod.release('busy-0', 'busy-1');
  expect((await Promise.all([...busy, ...waiting])).map(({ status }) => status)).toEqual(Array(252).fill(200));
  const large = await Promise.all(Array.from({ length: 100 }, (_unused, n) => pod.get(`/?head=60000&id=large-${n}`)));
  expect(large.filter(({ status }) => status !== 200)).toEqual([]);
  await expectUnharmed();
});

/** The table of clients (render/haproxy/clients.ts) has room for no more. */
test('10,000 requests with the longest ids that there are', async () => {
  for (let first = 0; first < 10_000; first += 100) {
    const ids = Array.from({ length: 100 }, (_unused, n) => `${first + n}`.padEnd(128, 'x'));
    await Promise.all(ids.map((id) => pod.get('/?id=ids', { headers: { 'x-request-id': id } })));
  }
  await expectUnharmed();
});
