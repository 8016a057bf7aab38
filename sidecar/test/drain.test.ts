/** A pod that is to stop, step by step as kubelet does it. */
import http from 'node:http';
import net from 'node:net';
import { docker } from '../../e2e/harness/engine/docker.ts';
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { stopping } from './drain.ts';

let pod: Pod;
afterEach(() => pod?.stop());
const { preStop, exitCode, terminate, untilRefused, readiness } = stopping(() => pod);

test('nothing is lost: it serves through the delay, finishes, then everything ends with code 0', async () => {
  pod = await Pod.start({ workersPerPod: 1, drain: { delay: '5s' }, timeouts: { clientBody: '120s' } });
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  expect((await pod.get('/?id=before', { agent })).headers.connection).toBe('keep-alive');

  const slow = net.connect(pod.port(PORTS.http), '127.0.0.1');
  slow.write('POST /?id=slow-body HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\n12345');
  // A program in a worker cannot end the drain, nor begin one, whoever it is.
  for (const mark of ['begun', 'over']) {
    const forged = docker('exec', '--user', '0', pod.workers[0] ?? '', 'touch', `/corelane-drain/${mark}`);
    await expect(forged).rejects.toThrow(/Read-only file system/);
  }
  let hooksDone = false;
  const hooks = preStop();
  // A container beside the worker has the same hook, and a user of its own.
  const beside = pod.waitForDrain(0, '--user', '4711:4711');
  const released = Promise.race([hooks.workers, beside]).then(() => {
    hooksDone = true;
  });
  await until('not ready', async () => (await readiness()) === '503 draining');
  // For a while, of the delay: nginx' hook begins some time after HAProxy's.
  for (let look = 0; look < 20; look += 1)
    expect(await pod.get('/ping')).toMatchObject({ status: 503, headers: { 'x-corelane-error': 'draining' } });

  const during = await pod.get('/?id=during', { agent, method: 'POST', body: 'b'.repeat(100_000) });
  expect(during).toMatchObject({ status: 200, headers: { connection: 'close' } });
  expect(JSON.parse(during.body)).toMatchObject({ method: 'POST', bytes: 100_000 });

  // Past the delay: one render and one body that is still arriving hold the workers.
  const last = pod.get('/?hold=1&id=last');
  await pod.begun('last');
  await untilRefused();
  expect(hooksDone).toBe(false);
  pod.release('last');
  expect((await last).status).toBe(200);
  // HAProxy is idle now, nginx is not. That nothing happens can only be seen by looking for a while (20 polls).
  await new Promise((resolve) => setTimeout(resolve, 1000));
  expect(hooksDone).toBe(false);
  const answer = new Promise<string>((resolve) => slow.once('data', (data) => resolve(data.toString())));
  slow.write('67890');
  expect(await answer).toMatch(/^HTTP\/1.1 200 /);

  await hooks.proxies;
  await released;
  expect([...(await hooks.workers), await beside]).toEqual(['drained', 'drained']);
  expect((await pod.state(pod.nginx)).Running).toBe(true); // nobody may take it for a crash
  expect(await terminate(pod.workers[0] ?? '')).toBe(0);
  expect(await terminate(pod.nginx)).toBe(0);
  expect(await terminate(pod.haproxy)).toBe(0);
});

test('handlers whose clients have left are waited for as those with a client', async () => {
  const api = { name: 'api', match: [{ pathPrefix: '/api' }], concurrency: 1 };
  pod = await Pod.start({ workersPerPod: 1, drain: { delay: '1s' }, classes: [api] });
  const leave = new AbortController();
  const pay = (path: string) => pod.get(path, { method: 'POST', body: 'x', signal: leave.signal });
  const left = ['/?hold=1&id=payment', '/api?hold=1&id=export'].map((path) => pay(path).catch(() => 'gone'));
  await Promise.all(['payment', 'export'].map((id) => pod.begun(id)));
  leave.abort();
  expect(await Promise.all(left)).toEqual(['gone', 'gone']);
  let hooksDone = false;
  const hooks = preStop();
  const released = hooks.workers.then(() => {
    hooksDone = true;
  });
  await hooks.proxies;
  // nginx and HAProxy have nothing left. That the pod waits all the same can only be seen by looking for a while.
  for (const id of ['payment', 'export']) {
    await new Promise((resolve) => setTimeout(resolve, 2000));
    expect(hooksDone).toBe(false);
    expect(pod.events({ event: 'end', id })).toEqual([]);
    pod.release(id);
    await until('it has come to its end', () => pod.events({ event: 'end', id })[0]);
  }
  await released;
  expect(await hooks.workers).toEqual(['drained']);
});

test('SIGTERM without a drain still finishes what has begun', async () => {
  pod = await Pod.start({ workersPerPod: 1 });
  const last = pod.get('/?hold=1&id=last');
  await pod.begun('last');
  const proxies = [pod.nginx, pod.haproxy];
  await Promise.all(proxies.map((proxy) => docker('kill', '--signal', 'TERM', proxy)));
  // That nothing is dropped can only be seen by looking for a while, as long as a proxy that drops it takes to end.
  await new Promise((resolve) => setTimeout(resolve, 2000));
  pod.release('last');
  expect((await last).status).toBe(200);
  expect(await Promise.all(proxies.map(exitCode))).toEqual([0, 0]);
});
