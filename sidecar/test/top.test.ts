/**
 * `corelane top`, `dashboard`, `explain` and `logs` as a user starts them, on a terminal, with real pods behind an API
 * server that forwards their ports.
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Duplex } from 'node:stream';
import { logs } from '../../e2e/harness/engine/docker.ts';
import { ANY_URL_KEEPS, Pod, until } from '../../e2e/harness/engine/pod.ts';
import type { PageFrame } from '../../operator/live/page-frame.ts';
import type { Entry } from '../../operator/live/timeline.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { type Pod as ApiPod, forwardingApi, kubeconfigFor } from '../../operator/test/support/forwarding-api.ts';
import type { Terminal } from './terminal.ts';
import { onTerminal, type Size } from './top.ts';

const RESOURCE = {
  metadata: { name: 'shop', namespace: 'default', generation: 1 },
  spec: { replicas: 1, template: { spec: { containers: [{ name: 'worker', image: 'shop' }] } } },
  status: { observedGeneration: 1 },
};
const EVENT = {
  metadata: { name: 'shop.1', namespace: 'default' },
  ...{ reason: 'ScaledUp', message: 'scaled 1 -> 2: CPU 81 % > 70 %', eventTime: '2026-11-25T12:00:00.000000Z' },
};
/**
 * Joins standard input and output to a port of the pod's loopback. It ends when all has been written: an exit before
 * that loses what waits for a reader that is late, such as the last chunk of a profile.
 */
const PIPE = `
  const socket = require('node:net').connect(Number(process.argv.at(-1)), '127.0.0.1');
  process.stdin.pipe(socket); socket.pipe(process.stdout);
  for (const one of [socket, process.stdout]) one.on('error', () => process.exit(1));
  socket.on('close', () => process.stdout.write('', () => process.exit()));`;

let pod: Pod;
let folder: string;
let api: Awaited<ReturnType<typeof forwardingApi>>;
const served: ApiPod = {
  name: 'shop-0',
  object: {
    metadata: { labels: { 'pod-template-hash': '7f9c' } },
    spec: { containers: [{ name: 'worker-0' }, { name: 'worker-1' }] },
    status: { conditions: [{ type: 'Ready', status: 'True' }] },
  },
  connect: (port) => (port === PORTS.stats ? net.connect(pod.port(port), '127.0.0.1') : inPod(port)),
};

/** A connection to a port that only the pod itself reaches. */
function inPod(port: number): Duplex {
  const exec = ['exec', '--interactive', '--env', 'NODE_OPTIONS=', pod.workers[0] ?? '', 'node', '-e', PIPE, '--'];
  const child = spawn('docker', [...exec, String(port)], { stdio: ['pipe', 'pipe', 'ignore'] });
  // What has come before it ends counts, whichever of its ends is closed first.
  child.stdin.on('error', () => {});
  const duplex = new Duplex({
    read: () => child.stdout.resume(),
    write: (chunk, _encoding, done) => child.stdin.write(chunk, () => done()),
    destroy: (_error, done) => {
      child.kill();
      done(null);
    },
  });
  child.stdout.on('data', (chunk) => duplex.push(chunk)).on('end', () => duplex.push(null));
  return duplex;
}

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'corelane-top-'));
  api = await forwardingApi([served], { 'renderservices/shop': RESOURCE, events: { items: [EVENT] } });
  writeFileSync(join(folder, 'kubeconfig'), kubeconfigFor(api.url));
  pod = await Pod.start({
    ...{ workersPerPod: 2, queue: { maxLength: 5, timeout: '20s' }, pooling: { enabled: false } },
    watchdog: { stallTimeout: '12s', ...ANY_URL_KEEPS.watchdog },
  });
  for (const worker of [0, 1]) await until(`worker-${worker} is up`, () => pod.isUp(worker));
});
afterAll(async () => {
  await pod?.stop();
  api?.close();
  rmSync(folder, { recursive: true, force: true });
});

let terminal: Terminal | undefined;
afterEach(() => terminal?.kill());

/** The command on a terminal of that size. */
function start(args: string[], size?: Size): Terminal {
  terminal = onTerminal(args, folder, size);
  return terminal;
}

