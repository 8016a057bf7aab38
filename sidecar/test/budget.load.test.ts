/**
 * What clients can do to the memory and the disk of nginx, with the limits of the plan: whatever they hold, no
 * container ends, others are served, and who is turned away is told to come back (I3, I4). A load test: floods, and
 * clients that must be slower or faster than others.
 */
import { once } from 'node:events';
import http from 'node:http';
import { connect } from 'node:net';
import { docker } from '../../e2e/harness/engine/docker.ts';
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { budget } from '../../operator/src/render/model/budget.ts';
import { figure } from '../../operator/test/support/figure.ts';
import {
  type Client,
  clients,
  endClients,
  expectUnharmed,
  KIB,
  post,
  refused,
  remember,
  SMALL,
  stall,
} from './budget.ts';
import { NOTHING, type Pace, program, readers } from './neighbours.ts';
import { rawConnection } from './raw.ts';

let pod: Pod;
let small: Pod;
/** With times that are shorter than its clients take for what is on disk, and with a class. */
let brief: Pod;
beforeAll(async () => {
  [pod, small, brief] = await Promise.all([
    Pod.start({ workersPerPod: 2 }),
    Pod.start({ ...SMALL, timeouts: { render: '5s' } }),
    Pod.start({
      ...SMALL,
      timeouts: { render: '2s', clientSend: '3s' },
      // Small enough for the memory of this nginx.
      classes: [{ name: 'files', match: [{ pathPrefix: '/files' }], concurrency: 4, queue: { maxLength: 4 } }],
    }),
  ]);
  await Promise.all([pod, small, brief].map(remember));
});
afterAll(() => Promise.all([pod?.stop(), small?.stop(), brief?.stop()]));
afterEach(() => endClients(pod, small, brief));

/** Bytes of nginx' temporary files, which have no name any more. */
async function onDisk(there: Pod): Promise<number> {
  const script = `for fd in $(find /proc/[0-9]*/fd -lname '/tmp/*'); do stat -L -c %b $fd; done 2>/dev/null; true`;
  const blocks = (await docker('exec', there.nginx, 'sh', '-c', script)).split('\n').map(Number);
  return 512 * blocks.reduce((total, count) => total + count, 0);
}

/** `count` connections from inside of the pod, each with `bytes`, or every second one. */
const connections = (there: Pod, count: number, bytes: string, every = 1) =>
  program(
    there,
    `const net = require('node:net');
    const next = (n) => {
      if (n >= ${count}) return;
      const socket = net.connect({ host: '127.0.0.1', port: ${PORTS.http}, localAddress: '127.0.1.' + (1 + (n % 200)) });
      socket.on('connect', () => { if (n % ${every} === 0) socket.write(${JSON.stringify(bytes)}); next(n + 50); });
      socket.on('error', () => {});
      socket.resume();
    };
    for (let n = 0; n < 50; n += 1) next(n);`,
  );

/** Files that nginx has open. */
const filesOpen = async (there: Pod) =>
  Number(await docker('exec', there.nginx, 'sh', '-c', 'ls /proc/[0-9]*/fd 2>/dev/null | wc -l'));

/**
 * All but `places` clients are turned out, or some more: those that are slow go by the dozen.
 * @param what these clients do, for the name of the figure
 */
async function untilTurnedOut(places: number, what: string): Promise<void> {
  const least = clients.length - places;
  await until('the slowest have gone', () => refused('body-too-slow').length >= least);
  const evicted = refused('body-too-slow').length;
  figure(`${what}: clients evicted`, evicted, `of ${clients.length}`, `>= ${least}, < ${least + 64}`);
  expect(evicted).toBeLessThan(least + 64);
}

