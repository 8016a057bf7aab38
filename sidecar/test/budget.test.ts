/**
 * What clients can do to the memory and the disk of nginx, with the limits of the plan: whatever they hold, no container ends,
 * others are served, and who is turned away is told to come back (I3, I4).
 */
import type net from 'node:net';
import { PORTS } from '../../operator/src/api/names.ts';
import { budget } from '../../operator/src/render/budget.ts';
import { docker, logs } from './docker.ts';
import { Pod, until } from './pod.ts';
import { rawConnection } from './raw.ts';

const KIB = 1024;
let pod: Pod;
let small: Pod;
beforeAll(async () => {
  [pod, small] = await Promise.all([
    Pod.start({ workersPerPod: 2 }),
    Pod.start({
      workersPerPod: 1,
      buffering: { request: { maxSize: '1Mi', memory: '8Ki' }, response: { memory: '64Ki', maxFileSize: '1Gi' } },
      sidecar: { nginx: { memory: '32Mi', memoryLimit: '64Mi', ephemeralStorageLimit: '64Mi' } },
    }),
  ]);
});
afterAll(() => Promise.all([pod?.stop(), small?.stop()]));

interface Client {
  socket: net.Socket;
  received: string;
}
let clients: Client[] = [];
/** The limits hold for a moment more after a client has gone. */
afterEach(async () => {
  for (const { socket } of clients) socket.destroy();
  clients = [];
  for (const there of [pod, small])
    await until('it takes bodies again', async () => (await post(there, 100 * KIB)).status === 200);
});

const post = (there: Pod, bytes: number) => there.get('/', { method: 'POST', body: Buffer.alloc(bytes, 'x') });

/** `count` clients that send this and then nothing more. With `reads: false` they read nothing, either. */
async function stall(there: Pod, count: number, head: string, bytes = 0, { reads = true } = {}): Promise<void> {
  const body = Buffer.alloc(bytes, 'x');
  const open = async () => {
    const client: Client = { socket: await rawConnection(there.port(PORTS.http)), received: '' };
    client.socket.on('error', () => {});
    if (reads)
      client.socket.on('data', (chunk) => {
        client.received += chunk;
      });
    client.socket.write(head);
    client.socket.write(body);
    clients.push(client);
  };
  for (let left = count; left > 0; left -= 100) await Promise.all(Array.from({ length: Math.min(left, 100) }, open));
}

const refused = (reason: string) => clients.filter(({ received }) => received.includes(`X-Corelane-Error: ${reason}`));

/** Process ids of nginx: they change when one was killed and started again. */
const processes = (there: Pod) =>
  docker('exec', there.nginx, 'sh', '-c', 'cat /proc/[0-9]*/comm /proc/[0-9]*/stat | grep nginx | cut -d" " -f1,22');

/** Bytes of nginx' temporary files, which have no name any more. */
async function onDisk(there: Pod): Promise<number> {
  const script = `for fd in $(find /proc/[0-9]*/fd -lname '/tmp/*'); do stat -L -c %b $fd; done 2>/dev/null; true`;
  const blocks = (await docker('exec', there.nginx, 'sh', '-c', script)).split('\n').map(Number);
  return 512 * blocks.reduce((total, count) => total + count, 0);
}

let begun: Map<Pod, string>;
beforeAll(async () => {
  begun = new Map([
    [pod, await processes(pod)],
    [small, await processes(small)],
  ]);
});

/** Others are served, and nothing has ended. */
async function expectUnharmed(there: Pod): Promise<void> {
  const answers = await Promise.all(Array.from({ length: 20 }, (_unused, n) => there.get(`/?id=honest-${n}`)));
  expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200));
  expect((await there.get('/ping')).status).toBe(200);
  expect(await processes(there)).toBe(begun.get(there));
  expect(await logs(there.nginx)).not.toMatch(/exited on signal|is started again|\[alert\]/);
  const { Running } = await there.state(there.nginx);
  expect(Running).toBe(true);
}

test('1,000 clients that stall in a body of 256 KiB', async () => {
  const { largeBodies } = budget(pod.spec);
  await stall(pod, 1000, 'POST /?id=stalled HTTP/1.1\r\nHost: a\r\nContent-Length: 262144\r\n\r\n', 255 * KIB);
  await until('all others are refused', () => refused('bodies-full').length === 1000 - largeBodies);
  const { received } = refused('bodies-full')[0] as Client;
  expect(received).toMatch(/^HTTP\/1\.1 503 [\s\S]*\r\nRetry-After: 1\r\n[\s\S]*\{"error":"bodies-full"\}$/);
  expect((await post(pod, 60 * KIB)).status).toBe(200);
  await expectUnharmed(pod);
  expect(pod.events({ event: 'begin', id: 'stalled' })).toEqual([]);
});