/** Waits until the screen has it, and gives the line. */
async function shows(on: Terminal, pattern: RegExp): Promise<string> {
  return until(String(pattern), () => on.screen.find((line) => pattern.test(line)), 60_000).catch((error) => {
    throw new Error(`${error.message}\n${on.screen.join('\n')}`);
  });
}

test('top: what each worker renders, for how long; then a stuck one first, its stack, and the terminal is given back', async () => {
  const top = start(['top', 'shop', '--interval', '1s']);
  await shows(top, /^. shop-0 +1 +up +·/);
  const held = pod.get('/p/shoes?hold=1&id=shoes');
  const { worker } = await pod.begun('shoes');
  await shows(top, new RegExp(`^. shop-0 +${worker} +up .*▇ +\\d+\\.\\d s .* GET /p/shoes$`));
  pod.release('shoes');
  await held;

  const stuck = pod.get('/loop?loop=1&id=loop', { method: 'POST' });
  const { worker: loops } = await pod.begun('loop');
  await shows(top, new RegExp(`^. shop-0 +${loops} +silent for \\d+ s .*! .* POST /loop`));
  await shows(top, /^Now: an event loop stands still, worker-\d of shop-0/);
  // It is the first of the lanes.
  expect(top.screen[5]).toMatch(new RegExp(`^. shop-0 +${loops} `));
  await stuck;
  await shows(top, /^Now: renders get stuck: .* in render \/app\/worker\.mjs:\d+/);

  top.press('o'.repeat(5));
  await shows(top, /order: name$/);
  if (loops === 1) top.press('\u001b[B');
  await shows(top, new RegExp(`^> shop-0 +${loops} `));
  top.press('s');
  await shows(top, new RegExp(`^worker-${loops} of shop-0 stuck \\d`));
  await shows(top, /^ {4}at render \/app\/worker\.mjs:\d+$/);
  top.press('q');
  expect(await top.ended).toBe(0);
  expect(top.isGivenBack).toBe(true);
});

test('top: a profile by a key', async () => {
  await until('both are up', async () => (await pod.isUp(0)) && (await pod.isUp(1)));
  const top = start(['top', 'shop', '--interval', '1s']);
  await shows(top, /^> shop-0/);
  top.press('p');
  await shows(top, /^profiling worker-\d of shop-0 for 10 s/);
  await shows(top, /^profile of worker-\d of shop-0: shop-0-worker-\d\.cpuprofile, /);
  expect(readdirSync(folder).filter((name) => /^shop-0-worker-\d\.(cpuprofile|html)$/.test(name))).toHaveLength(2);
  // Ctrl-C, as a terminal in raw mode sends it.
  top.press('\u0003');
  expect(await top.ended).toBe(0);
  expect(top.isGivenBack).toBe(true);
});

test('top on a small terminal: nothing is wider or higher than it', async () => {
  const top = start(['top', 'shop', '--interval', '1s'], { columns: 30, rows: 6 });
  await shows(top, /^> shop-0/);
  expect(top.screen[0]).toMatch(/^default\/shop: .*…$/);
  await shows(top, /^\[j\/k\] choose .*…$/);
  top.press('q');
  expect(await top.ended).toBe(0);
});

test('top of what is not there says so, where it stays', async () => {
  const top = start(['top', 'blog']);
  expect(await top.ended).toBe(1);
  expect(top.output).toBe('corelane: there is no RenderService blog in namespace default\r\n');
});

