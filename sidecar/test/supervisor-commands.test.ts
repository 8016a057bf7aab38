/** What a worker container may run: launchers, shells, CommonJS, other languages, programs that never come up. */

import { docker, logs } from '../../e2e/harness/engine/docker.ts';
import { Pod, until, type WorkerOptions } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import type { RenderServiceSpecInput } from '../../operator/src/api/spec.ts';

let pod: Pod;
afterEach(() => pod?.stop());

const one = (options: WorkerOptions & { workers?: boolean }, input: Partial<RenderServiceSpecInput> = {}) =>
  Pod.start({ workersPerPod: 1, watchdog: { stallTimeout: '2s' }, queue: { timeout: '60s' }, ...input }, options);
const container = () => pod.workers[0] ?? '';

/** SIGTERM as kubelet sends it, and the exit code. */
async function terminate(): Promise<number> {
  await docker('kill', '--signal', 'TERM', container());
  await until('the container ends', async () => !(await pod.state(container())).Running);
  return (await pod.state(container())).ExitCode;
}

/** The server process as it has announced itself last. */
function server(): number {
  return pod.events({ event: 'up' }).at(-1)?.pid ?? 0;
}

test('SIGTERM reaches the worker, and its exit code comes out', async () => {
  pod = await one({ env: { EXIT_CODE: '7' } });
  expect(await terminate()).toBe(7);
  expect(pod.events({ event: 'sigterm' })).toHaveLength(1);
  expect(pod.events({ event: 'up' })).toHaveLength(1);
});

test('a worker that is told to stop takes nothing new while it finishes', async () => {
  pod = await one({ env: { STOP_AFTER_MS: '1500' } });
  await docker('kill', '--signal', 'TERM', container());
  await until('HAProxy has taken it out', async () => !(await pod.isUp(0)));
  expect((await pod.state(container())).Running).toBe(true);
  await until('the container ends', async () => !(await pod.state(container())).Running);
});

test('a worker that somebody debugs is not killed: a break point looks like a stuck event loop', async () => {
  pod = await one({}, { watchdog: { stallTimeout: '1s' } });
  await pod.kill(0, server(), 'USR1');
  await until('its inspector is open', async () => (await logs(container())).includes('Debugger listening'));
  // Does not block: the worker tells its supervisor meanwhile.
  await pod.get('/?id=before&ms=400');
  expect((await pod.get('/?id=break-point&block=2000', { method: 'POST' })).status).toBe(200);
  expect(await pod.runtimeMetric(0, 'corelane_worker_stalls_total')).toBe(0);
});

test('npm start: the server below npm is watched, gets the signals and comes back', async () => {
  pod = await one({ command: ['npm', '--prefix', '/app/npm', 'start'], env: { npm_config_cache: '/tmp' } });
  const started = await pod.startedAt(container());
  const first = server();
  const began = performance.now();
  await pod.kill(0, first, 'KILL');
  await until('a new one is up', () => server() !== first);
  console.log(`npm start: listening again after ${Math.round(performance.now() - began)} ms`);
  expect((await pod.get('/?id=after-kill', { method: 'POST' })).status).toBe(200);

  expect((await pod.get('/?id=loop&loop=1', { method: 'POST' })).status).toBe(502);
  expect((await pod.get('/?id=after-loop', { method: 'POST' })).status).toBe(200);
  expect(await pod.runtimeMetric(0, 'corelane_worker_stalls_total')).toBe(1);
  const left = await pod.processes(0);
  expect(left.filter(({ state }) => state.startsWith('Z'))).toEqual([]);
  expect(left.filter(({ args }) => args.includes('worker.mjs') && args.startsWith('node'))).toHaveLength(1);
  expect(await pod.startedAt(container())).toBe(started);
  await terminate();
  expect(pod.events({ event: 'sigterm' })).toHaveLength(1);
});

test('a launcher that starts its server again: a stop ends both', async () => {
  pod = await one({ command: ['node', '/app/respawn.cjs'] });
  const first = server();
  await pod.kill(0, first, 'KILL');
  await until('a new one is up', () => server() !== first);
  expect((await pod.get('/?id=after-kill', { method: 'POST' })).status).toBe(200);
  expect(await terminate()).toBe(0);
});

test('a launcher that starts its server again: a recycled worker is replaced once, and nothing is lost', async () => {
  pod = await one({ command: ['node', '/app/respawn.cjs'] }, { runtime: { recycle: { requests: 20 } } });
  const recycles = () => pod.runtimeMetric(0, 'corelane_worker_recycles_total').catch(() => 0);
  const statuses = new Set<number>();
  let isOver = false;
  // Several, so that the worker always has one.
  const clients = [0, 1, 2].map(async () => {
    while (!isOver) statuses.add((await pod.get('/?ms=50', { method: 'POST' })).status);
  });
  await until('it is recycled', async () => (await recycles()) > 0);
  isOver = true;
  await Promise.all(clients);
  expect(statuses).toEqual(new Set([200]));
  // Not "up" at once: that one would be killed as the one that has not ended, in the midst of a render.
  const events = (await pod.supervisorLog(0)).map(({ event, reason = '' }) => `${event} ${reason}`.trim());
  expect(events.slice(0, 4)).toEqual(['up', 'recycle requests', 'restart recycled', 'up']);
});

