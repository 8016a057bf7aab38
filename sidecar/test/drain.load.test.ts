/**
 * A pod that is to stop, with delays, time-outs and containers that die. Here because most of it is measured, or
 * outlasts time-outs, and because it takes long.
 */
import { existsSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { docker } from '../../e2e/harness/engine/docker.ts';
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { figure } from '../../operator/test/support/figure.ts';
import { stopping } from './drain.ts';

/** The shortest drain that there is. */
const SHORTEST = {
  workersPerPod: 1,
  drain: { delay: '0s', timeout: '1s' },
  queue: { timeout: '100ms' },
  timeouts: { render: '900ms' },
} as const;

let pod: Pod;
afterEach(() => pod?.stop());
const { preStop, terminate, untilRefused, readiness } = stopping(() => pod);

test('who has asked before the drain is told that its connection ends, whenever the answer comes', async () => {
  pod = await Pod.start({ workersPerPod: 2, drain: { delay: '3s' } });
  const agent = new http.Agent({ keepAlive: true, maxSockets: 2 });
  const before = ['early', 'late'].map((id) => pod.get(`/?hold=1&id=${id}`, { agent }));
  await Promise.all([pod.begun('early'), pod.begun('late')]);
  const { proxies, workers } = preStop();
  await until('not ready', async () => (await readiness()) === '503 draining');
  pod.release('early');
  // It could be used again until nginx ends, and be closed in that moment.
  const early = await before[0];
  expect([early?.status, early?.headers.connection]).toEqual([200, expect.stringMatching(/\bclose$/)]);
  await untilRefused();
  pod.release('late');
  const late = await before[1];
  expect([late?.status, late?.headers.connection]).toEqual([200, expect.stringMatching(/\bclose$/)]);
  await Promise.all([proxies, workers]);
});

/** New clients, one after the other, until the pod accepts no more. */
async function clientsUntilRefused(
  pauseMs: number,
  secondsMax: number,
): Promise<{ seconds: number; statuses: Set<number> }> {
  const statuses = new Set<number>();
  const began = performance.now();
  const seconds = () => (performance.now() - began) / 1000;
  while (seconds() < secondsMax) {
    try {
      statuses.add((await pod.get('/?id=client')).status);
    } catch (error) {
      expect((error as NodeJS.ErrnoException).code).toMatch(/^ECONN(REFUSED|RESET)$/);
      break;
    }
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  return { seconds: seconds(), statuses };
}

test('a late endpoint list: the pod accepts for as long as requests come, and drain.delay longer', async () => {
  pod = await Pod.start({ workersPerPod: 1, drain: { delay: '2s' } });
  const { proxies, workers } = preStop();
  // Four delays; a request each 100 ms.
  const { seconds, statuses } = await clientsUntilRefused(100, 8);
  expect(statuses).toEqual(new Set([200]));
  figure('time that a draining pod accepts requests which keep coming', seconds, 's', '> 8 s');
  expect(seconds).toBeGreaterThan(8);
  await Promise.all([proxies, workers]);
});

test('a client that does not cease cannot hold a pod: ten delays longer at most', async () => {
  // A busy machine may let a shorter delay pass between two requests of this client.
  pod = await Pod.start({ workersPerPod: 1, drain: { delay: '1s' } });
  const { proxies, workers } = preStop();
  const { seconds, statuses } = await clientsUntilRefused(20, 30);
  expect(statuses).toEqual(new Set([200]));
  figure('time until a draining pod refuses a client that does not cease', seconds, 's', '> 1 s, < 30 s');
  expect(seconds).toBeGreaterThan(1);
  expect(seconds).toBeLessThan(30);
  await Promise.all([proxies, workers]);
});

test('an idle pod does not wait for idle connections', async () => {
  pod = await Pod.start({ workersPerPod: 2, drain: { delay: '500ms' } });
  const agent = new http.Agent({ keepAlive: true });
  await pod.get('/?id=idle', { agent });
  const began = performance.now();
  const { proxies, workers } = preStop();
  await proxies;
  const said = await workers;
  const tookMs = performance.now() - began;
  figure('drain time of a pod with an idle connection', tookMs / 1000, 's', '< 30 s');
  // keepAlive.idleTimeout is 75 s.
  expect(tookMs).toBeLessThan(30_000);
  expect(said).toEqual(['drained', 'drained']);
  // Nor HAProxy for anybody: a graceful stop would answer this one with 408 after 5 s.
  const silent = net.connect(pod.port(PORTS.health), '127.0.0.1');
  silent.write('GET /livez');
  const told = text(silent);
  expect(await Promise.all([pod.nginx, pod.haproxy].map(terminate))).toEqual([0, 0]);
  expect(await told).toBe('');
  agent.destroy();
});

test('a connection that has never sent anything does not hold the pod; one that has sent a byte does', async () => {
  const timeouts = { clientHeader: '10m' } as const;
  pod = await Pod.start({ workersPerPod: 1, drain: { delay: '0s', timeout: '10m' }, timeouts });
  const open = () =>
    new Promise<net.Socket>((resolve) => {
      const socket = net.connect(pod.port(PORTS.http), '127.0.0.1', () => resolve(socket));
      socket.on('error', () => 0);
    });
  const silent = await Promise.all([open(), open()]);
  const begun = await open();
  begun.write('GET /?id=begun HTTP/1.1\r\n');
  await until('nginx serves beside them', async () => (await pod.get('/ping')).status === 200);
  let hooksDone = false;
  const { proxies, workers } = preStop();
  const stopped = workers.then(() => {
    hooksDone = true;
  });
  // That nothing happens can only be seen by looking for a while: the hook looks five times a second after the first.
  await new Promise((resolve) => setTimeout(resolve, 4000));
  expect(hooksDone).toBe(false);
  const answer = new Promise<string>((resolve) => begun.once('data', (data) => resolve(data.toString())));
  begun.write('Host: a\r\n\r\n');
  expect(await answer).toMatch(/^HTTP\/1.1 200 /);
  await Promise.all([proxies, stopped]);
  expect((await pod.state(pod.nginx)).Running).toBe(true);
  expect(await terminate(pod.nginx)).toBe(0);
  for (const socket of [...silent, begun]) socket.destroy();
});

test('drain.timeout releases the workers whatever is still going on', async () => {
  pod = await Pod.start({ ...SHORTEST, timeouts: { ...SHORTEST.timeouts, clientBody: '10m' } });
  const slow = net.connect(pod.port(PORTS.http), '127.0.0.1');
  slow.on('error', () => 0);
  slow.write('POST /?id=never HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345');
  await until('nginx has it', async () => (await pod.get('/ping')).status === 200);
  const { proxies, workers } = preStop();
  expect(await workers).toEqual(['drained']);
  // nginx gives up as well, or its container would wait to be killed.
  await until('nginx has ended', () => existsSync(join(pod.run, 'nginx-stopped')));
  await proxies;
  slow.destroy();
});

test('drain.timeout releases the workers when nginx was killed and cannot say that it has ended', async () => {
  pod = await Pod.start(SHORTEST);
  await docker('kill', '--signal', 'KILL', pod.nginx);
  const released = pod.waitForDrain(0);
  await docker('exec', pod.haproxy, 'corelane-drain');
  expect(await released).toBe('drained');
  expect(await readiness()).toBe('503 draining');
});

test('a HAProxy that has ended for good does not hold the workers', async () => {
  pod = await Pod.start(SHORTEST);
  // As a container ends that is out of memory: process 1 leaves no mark.
  await docker('kill', '--signal', 'KILL', pod.haproxy);
  const released = pod.waitForDrain(0);
  await docker('exec', pod.nginx, 'corelane-drain');
  expect(await released).toBe('drained');
});

test('nginx dies while endpoint lists may still name the pod: it is started again, and the drain goes on', async () => {
  pod = await Pod.start({ workersPerPod: 1, drain: { delay: '3s' } });
  const { proxies, workers } = preStop();
  await until('not ready', async () => (await readiness()) === '503 draining');
  await pod.killProxy(pod.nginx, 'nginx', { withChildren: true });
  expect((await pod.get('/?id=late')).status).toBe(200);
  await proxies;
  expect(await workers).toEqual(['drained']);
  expect(existsSync(join(pod.run, 'nginx-stopped'))).toBe(true);
});

test.each(['haproxy', 'nginx'] as const)(
  'kubelet replaces %s because of a probe: its hook has run, and the pod serves again',
  async (name) => {
    pod = await Pod.start({ workersPerPod: 1, drain: { delay: '0s' } });
    const hook = docker('exec', pod[name], 'corelane-drain');
    await until('not ready', async () => (await readiness()) === '503 draining');
    await hook;
    if (name === 'nginx') expect(await pod.waitForDrain(0)).toBe('drained');
    await terminate(pod[name]);
    await docker('start', pod[name]);
    await until('ready again', async () => (await readiness().catch(String)) === '200 ok');
    await until('nginx serves', () => pod.get('/ping').catch(() => false));
    const after = await Promise.all([pod.get('/ping'), pod.get('/?id=after')]);
    expect(after.map(({ status, headers }) => [status, headers.connection])).toEqual(Array(2).fill([200, 'close']));
    // Its real drain finds no mark of this one.
    for (const mark of ['forgotten', 'drained', 'drain/over']) expect(existsSync(join(pod.run, mark))).toBe(false);
  },
);

test('kubelet replaces a container beside the workers: its hook has no effect, and ends', async () => {
  pod = await Pod.start(SHORTEST);
  // As a drain leaves it that was taken back while HAProxy was away.
  writeFileSync(join(pod.marks, 'over'), '');
  const hook = pod.waitForDrain(0);
  expect(await readiness()).toBe('200 ok');
  expect((await pod.get('/?id=meanwhile')).status).toBe(200);
  expect(await hook).toBe('not draining');
});

test('SIGTERM ends an nginx that still reads its configuration', async () => {
  pod = await Pod.start({ workersPerPod: 1 });
  // A file that nginx includes and that nobody writes.
  await docker('exec', pod.nginx, 'mkfifo', '/tmp/listen-ipv6-never.conf');
  await pod.killProxy(pod.nginx, 'nginx', { withChildren: true });
  const find = ['sh', '-c', 'grep -l "^nginx$" /proc/[0-9]*/comm'];
  await until('the next one is there', () => docker('exec', pod.nginx, ...find).catch(() => false));
  await terminate(pod.nginx);
});