test('1,000 clients that stall in a body of 256 KiB: they make room for each other, and for all else', async () => {
  const { largeBodies } = budget(pod.spec);
  await stall(pod, 1000, 'POST /?id=stalled HTTP/1.1\r\nHost: a\r\nContent-Length: 262144\r\n\r\n', 255 * KIB);
  await untilTurnedOut(largeBodies, 'stalled bodies of 256 KiB');
  const { received } = refused('body-too-slow')[0] as Client;
  expect(received).toMatch(/^HTTP\/1\.1 503 [\s\S]*\r\nRetry-After: 1\r\n[\s\S]*\{"error":"body-too-slow"\}$/);
  expect((await post(pod, 60 * KIB)).status).toBe(200);
  expect((await post(pod, 300 * KIB)).status).toBe(200);
  await expectUnharmed(pod);
  expect(pod.events({ event: 'begin', id: 'stalled' })).toEqual([]);
  const line = (await pod.accessLog()).find(({ error }) => error === 'body-too-slow');
  expect(line).toMatchObject({ status: 503, method: 'POST' });
});

test('1,000 clients that stall in a body that fits into memory', async () => {
  const { bodies } = budget(pod.spec);
  await stall(pod, 1000, 'POST /?id=stalled HTTP/1.1\r\nHost: a\r\nContent-Length: 65536\r\n\r\n', 63 * KIB);
  await untilTurnedOut(bodies, 'stalled bodies of 64 KiB');
  expect((await post(pod, 60 * KIB)).status).toBe(200);
  await expectUnharmed(pod);
});

test('1,000 clients whose bodies have no length in advance', async () => {
  const { largeBodies } = budget(pod.spec);
  await stall(pod, 1000, 'POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nffff\r\n', 60 * KIB);
  await untilTurnedOut(largeBodies, 'stalled chunked bodies');
  expect((await post(pod, 300 * KIB)).status).toBe(200);
  await expectUnharmed(pod);
});

test('an upload that takes its time stays, those that hardly move go', async () => {
  const { bodies } = budget(small.spec);
  const drip = 'POST /?id=dripping HTTP/1.1\r\nHost: a\r\nContent-Length: 8192\r\n\r\n';
  const before = await filesOpen(small);
  await stall(small, bodies, drip, 24);
  // Docker's proxy may let the last one in first, and of those that are young the oldest goes.
  await until('all have come', async () => (await filesOpen(small)) >= before + bodies);
  const [part, parts] = ['x'.repeat(500), 10];
  await stall(small, 1, `POST /?id=upload HTTP/1.1\r\nHost: a\r\nContent-Length: ${part.length * parts}\r\n\r\n`);
  const upload = clients.at(-1) as Client;
  for (let sent = 0; sent < parts; sent += 1) {
    upload.socket.write(part);
    await new Promise((resolve) => setTimeout(resolve, 200));
    await stall(small, bodies / 4, drip, 24);
  }
  await until('it is answered', () => upload.received !== '');
  expect(upload.received).toMatch(/^HTTP\/1\.1 200 /);
  const evicted = refused('body-too-slow').length;
  figure('clients evicted that hardly send their bodies, during a slow upload', evicted, '', `> ${bodies}`);
  expect(evicted).toBeGreaterThan(bodies);
  expect(small.events({ event: 'begin', id: 'dripping' })).toEqual([]);
});

test('clients that have their answer and do not go make room at once', async () => {
  const { requests } = budget(small.spec);
  const lingering = Array.from({ length: requests }, async () => {
    const socket = connect({ port: small.port(PORTS.http), host: '127.0.0.1', allowHalfOpen: true });
    clients.push({ socket, received: '' });
    socket.on('error', () => {}).resume();
    // What follows the request makes nginx wait for more of it (lingering_close).
    socket.write('GET /?id=lingering HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\nX');
    await once(socket, 'end');
  });
  await Promise.all(lingering);
  await expectUnharmed(small);
});

test('250 clients that do not read a page of 1 MiB', async () => {
  const path = `/?id=unread&size=${1024 * KIB}`;
  // The quarantine holds at most 25 requests of one client for a URL that it has not seen answered.
  expect((await pod.get(path, { headers: { host: 'a' } })).status).toBe(200);
  for (let served = 51; served <= 251; served += 50) {
    await stall(pod, 50, `GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`, 0, { reads: false });
    await until('they are rendered', () => pod.events({ event: 'end', id: 'unread' }).length === served);
  }
  await expectUnharmed(pod);
});

