/**
 * More of what a worker container may run: launchers, shells, programs that never come up. In load: workers that
 * get stuck, stops that last 1.5 s, back-offs, and a pod for each.
 */
import { docker, logs } from '../../e2e/harness/engine/docker.ts';
import { type Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { figure } from '../../operator/test/support/figure.ts';
import { containerOf, one, terminate } from './supervisor-commands.ts';

let pod: Pod;
afterEach(() => pod?.stop());

/** The server process as it has announced itself last. */
function server(): number {
  return pod.events({ event: 'up' }).at(-1)?.pid ?? 0;
}

test('a worker that is told to stop takes nothing new while it finishes', async () => {
  pod = await one({ env: { STOP_AFTER_MS: '1500' } });
  await docker('kill', '--signal', 'TERM', containerOf(pod));
  await until('HAProxy has taken it out', async () => !(await pod.isUp(0)));
  expect((await pod.state(containerOf(pod))).Running).toBe(true);
  await until('the container ends', async () => !(await pod.state(containerOf(pod))).Running);
});

test('a worker that somebody debugs is not killed: a break point looks like a stuck event loop', async () => {
  pod = await one({}, { watchdog: { stallTimeout: '1s' } });
  await pod.kill(0, server(), 'USR1');
  await until('its inspector is open', async () => (await logs(containerOf(pod))).includes('Debugger listening'));
  // Does not block: the worker tells its supervisor meanwhile.
  await pod.get('/?id=before&ms=400');
  expect((await pod.get('/?id=break-point&block=2000', { method: 'POST' })).status).toBe(200);
  expect(await pod.runtimeMetric(0, 'corelane_worker_stalls_total')).toBe(0);
});

test('npm start: the server below npm is watched, gets the signals and comes back', async () => {
  pod = await one({ command: ['npm', '--prefix', '/app/npm', 'start'], env: { npm_config_cache: '/tmp' } });
  const started = await pod.startedAt(containerOf(pod));
  const first = server();
  const began = performance.now();
  await pod.kill(0, first, 'KILL');
  await until('a new one is up', () => server() !== first);
  figure('npm start: time until a killed server listens again', performance.now() - began, 'ms');
  expect((await pod.get('/?id=after-kill', { method: 'POST' })).status).toBe(200);

  expect((await pod.get('/?id=loop&loop=1', { method: 'POST' })).status).toBe(502);
  expect((await pod.get('/?id=after-loop', { method: 'POST' })).status).toBe(200);
  expect(await pod.runtimeMetric(0, 'corelane_worker_stalls_total')).toBe(1);
  const left = await pod.processes(0);
  expect(left.filter(({ state }) => state.startsWith('Z'))).toEqual([]);
  expect(left.filter(({ args }) => args.includes('worker.mjs') && args.startsWith('node'))).toHaveLength(1);
  expect(await pod.startedAt(containerOf(pod))).toBe(started);
  await terminate(pod);
  expect(pod.events({ event: 'sigterm' })).toHaveLength(1);
});

test('a launcher that starts its server again: a stop ends both', async () => {
  pod = await one({ command: ['node', '/app/respawn.cjs'] });
  const first = server();
  await pod.kill(0, first, 'KILL');
  await until('a new one is up', () => server() !== first);
  expect((await pod.get('/?id=after-kill', { method: 'POST' })).status).toBe(200);
  expect(await terminate(pod)).toBe(0);
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
  const started = await pod.startedAt(containerOf(pod));
  const ask = `for (const target of ['//', 'http://a:99999/metrics']) {
      const socket = require('node:net').connect(${PORTS.firstWorkerRuntime}, '127.0.0.1');
      socket.end('GET ' + target + ' HTTP/1.1\\r\\n\\r\\n').on('error', () => {}).resume();
    }`;
  await docker('exec', '--env', 'NODE_OPTIONS=', containerOf(pod), 'node', '-e', ask);
  expect((await pod.get('/?id=after', { method: 'POST' })).status).toBe(200);
  expect(await pod.startedAt(containerOf(pod))).toBe(started);
  expect((await pod.state(containerOf(pod))).Running).toBe(true);
});

test('a shell that runs a script before the server: the script ends as it would without Corelane', async () => {
  const script =
    'node /app/once.cjs first || exit 1; ONCE_EXIT_CODE=9 node /app/once.cjs || echo "code $?"; node /app/worker.mjs; exit $?';
  pod = await one({ command: ['sh', '-c', script], env: { EXIT_CODE: '3' } });
  const output = await logs(containerOf(pod));
  expect(output).toContain('once ["first"]');
  expect(output).toContain('code 9');
  const first = server();
  await pod.kill(0, first, 'KILL');
  await until('a new one is up', () => server() !== first);
  expect((await pod.get('/?id=after-kill', { method: 'POST' })).status).toBe(200);
  expect((await logs(containerOf(pod))).match(/once/g)).toHaveLength(2);
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
  expect((await pod.state(containerOf(pod))).Running).toBe(true);
  await terminate(pod);
});

test('a start script that takes NODE_OPTIONS away from its server: the log says that it is not watched', async () => {
  const script = 'NODE_OPTIONS= node /app/worker.mjs';
  pod = await one({ command: ['node', '/app/script.cjs'], env: { SCRIPT: script } });
  expect((await pod.get('/?id=unwatched', { method: 'POST' })).status).toBe(200);
  const up = (await pod.supervisorLog(0)).find(({ event }) => event === 'up');
  expect(up).toMatchObject({ watched: false, message: expect.stringContaining('NODE_OPTIONS="$NODE_OPTIONS --flag"') });
});

test('the log names the memory limit that has killed a worker', async () => {
  pod = await one({ options: ['--memory', '200m', '--memory-swap', '200m'] });
  expect((await pod.get('/?id=memory&keep=400', { method: 'POST' })).status).toBe(502);
  const restart = await until('it starts again', async () =>
    (await pod.supervisorLog(0)).find(({ event }) => event === 'restart'),
  );
  expect(restart).toMatchObject({ signal: 'SIGKILL', killedBy: 'the memory limit of the container' });
});

test('a Node.js process without NODE_OPTIONS works', async () => {
  pod = await one({ command: ['env', '-u', 'NODE_OPTIONS', 'node', '/app/worker.mjs'] });
  expect((await pod.get('/?id=bare', { method: 'POST' })).status).toBe(200);
  expect(await pod.supervisorLog(0)).toEqual([]);
  await pod.kill(0, 1, 'TERM');
  await until('the container ends with its process', async () => !(await pod.state(containerOf(pod))).Running);
});
