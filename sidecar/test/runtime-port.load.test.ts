/**
 * The runtime port of a supervisor while V8 makes a heap snapshot, which must take some time; and many or slow
 * connections.
 */
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import net from 'node:net';
import { until } from '../../e2e/harness/engine/pod.ts';
import { figure } from '../../operator/test/support/figure.ts';
import { get } from './program.ts';
import { MEANT, RuntimePort } from './runtime-port.ts';

/** So that a snapshot takes a second or more, in which its event loop stands still. */
const OBJECTS = 60_000;

const port = new RuntimePort();
const { program } = port;
beforeAll(() => port.start({ OBJECTS: String(OBJECTS), TICKS: '1' }));
beforeEach(() => port.untilUp());
afterAll(() => program.stop());

/** When the event loop of the worker stood still longest, on the clock of its notes. */
function longestPause(): { begin: number; end: number } {
  const ticks = program.events('tick').map(({ at }) => at);
  const pauses = ticks.slice(1).map((end, index) => ({ begin: ticks[index] as number, end }));
  return pauses.reduce((longest, pause) => (pause.end - pause.begin > longest.end - longest.begin ? pause : longest));
}

test('a heap snapshot whose client leaves while V8 makes it: down until V8 is through, and up then', async () => {
  const before = port.pid();
  const socket = port.client('/heap');
  await until('it is down', async () => (await port.ask()) === 'down #draining');
  // The head of the answer comes when the thread has begun.
  await once(socket, 'data');
  const lastTick = () => program.events('tick').at(-1)?.at ?? 0;
  await until('the event loop stands still', () => Date.now() - lastTick() > 300);
  socket.destroy();
  await until('it is up again', () => port.isUp());
  const upAt = performance.timeOrigin + performance.now();
  const { begin, end } = await until('the event loop turns', () => (lastTick() > upAt ? longestPause() : undefined));
  figure('event loop blocked by a heap snapshot whose client leaves', end - begin, 'ms', '> 300 ms');
  expect(end - begin).toBeGreaterThan(300);
  expect(upAt).toBeGreaterThan(end);
  expect(port.pid()).toBe(before);
  expect((await get(program.port, '/')).status).toBe(200);
});

test('a heap snapshot whose client does not read: the worker is back when V8 is through', async () => {
  const socket = port.client('/heap');
  await until('it is down', async () => (await port.ask()) === 'down #draining');
  socket.pause();
  await until('it is up again', () => port.isUp());
  expect(socket.destroyed).toBe(false);
  const { begin, end } = longestPause();
  figure('event loop blocked by a heap snapshot that is not read', end - begin, 'ms', '> 300 ms');
  expect(end - begin).toBeGreaterThan(300);
  socket.destroy();
  await until('another one may come', async () => {
    const { status } = await get(program.runtimePort, '/profile?seconds=0.1', MEANT);
    return status === 200;
  });
});

test('a heap snapshot whose process dies in its midst is not taken for a whole one', async () => {
  const before = port.pid() ?? 0;
  const answer = get(program.runtimePort, '/heap', MEANT);
  const failed = expect(answer).rejects.toThrow(/aborted|hang up|ECONNRESET/);
  const lastTick = () => program.events('tick').at(-1)?.at ?? 0;
  await until('it is down', async () => (await port.ask()) === 'down #draining');
  await until('the event loop stands still', () => Date.now() - lastTick() > 300);
  process.kill(before, 'SIGKILL');
  await failed;
  await program.next(before);
});

/** Open files of the supervisor. */
const files = () => readdirSync(`/proc/${program.process?.pid}/fd`).length;

test('many silent connections are bounded, and HAProxy is heard and answered', async () => {
  const before = files();
  const sockets = Array.from({ length: 2_000 }, () =>
    net.connect(program.runtimePort, '127.0.0.1').on('error', () => {}),
  );
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  expect(await port.ask()).toBe('up');
  const opened = files() - before;
  figure('files that a supervisor opens for 2,000 silent connections', opened, '', '< 200');
  expect(opened).toBeLessThan(200);
  for (const socket of sockets) socket.destroy();
});

test('a connection that says something a byte at a time ends', async () => {
  const begins = ['', 'GET /metrics HTTP/1.1\r\nX-A: b\r\n', 'corelane-agent'];
  const sockets = begins.map((begin) => {
    const socket = net.connect(program.runtimePort, '127.0.0.1').on('error', () => {});
    socket.write(begin);
    const drip = setInterval(() => socket.write('x'), 500);
    return socket.once('close', () => clearInterval(drip));
  });
  await until('all have ended', () => sockets.every(({ closed }) => closed)).finally(() => {
    for (const socket of sockets) socket.destroy();
  });
});
