/** What a worker container may run: Node.js, other languages, and what gets no supervisor. */
import { docker, logs } from '../../e2e/harness/engine/docker.ts';
import { type Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { containerOf, one, terminate } from './supervisor-commands.ts';

let pod: Pod;
afterEach(() => pod?.stop());

test('SIGTERM reaches the worker, and its exit code comes out', async () => {
  pod = await one({ env: { EXIT_CODE: '7' } });
  expect(await terminate(pod)).toBe(7);
  expect(pod.events({ event: 'sigterm' })).toHaveLength(1);
  expect(pod.events({ event: 'up' })).toHaveLength(1);
});

test('CommonJS, listening on the name of the pod: only loopback is open', async () => {
  pod = await one({ command: ['node', '--title=renders', '/app/server.cjs', 'an argument'] });
  const { body } = await pod.get('/');
  expect(JSON.parse(body)).toMatchObject({ main: true, argv: ['an argument'] });
  const sockets = await docker('exec', containerOf(pod), 'cat', '/proc/net/tcp', '/proc/net/tcp6');
  const listening = sockets.split('\n').filter((line) => / 0A /.test(line));
  const port = PORTS.firstWorker.toString(16).toUpperCase();
  expect(listening.map((line) => line.trim().split(/\s+/)[1]).filter((address) => address?.endsWith(port))).toEqual([
    `0100007F:${port}`,
  ]);
});

test('a server without Node.js works; where nothing is told, HAProxy looks at the port', async () => {
  pod = await one({ command: ['perl', '/app/server.pl'] });
  for (let n = 0; n < 20; n += 1) expect((await pod.get('/')).body).toBe('perl');
  await docker('kill', '--signal', 'KILL', containerOf(pod));
  await until('it is down', async () => !(await pod.isUp(0)));
  await docker('start', containerOf(pod));
  expect((await pod.get('/')).body).toBe('perl');
});

test("a start script may put options before Corelane's", async () => {
  const script = 'NODE_OPTIONS="-r /app/preload.cjs --max-old-space-size=150 $NODE_OPTIONS" exec node /app/server.cjs';
  // Its port is for one process: the supervisor must not have it.
  const options = { command: ['sh', '-c', script], env: { PRELOAD_PORT: '9464' } };
  pod = await one(options, { runtime: { nodeFlags: ['--max-old-space-size=600'] } });
  expect(JSON.parse((await pod.get('/')).body).heapMib).toBeLessThan(400);
  const events = async () => (await pod.supervisorLog(0)).map(({ event }) => event);
  await until('its log says so', async () => (await events()).includes('up'));
  expect(await events()).toEqual(['up']);
});

test("Node.js' permission model keeps the runtime out: the program is served, and its log says so", async () => {
  const command = ['node', '--permission', '--allow-fs-read=*', '/app/server.cjs'];
  pod = await one({ command, env: { HOSTNAME: '127.0.0.1' } });
  expect((await pod.get('/')).status).toBe(200);
  expect(await logs(containerOf(pod))).toContain('Add --allow-child-process, or set runtime.instrument: false.');
});

test('runtime.instrument: false leaves the worker alone', async () => {
  pod = await one({}, { runtime: { instrument: false }, watchdog: {} });
  expect((await pod.get('/?id=plain', { method: 'POST' })).status).toBe(200);
  expect(await docker('exec', containerOf(pod), 'sh', '-c', 'env | grep -E "CORELANE|NODE_OPTIONS"')).toMatch(
    /^CORELANE_DEPLOYMENT_ID=r1$/,
  ); // which is for the application
  expect(await pod.supervisorLog(0)).toEqual([]);
  // Nobody watches, and the page of metrics says so; of the workers it knows nothing more.
  const { status, body } = await pod.get('/corelane/metrics', { port: PORTS.stats });
  expect([status, body.includes('corelane_workers{state="watched"} 0\n')]).toEqual([200, true]);
  expect(body).not.toContain('corelane_worker_');
});