test('1,000 clients that stall in a body that fits into memory', async () => {
  const { bodies } = budget(pod.spec);
  await stall(pod, 1000, 'POST /?id=stalled HTTP/1.1\r\nHost: a\r\nContent-Length: 65536\r\n\r\n', 63 * KIB);
  await until('all others are refused', () => refused('bodies-full').length === 1000 - bodies);
  await expectUnharmed(pod);
});

test('1,000 clients whose bodies have no length in advance', async () => {
  const { largeBodies } = budget(pod.spec);
  await stall(pod, 1000, 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\n', 60 * KIB);
  await until('all others are refused', () => refused('bodies-full').length === 1000 - largeBodies);
  await expectUnharmed(pod);
});

test('250 clients that do not read a page of 1 MiB', async () => {
  for (let served = 50; served <= 250; served += 50) {
    await stall(pod, 50, `GET /?id=unread&size=${1024 * KIB} HTTP/1.1\r\nHost: a\r\n\r\n`, 0, { reads: false });
    await until('they are rendered', () => pod.events({ event: 'end', id: 'unread' }).length === served);
  }
  await expectUnharmed(pod);
});

test('more requests than memory is for: who comes then is refused, and told who refuses', async () => {
  const { requests, bodies } = budget(small.spec);
  await stall(small, bodies, 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8192\r\n\r\n');
  const pages = `GET /?size=${64 * KIB}&id=many HTTP/1.1\r\nHost: a\r\n\r\n`;
  const busy = small.get('/?hold=1&id=busy');
  await small.begun('busy');
  await stall(small, requests, pages);
  // Before any is served: that would make room.
  await until('all others are refused', () => refused('requests-full').length === bodies + 1);
  small.release('busy');
  expect((await busy).status).toBe(200);
  await until('the others are served', () => clients.filter(({ received }) => received !== '').length >= requests);
  expect(refused('requests-full').length).toBe(bodies + 1);
  for (const { socket } of clients) socket.destroy();
  await until('it serves', async () => (await small.get('/')).status === 200);
  await expectUnharmed(small);
});

test('bodies of just under the limit, on more connections than the disk is for', async () => {
  const { largeBodies } = budget(small.spec);
  await stall(small, 60, 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1048576\r\n\r\n', 1023 * KIB);
  await until('all others are refused', () => refused('bodies-full').length === 60 - largeBodies);
  await until('the bodies are on disk', async () => (await onDisk(small)) > (largeBodies - 1) * 1000 * KIB);
  expect(await onDisk(small)).toBeLessThanOrEqual(8 * 1024 * KIB);
  await expectUnharmed(small);
});

test('responses that are not read fill no more of the disk than there is for them', async () => {
  const before = small.events({ event: 'begin', id: 'huge' }).length;
  await stall(small, 30, `GET /?id=huge&size=${20_000 * KIB} HTTP/1.1\r\nHost: a\r\n\r\n`, 0, { reads: false });
  await until('some are rendered', () => small.events({ event: 'begin', id: 'huge' }).length > before);
  await until('there are files', async () => (await onDisk(small)) > 0);
  expect(await onDisk(small)).toBeLessThanOrEqual(56 * 1024 * KIB);
  for (const { socket } of clients) socket.destroy();
  await expectUnharmed(small);
});

test('heads that do not end, as large as they may be', async () => {
  const cookie = `Cookie: ${'x'.repeat(7000)}\r\n`;
  await stall(small, 1000, `GET / HTTP/1.1\r\nHost: a\r\n${cookie}${cookie}`);
  await expectUnharmed(small);
});

test('20,000 idle connections', async () => {
  const script = `
    const net = require('node:net');
    let open = 0;
    const next = (n) => {
      if (n >= 20000) return;
      const socket = net.connect({ host: '127.0.0.1', port: ${PORTS.http}, localAddress: '127.0.1.' + (1 + (n % 200)) });
      socket.on('connect', () => { open += 1; if (open % 2 === 0) socket.write('GET /ping HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n'); next(n + 50); });
      socket.on('error', () => next(n + 50));
      socket.resume();
      if (n === 19999) setTimeout(() => console.log('opened', open), 500);
    };
    for (let n = 0; n < 50; n += 1) next(n);
    setTimeout(() => process.exit(), 60000);`;
  const attacker = docker('exec', '--env', 'NODE_OPTIONS=', pod.workers[0] ?? '', 'node', '-e', script);
  const connections = async () =>
    Number(await docker('exec', pod.nginx, 'sh', '-c', 'ls /proc/[0-9]*/fd 2>/dev/null | wc -l'));
  await until('nginx has as many as it takes', async () => (await connections()) > 14_000, 60_000);
  await expectUnharmed(pod);
  await attacker.catch(() => '');
});