test('a server that listens twice renders', async () => {
  pod = await one({ env: { LISTENS_TWICE: '1' } });
  expect((await pod.get('/?id=twice', { method: 'POST' })).status).toBe(200);
});

test('nobody ends a worker by what he asks its runtime for', async () => {
  pod = await one({});
  const started = await pod.startedAt(container());
  const ask = `for (const target of ['//', 'http://a:99999/metrics']) {
      const socket = require('node:net').connect(${PORTS.firstWorkerRuntime}, '127.0.0.1');
      socket.end('GET ' + target + ' HTTP/1.1\\r\\n\\r\\n').on('error', () => {}).resume();
    }`;
  await docker('exec', '--env', 'NODE_OPTIONS=', container(), 'node', '-e', ask);
  expect((await pod.get('/?id=after', { method: 'POST' })).status).toBe(200);
  expect(await pod.startedAt(container())).toBe(started);
  expect((await pod.state(container())).Running).toBe(true);
});

test('a shell that runs a script before the server: the script ends as it would without Corelane', async () => {
  const script =
    'node /app/once.cjs first || exit 1; ONCE_EXIT_CODE=9 node /app/once.cjs || echo "code $?"; node /app/worker.mjs; exit $?';
  pod = await one({ command: ['sh', '-c', script], env: { EXIT_CODE: '3' } });
  const output = await logs(container());
  expect(output).toContain('once ["first"]');
  expect(output).toContain('code 9');
  const first = server();
  await pod.kill(0, first, 'KILL');
  await until('a new one is up', () => server() !== first);
  expect((await pod.get('/?id=after-kill', { method: 'POST' })).status).toBe(200);
  expect((await logs(container())).match(/once/g)).toHaveLength(2);
});

test('CommonJS, listening on the name of the pod: only loopback is open', async () => {
  pod = await one({ command: ['node', '--title=renders', '/app/server.cjs', 'an argument'] });
  const { body } = await pod.get('/');
  expect(JSON.parse(body)).toMatchObject({ main: true, argv: ['an argument'] });
  const sockets = await docker('exec', container(), 'cat', '/proc/net/tcp', '/proc/net/tcp6');
  const listening = sockets.split('\n').filter((line) => / 0A /.test(line));
  const port = PORTS.firstWorker.toString(16).toUpperCase();
  expect(listening.map((line) => line.trim().split(/\s+/)[1]).filter((address) => address?.endsWith(port))).toEqual([
    `0100007F:${port}`,
  ]);
});

test('a program that ends before it listens: back-off, down, and SIGTERM ends it', async () => {
  pod = await one({ workers: false });
  await pod.startWorkers({ env: { NEVER_LISTENS: '1' } });
  const backoff = () => pod.runtimeMetric(0, 'corelane_worker_backoff_seconds').catch(() => 0);
  await until('the back-off grows', async () => (await backoff()) >= 0.8);
  expect(await pod.isUp(0)).toBe(false);
  expect(await pod.runtimeMetric(0, 'corelane_worker_up')).toBe(0);
  const waits = (await pod.supervisorLog(0)).filter(({ event }) => event === 'restart').map(({ afterMs }) => afterMs);
  expect(waits.slice(0, 5)).toEqual([0, 100, 200, 400, 800]);
  expect((await pod.state(container())).Running).toBe(true);
  await terminate();
});

test('a server without Node.js works; where nothing is told, HAProxy looks at the port', async () => {
  pod = await one({ command: ['perl', '/app/server.pl'] });
  for (let n = 0; n < 20; n += 1) expect((await pod.get('/')).body).toBe('perl');
  await docker('kill', '--signal', 'KILL', container());
  await until('it is down', async () => !(await pod.isUp(0)));
  await docker('start', container());
  expect((await pod.get('/')).body).toBe('perl');
});

test('a Node.js process without NODE_OPTIONS works', async () => {
  pod = await one({ command: ['env', '-u', 'NODE_OPTIONS', 'node', '/app/worker.mjs'] });
  expect((await pod.get('/?id=bare', { method: 'POST' })).status).toBe(200);
  expect(await pod.supervisorLog(0)).toEqual([]);
  await pod.kill(0, 1, 'TERM');
  await until('the container ends with its process', async () => !(await pod.state(container())).Running);
});

test('runtime.instrument: false leaves the worker alone', async () => {
  pod = await one({}, { runtime: { instrument: false }, watchdog: {} });
  expect((await pod.get('/?id=plain', { method: 'POST' })).status).toBe(200);
  expect(
    await docker(
      'exec',
      container(),
      'sh',
      '-c',
      'ls -d /corelane; env | grep -E "CORELANE|NODE_OPTIONS" || echo nothing',
    ).catch((error) => String(error.stdout)),
  ).toMatch(/^CORELANE_DEPLOYMENT_ID=r1$/); // which is for the application
  expect(await pod.supervisorLog(0)).toEqual([]);
  // Nobody watches, and the page of metrics says so; of the workers it knows nothing more.
  const { status, body } = await pod.get('/corelane/metrics', { port: PORTS.stats });
  expect([status, body.includes('corelane_workers{state="watched"} 0\n')]).toEqual([200, true]);
  expect(body).not.toContain('corelane_worker_');
});