test('of a response that nobody reads the kernel keeps as much as is in the budget', async () => {
  const stop = await readers(small, pod, 4, `/?id=kept&size=${800 * KIB}`, NOTHING);
  await until('all are rendered', () => small.events({ event: 'end', id: 'kept' }).length === 4);
  // Bytes that were sent and not acknowledged, or wait to be sent: the first of the two columns tx_queue:rx_queue.
  const kept = (await docker('exec', small.nginx, 'cat', '/proc/net/tcp'))
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
    .filter(([, local]) => local?.endsWith(`:${PORTS.http.toString(16).toUpperCase()}`))
    .map(([, , , , queues]) => Number.parseInt(queues as string, 16));
  figure('most that the kernel keeps of an unread response', Math.max(...kept) / KIB, 'KiB', '> 32 KiB, <= 256 KiB');
  expect(Math.max(...kept)).toBeGreaterThan(32 * KIB);
  expect(Math.max(...kept)).toBeLessThanOrEqual(256 * KIB);
  await stop();
});

test('more clients that do not read than there are places: they make room', async () => {
  const { requests } = budget(small.spec);
  const stop = await readers(small, pod, 2 * requests, `/?id=many-unread&size=${800 * KIB}`, NOTHING);
  await until('all are rendered', () => small.events({ event: 'end', id: 'many-unread' }).length === 2 * requests);
  await expectUnharmed(small);
  const cut = await until('it is logged', async () =>
    (await small.accessLog()).find(({ error }) => error === 'response-too-slow'),
  );
  expect(cut.status).toBe(200);
  await stop();
});

test('bodies of just under the limit, on more connections than the disk is for', async () => {
  const { largeBodies } = budget(small.spec);
  await stall(small, 60, 'POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1048576\r\n\r\n', 1023 * KIB);
  await untilTurnedOut(largeBodies, 'stalled bodies of 1 MiB');
  await until('the bodies are on disk', async () => (await onDisk(small)) > (largeBodies - 1) * 1000 * KIB);
  const bytes = await onDisk(small);
  figure('request bodies of 60 stalled clients on disk', bytes / (1024 * KIB), 'MiB', '<= 8 MiB');
  expect(bytes).toBeLessThanOrEqual(8 * 1024 * KIB);
  await expectUnharmed(small);
});

const SLOW_READERS: [how: string, pace: Pace][] = [
  ['does not read', NOTHING],
  ['slowly reads', { bytes: 64 * KIB, pauseMs: 100 }],
];
/** Lines of the access log about the requests with this name. */
const logged = async (there: Pod, id: string) =>
  (await there.accessLog()).filter(({ uri }) => String(uri).includes(`id=${id}&`));

test.each(SLOW_READERS)(
  'a client that %s a page beyond its share of the disk holds no render slot, and is not cut for it',
  async (_how, pace) => {
    const id = `held-${pace.pauseMs}`;
    const stop = await readers(small, pod, 1, `/?id=${id}&size=${30_000 * KIB}`, pace);
    await until('it is being rendered', () => small.events({ event: 'begin', id })[0]);
    const began = performance.now();
    // It has given the only slot back.
    expect((await small.get('/?id=behind')).status).toBe(200);
    await until('where too many hold a worker it would be cut', () => performance.now() - began > 8_000);
    expect(await logged(small, id)).toEqual([]);
    await expectUnharmed(small);
    await stop();
  },
);

const SLOWLY: Pace = { bytes: 8 * KIB, pauseMs: 100 };
/** How many of these were cut. */
const cutOf = async (there: Pod, id: string) =>
  (await logged(there, id)).filter(({ error }) => error === 'response-too-slow').length;

test('where too many clients hold a worker the slowest go', async () => {
  const { heldSlots } = budget(small.spec);
  const path = `/?id=many-held&size=${8_000 * KIB}`;
  const stop = await readers(small, pod, heldSlots + 3, path, SLOWLY);
  await until('three are cut', async () => (await cutOf(small, 'many-held')) === 3);
  expect((await small.get('/?id=behind-many')).status).toBe(200);
  expect(await logged(small, 'many-held')).toHaveLength(3);
  await stop();
});