test('dashboard: the same pod over HTTP, with Events, and a profile; nothing without the key', async () => {
  await until('both are up', async () => (await pod.isUp(0)) && (await pod.isUp(1)));
  const dashboard = start(['dashboard', 'shop', '--interval', '1s'], { columns: 200, rows: 20 });
  const line = await shows(dashboard, /^http:\S+\/$/);
  expect((await fetch(new URL('/', line))).status).toBe(404);
  const page = await fetch(line);
  expect(await page.text()).toContain('<script type="module" src="page.js">');
  expect((await fetch(new URL('page.js', line))).status).toBe(200);

  const held = pod.get('/p/hats?hold=1&id=hats');
  const { worker } = await pod.begun('hats');
  const frame = await told<PageFrame>(line, 'frame', ({ lanes }) =>
    lanes.some(({ requests }) => requests.some(({ what }) => what.startsWith('GET /p/hats'))),
  );
  const lane = frame.lanes.find(({ worker: own }) => own.name === `worker-${worker}`);
  expect(lane).toMatchObject({ pod: 'shop-0', requests: [{ what: 'GET /p/hats' }] });
  expect(frame).toMatchObject({
    name: 'shop',
    namespace: 'default',
    revisions: [{ revision: '7f9c', pods: 1, ready: 1 }],
  });
  pod.release('hats');
  await held;
  const { entries } = await told<{ entries: Entry[] }>(line, 'history', () => true);
  expect(entries).toContainEqual({
    ...{ atMs: Date.parse('2026-11-25T12:00:00Z'), kind: 'scaling' },
    ...{ what: 'scaled 1 -> 2', why: 'CPU 81 % > 70 %' },
  });

  const { origin } = new URL(line);
  const made = await fetch(new URL(`profiles?pod=shop-0&worker=${worker}`, line), {
    method: 'POST',
    headers: { origin },
  });
  const { id, title } = (await made.json()) as { id: string; title: string };
  expect(title).toBe(`worker-${worker} of shop-0`);
  expect(await (await fetch(new URL(`profiles/${id}.html`, line))).text()).toContain('CPU profile: busy');
  dashboard.press('\u0003');
  expect(await dashboard.ended).toBe(0);
  await expect(fetch(line)).rejects.toThrow();
});

/** What a page is told by an event of that name, once it is so. */
async function told<T>(url: string, name: string, is: (value: T) => boolean): Promise<T> {
  const { body } = await fetch(new URL('told', url));
  const begin = `event: ${name}\ndata: `;
  let text = '';
  for await (const chunk of body as unknown as AsyncIterable<Uint8Array>) {
    text += Buffer.from(chunk).toString();
    const parts = text.split('\n\n');
    text = parts.pop() ?? '';
    const values = parts.filter((part) => part.startsWith(begin)).map((part) => JSON.parse(part.slice(begin.length)));
    const found = values.find(is);
    if (found !== undefined) return found;
  }
  throw new Error('the stream has ended');
}

test('explain and logs --slow of the same pod', async () => {
  await until('both are up', async () => (await pod.isUp(0)) && (await pod.isUp(1)));
  const slow = [0, 1].map((n) => pod.get(`/slow?hold=block&id=slow-${n}`));
  await Promise.all([pod.begun('slow-0'), pod.begun('slow-1')]);
  const waits = pod.get('/waits?ms=1&id=waits');
  await pod.queued(1);
  // So that it is slow, by HAProxy's own clock.
  const uptime = () => pod.metric('haproxy_process_uptime_seconds');
  const since = await uptime();
  await until('HAProxy has counted a second', async () => (await uptime()) >= since + 2);
  pod.release('slow-0', 'slow-1');
  await Promise.all([...slow, waits]);
  served.log = await until('nginx has written it', async () => {
    const text = await logs(pod.nginx);
    return text.includes('/waits') && text;
  }).then(String);
  const found = start(['logs', 'shop', '--slow'], { columns: 300, rows: 60 });
  expect(await found.ended).toBe(0);
  expect(found.output).toMatch(/ shop-0\/worker-\d +behind \d+ ms of GET \/slow +GET \/waits\?ms=1&id=waits\r$/m);
  expect(found.output).toMatch(/ rendered +GET \/slow\?hold=block&id=slow-\d\r$/m);
  expect(found.output).toMatch(
    / worker-stuck, stuck in render \/app\/worker\.mjs:\d+ +POST \/loop\?loop=1&id=loop\r$/m,
  );

  const said = start(['explain', 'shop', '--for', '1s']);
  expect(await said.ended).toBe(0);
  expect(said.output).toMatch(
    /^Now: renders get stuck: 1 worker in the last 10 minutes, .* in render \/app\/worker\.mjs:\d+/m,
  );
});