test('clients that read slowly leave half of the places of a class to others', async () => {
  const { heldClasses } = budget(brief.spec);
  const stop = await readers(brief, pod, 2 * heldClasses, `/files?id=held-files&size=${8_000 * KIB}`, SLOWLY);
  await until('all are begun', () => brief.events({ event: 'begin', id: 'held-files' }).length === 2 * heldClasses);
  expect((await brief.get('/files?id=behind-files')).status).toBe(200);
  await until('half of them are cut', async () => (await cutOf(brief, 'held-files')) === heldClasses);
  await stop();
});

test('a download comes whole, at whatever speed its client reads', async () => {
  const size = 3_000 * KIB;
  // The kernel tells nginx of room for twice the largest segment, 128 KiB: that often within clientSend, and more.
  const stop = await readers(brief, pod, 1, `/?id=download&size=${size}`, { bytes: 16 * KIB, pauseMs: 100 });
  const [line = {}] = await until('it is logged', async () => {
    const lines = await logged(brief, 'download');
    return lines.length > 0 ? lines : undefined;
  });
  expect(line).toMatchObject({ status: 200, error: '' });
  figure('bytes of a download at 160 kB/s that have come', Number(line.bytesSent), '', `> ${size}`);
  expect(line.bytesSent).toBeGreaterThan(size);
  await stop();
});

test('a download comes whole though its client pauses, as a video player does', async () => {
  const size = 8_000 * KIB;
  const socket = await rawConnection(small.port(PORTS.http));
  let received = 0;
  socket.write(`GET /?id=paused&size=${size} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
  await new Promise<void>((resolve) => {
    socket.on('data', function first(chunk) {
      received += chunk.length;
      if (received < 1_000 * KIB) return;
      socket.off('data', first);
      socket.pause();
      resolve();
    });
  });
  await new Promise((resolve) => setTimeout(resolve, 8_000));
  socket.on('data', (chunk) => {
    received += chunk.length;
  });
  await once(socket.resume(), 'close');
  figure('bytes of a download whose client pauses for 8 s', received, '', `> ${size}`);
  expect(received).toBeGreaterThan(size);
});

test('responses that are not read fill no more of the disk than there is for them', async () => {
  const before = small.events({ event: 'begin', id: 'huge' }).length;
  await stall(small, 30, `GET /?id=huge&size=${20_000 * KIB} HTTP/1.1\r\nHost: a\r\n\r\n`, 0, { reads: false });
  await until('some are rendered', () => small.events({ event: 'begin', id: 'huge' }).length > before);
  await until('there are files', async () => (await onDisk(small)) > 0);
  const bytes = await onDisk(small);
  figure('unread responses of 20 MB for 30 clients on disk', bytes / (1024 * KIB), 'MiB', '<= 56 MiB');
  expect(bytes).toBeLessThanOrEqual(56 * 1024 * KIB);
  for (const { socket } of clients) socket.destroy();
  await expectUnharmed(small);
});

test('heads that do not end, as large as they may be', async () => {
  const cookie = `Cookie: ${'x'.repeat(7000)}\r\n`;
  await stall(small, 2000, `GET / HTTP/1.1\r\nHost: a\r\n${cookie}${cookie}${cookie}`);
  await expectUnharmed(small);
});

test('20,000 idle connections', async () => {
  const stop = connections(pod, 20_000, 'GET /ping HTTP/1.1\r\nHost: a\r\n\r\n', 2);
  await until('nginx has as many as it takes', async () => (await filesOpen(pod)) > 15_000, 60_000);
  await expectUnharmed(pod);
  await stop();
});

test('20,000 connections with half a head: old ones make room', async () => {
  const agent = new http.Agent({ keepAlive: true });
  expect((await pod.get('/?id=kept', { agent })).status).toBe(200);
  const stop = connections(pod, 20_000, 'GET / HTTP/1.1\r\nHost: a\r\nX-Half: ');
  const { busyConnections, nginxConnections } = budget(pod.spec);
  await until('nginx has as many as it lets in', async () => (await filesOpen(pod)) > 0.9 * busyConnections, 60_000);
  for (let n = 0; n < 100; n += 1) {
    const answers = await Promise.all([pod.get(`/?id=new-${n}`), pod.get('/?id=kept', { agent })]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200]);
  }
  const files = await filesOpen(pod);
  figure('files open in nginx with 20,000 half request heads', files, '', `< ${nginxConnections}`);
  expect(files).toBeLessThan(nginxConnections);
  await expectUnharmed(pod);
  agent.destroy();
  await stop();
});

/** Together they are more than the memory limit; each of their connections is idle until then. */
test('5,000 half heads of as many lines and bytes as there may be, all at once', async () => {
  const { headerLines, busyConnections } = budget(pod.spec);
  const stop = await program(
    small,
    `const net = require('node:net');
    // A long name costs twice its bytes, a long value once.
    const large = ['A', 'B', 'C'].map((name) => name.repeat(30_000) + ': a\\r\\n').join('');
    const head = Buffer.from('GET / HTTP/1.1\\r\\nHost: a\\r\\n' + 'a:\\r\\n'.repeat(${headerLines - 20}) + large);
    const sockets = [];
    const next = (n) => {
      if (n >= 5_000) return;
      const socket = net.connect({ host: '${await pod.address()}', port: ${PORTS.http} });
      socket.on('connect', () => {
        next(n + 50);
        if (sockets.push(socket) === 5_000) for (const each of sockets) each.write(head);
      });
      socket.on('error', () => {});
      socket.resume();
    };
    for (let n = 0; n < 50; n += 1) next(n);`,
  );
  await until('nginx has them', async () => (await filesOpen(pod)) > 4_500, 60_000);
  await until('the oldest have gone', async () => (await filesOpen(pod)) < 1.1 * busyConnections);
  await expectUnharmed(pod);
  await stop();
});

/** What is answered before it gets a place, and what its client does then. */
interface Guest {
  bytes: string;
  /** How often it asks, without waiting for an answer. */
  times?: number;
  /** Goes on to send its body, byte by byte. */
  drips?: boolean;
}
const LARGEST_HEAD = `${'a:\r\n'.repeat(236)}X: ${'x'.repeat(7000)}\r\n`;
const NO_HOST = `POST /${'\xe9'.repeat(4_000)} HTTP/1.1\r\nHost: a!\r\nContent-Length: 100000\r\n${LARGEST_HEAD}\r\n`;

/** How many connections a pod has ever been asked for (PassiveOpens). */
async function connectionsEver(there: Pod): Promise<number> {
  const [, values = ''] = (await docker('exec', there.nginx, 'grep', '^Tcp:', '/proc/net/snmp')).split('\n');
  return Number(values.split(' ')[6]);
}

/** `count` connections from pod `from` that read nothing and never close. */
const guests = async (there: Pod, from: Pod, count: number, { bytes, times = 1, drips = true }: Guest) =>
  program(
    from,
    `const net = require('node:net');
    const bytes = Buffer.from(${JSON.stringify(bytes)}.repeat(${times}), 'latin1');
    const sockets = [];
    const next = (n) => {
      if (n >= ${count}) return;
      const onread = { buffer: Buffer.alloc(16), callback: () => false };
      const socket = net.connect({ host: '${await there.address()}', port: ${PORTS.http}, allowHalfOpen: true, onread });
      socket.on('connect', () => { sockets.push(socket); socket.write(bytes); next(n + 50); });
      socket.on('error', () => {});
    };
    for (let n = 0; n < 50; n += 1) next(n);
    if (${drips}) setInterval(() => { for (const each of sockets) if (!each.destroyed) each.write('x'); }, 1000);`,
  );

test.each<[string, Guest]>([
  ['pings whose body never ends', { bytes: 'POST /ping HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n' }],
  ['refused hosts whose body never ends', { bytes: NO_HOST }],
  ['heads with an error, and a body', { bytes: 'POST / HTTP/1.1\r\nContent-Length: 100000\r\n\r\n' }],
  ['heads of too many lines', { bytes: `GET / HTTP/1.1\r\nHost: a\r\n${LARGEST_HEAD}${'b:\r\n'.repeat(30)}` }],
  ['pings that nobody reads', { bytes: 'GET /ping HTTP/1.1\r\nHost: a\r\n\r\n', times: 4000, drips: false }],
])('clients that are answered without a place, and do not go, make room: %s', async (_what, guest) => {
  const { answers, nginxConnections } = budget(small.spec);
  // Who asks 4,000 times takes a while.
  const count = guest.times === undefined ? nginxConnections + 50 : 4 * answers;
  const [files, ever] = [await filesOpen(small), await connectionsEver(small)];
  const stop = await guests(small, pod, count, guest);
  await until('all have come', async () => (await connectionsEver(small)) >= ever + count);
  // Before nginx itself gives them up: lingering_time, 30 s.
  await until('the oldest have gone', async () => (await filesOpen(small)) < files + answers + 50, 15_000);
  await expectUnharmed(small);
  await stop();
});

test('so do those for whom there is no place', async () => {
  const { answers, requests } = budget(small.spec);
  const busy = small.get('/?hold=1&id=full');
  await small.begun('full');
  await stall(small, requests + 3, 'GET /?id=queued HTTP/1.1\r\nHost: a\r\n\r\n');
  await until('all places are taken', () => refused('requests-full').length === 4);
  const [files, ever] = [await filesOpen(small), await connectionsEver(small)];
  const bytes = 'POST /?id=refused HTTP/1.1\r\nHost: a\r\nContent-Length: 8000\r\n\r\n';
  const stop = await guests(small, pod, 8 * answers, { bytes });
  await until('all have come', async () => (await connectionsEver(small)) >= ever + 8 * answers);
  await until('the oldest have gone', async () => (await filesOpen(small)) < files + answers + 50, 15_000);
  expect(small.events({ id: 'refused' })).toEqual([]);
  small.release('full');
  expect((await busy).status).toBe(200);
  await until('the others are served', () => clients.every(({ received }) => received !== ''));
  await stop();
  await expectUnharmed(small);
});

test('5,000 of them with the largest head that there is', async () => {
  const ever = await connectionsEver(pod);
  const lines = `${'a:\r\n'.repeat(236)}X: ${'x'.repeat(25_000)}\r\nY: ${'y'.repeat(25_000)}\r\n`;
  const bytes = `POST /${'\xe9'.repeat(15_000)} HTTP/1.1\r\nHost: a!\r\nContent-Length: 100000\r\n${lines}\r\n`;
  const stop = await guests(pod, small, 5_000, { bytes });
  await until('all have come', async () => (await connectionsEver(pod)) >= ever + 5_000, 60_000);
  await expectUnharmed(pod);
  await stop();
});

test('where idle connections take the places, slow heads stay', async () => {
  const { nginxConnections } = budget(small.spec);
  const idle = Math.floor(0.9 * nginxConnections);
  const bytes = 'GET /ping HTTP/1.1\r\nHost: a\r\n\r\n';
  const stop = await guests(small, pod, idle, { bytes, drips: false });
  await until('they are there', async () => (await filesOpen(small)) > idle);
  const answers: Client[] = [];
  for (let n = 0; n < 20; n += 1) {
    await stall(small, 1, 'GET /?id=slow HTTP/1.1\r\nHost: a\r\n');
    const slow = clients.at(-1) as Client;
    // Longer than those stay of whom there are many.
    await new Promise((resolve) => setTimeout(resolve, 60));
    await stall(small, 1, '');
    await new Promise((resolve) => setTimeout(resolve, 20));
    slow.socket.write('Connection: close\r\n\r\n');
    answers.push(slow);
  }
  await until('all are answered', () => answers.every(({ socket }) => socket.destroyed));
  expect(answers.map(({ received }) => received.slice(9, 12))).toEqual(Array(20).fill('200'));
  await stop();
});
