/**
 * The runtime port of a supervisor, as bytes: what somebody gets who can only make the program fetch a URL, what many
 * or endless connections take, and that whoever takes something of the worker gives it back.
 */
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import net from 'node:net';
import { fileURLToPath } from 'node:url';
import { until } from '../../e2e/harness/engine/pod.ts';
import { get, Program } from './program.ts';

const WORKER = fileURLToPath(new URL('apps/worker.mjs', import.meta.url));
/** So that a snapshot takes a second or more, in which its event loop stands still. */
const OBJECTS = 60_000;
const MEANT = { 'X-Corelane-Runtime': 'true' };

let program: Program;
beforeAll(async () => {
  program = new Program();
  await program.start(process.execPath, [WORKER], { OBJECTS: String(OBJECTS), TICKS: '1' });
});
beforeEach(() => until('it is up', isUp));
afterAll(() => program.stop());

/** Sends bytes and gives all that comes back until the end of the connection. */
function talk(...parts: string[]): Promise<string> {
  const socket = net.connect(program.runtimePort, '127.0.0.1');
  let received = '';
  socket.setEncoding('latin1').on('data', (text) => (received += text));
  socket.on('error', () => {}); // a reset is an end, too
  for (const part of parts) socket.write(part);
  return new Promise((resolve) => socket.once('close', () => resolve(received)));
}

/** What HAProxy hears at once: a first question does not wait. */
const ask = async () => (await talk('corelane-agent 1\n')).trim();
const isUp = async () => (await program.health()).status === 200;
const pid = () => program.events('up').at(-1)?.pid;

/** Begins with a page, and leaves as the caller wants it. */
function client(path: string): net.Socket {
  const socket = net.connect(program.runtimePort, '127.0.0.1');
  socket.on('error', () => {});
  const headers = ['Host: localhost', ...Object.entries(MEANT).map(([name, value]) => `${name}: ${value}`)];
  socket.write(`GET ${path} HTTP/1.1\r\n${headers.join('\r\n')}\r\n\r\n`);
  return socket;
}

const GET_HEAP = 'GET /heap HTTP/1.1\r\n';
const LOCAL = 'Host: 127.0.0.1:9102\r\n';
const HEADER = 'X-Corelane-Runtime: true\r\n';
const refused: [name: string, bytes: string[]][] = [
  ['a URL', [`${GET_HEAP}${LOCAL}\r\n`]],
  ['a URL, HTTP/1.0', ['GET /heap HTTP/1.0\r\n\r\n']],
  ['a URL in absolute form', [`GET http://worker/heap HTTP/1.1\r\n${LOCAL}\r\n`]],
  ['another value', [`${GET_HEAP}${LOCAL}X-Corelane-Runtime: 1\r\n\r\n`]],
  ['the header twice', [`${GET_HEAP}${LOCAL}${HEADER}${HEADER}\r\n`]],
  ['the name of a host that leads here (DNS rebinding)', [`${GET_HEAP}Host: evil.example:9102\r\n${HEADER}\r\n`]],
  ['no Host', [`${GET_HEAP}${HEADER}\r\n`]],
  ['two Hosts', [`${GET_HEAP}${LOCAL}${LOCAL}${HEADER}\r\n`]],
  ['a body', [`${GET_HEAP}${LOCAL}${HEADER}Content-Length: 5\r\n\r\n`]],
  ['a body in chunks', [`${GET_HEAP}${LOCAL}${HEADER}Transfer-Encoding: chunked\r\n\r\n`]],
  ['line breaks in a URL: a header', [`${GET_HEAP}${HEADER}X-Rest: HTTP/1.1\r\n${LOCAL}\r\n`]],
  ['line breaks in a URL: a line of its own', [`${GET_HEAP}${HEADER} HTTP/1.1\r\n${LOCAL}\r\n`]],
  ['a header that is continued', [`${GET_HEAP}${LOCAL}X-A: b\r\n X-Corelane-Runtime: true\r\n\r\n`]],
  ['a blank before the colon', [`${GET_HEAP}${LOCAL}X-Corelane-Runtime : true\r\n\r\n`]],
  ['a promise', [`GET /begun/a?ms=1&try=a HTTP/1.1\r\n${LOCAL}\r\n`]],
  ['a profile', [`GET /profile?seconds=1 HTTP/1.1\r\n${LOCAL}\r\n`]],
  ['what strangers have asked for', [`GET /now HTTP/1.1\r\n${LOCAL}\r\n`]],
  ['a new process', [`GET /recycle HTTP/1.1\r\n${LOCAL}\r\n`]],
];
test.each(refused)('no heap snapshot, profile, promise or new process for %s', async (_name, bytes) => {
  const answer = await talk(...bytes);
  expect(answer).toMatch(/^HTTP\/1\.1 403 /);
  expect(answer).toMatch(
    /curl -H 'X-Corelane-Runtime: true' http:\/\/127\.0\.0\.1:[0-9]+\/(heap|profile|recycle|now|begun\/a);/,
  );
  expect(await ask()).toBe('up');
});

test('no heap snapshot for line breaks in a URL that end the request', async () => {
  expect(await talk(`${GET_HEAP}${LOCAL}${HEADER}\r\n HTTP/1.1\r\n${LOCAL}\r\n`)).toBe('');
  expect(await ask()).toBe('up');
});

test('whoever sets the header gets them; the others need none', async () => {
  const { status, body } = await get(program.runtimePort, '/profile?seconds=0.1', MEANT);
  expect([status, Object.keys(JSON.parse(body))]).toEqual([200, expect.arrayContaining(['nodes'])]);
  const statuses = ['/metrics', '/stalls', '/healthz', '/begun/a?ms=0', '/why/a', '/none'].map(
    async (path) => (await get(program.runtimePort, path)).status,
  );
  expect(await Promise.all(statuses)).toEqual([200, 200, 200, 403, 404, 404]);
});

/** When the event loop of the worker stood still longest, on the clock of its notes. */
function longestPause(): { begin: number; end: number } {
  const ticks = program.events('tick').map(({ at }) => at);
  const pauses = ticks.slice(1).map((end, index) => ({ begin: ticks[index] as number, end }));
  return pauses.reduce((longest, pause) => (pause.end - pause.begin > longest.end - longest.begin ? pause : longest));
}

test('a heap snapshot whose client leaves while V8 makes it: down until V8 is through, and up then', async () => {
  const before = pid();
  const socket = client('/heap');
  await until('it is down', async () => (await ask()) === 'down #draining');
  // The head of the answer comes when the thread has begun.
  await once(socket, 'data');
  const lastTick = () => program.events('tick').at(-1)?.at ?? 0;
  await until('the event loop stands still', () => Date.now() - lastTick() > 300);
  socket.destroy();
  await until('it is up again', isUp);
  const upAt = performance.timeOrigin + performance.now();
  const { begin, end } = await until('the event loop turns', () => (lastTick() > upAt ? longestPause() : undefined));
  expect(end - begin).toBeGreaterThan(300);
  expect(upAt).toBeGreaterThan(end);
  expect(pid()).toBe(before);
  expect((await get(program.port, '/')).status).toBe(200);
});

test('a heap snapshot whose client leaves before the worker is free: up again', async () => {
  const render = get(program.port, '/?id=busy&hold=1');
  await until('it renders', () => program.events('begin').find(({ id }) => id === 'busy'));
  const socket = client('/heap');
  await until('it is down', async () => (await ask()) === 'down #draining');
  socket.destroy();
  await until('it is up again', isUp);
  program.release('busy');
  expect((await render).status).toBe(200);
  // Nobody takes anything any more.
  expect((await get(program.runtimePort, '/profile?seconds=0.1', MEANT)).status).toBe(200);
});

test('a heap snapshot whose client does not read: the worker is back when V8 is through', async () => {
  const socket = client('/heap');
  await until('it is down', async () => (await ask()) === 'down #draining');
  socket.pause();
  await until('it is up again', isUp);
  expect(socket.destroyed).toBe(false);
  expect(longestPause().end - longestPause().begin).toBeGreaterThan(300);
  socket.destroy();
  await until('another one may come', async () => {
    const { status } = await get(program.runtimePort, '/profile?seconds=0.1', MEANT);
    return status === 200;
  });
});

test('a heap snapshot whose process dies in its midst is not taken for a whole one', async () => {
  const before = pid() ?? 0;
  const answer = get(program.runtimePort, '/heap', MEANT);
  const failed = expect(answer).rejects.toThrow(/aborted|hang up|ECONNRESET/);
  const lastTick = () => program.events('tick').at(-1)?.at ?? 0;
  await until('it is down', async () => (await ask()) === 'down #draining');
  await until('the event loop stands still', () => Date.now() - lastTick() > 300);
  process.kill(before, 'SIGKILL');
  await failed;
  await program.next(before);
});

test('a profile whose client leaves is over', async () => {
  const socket = client('/profile?seconds=60');
  await until('it is being taken', async () => {
    return (await get(program.runtimePort, '/profile?seconds=0.1', MEANT)).status === 409;
  });
  socket.destroy();
  await until('another one may come', async () => {
    return (await get(program.runtimePort, '/profile?seconds=0.1', MEANT)).status === 200;
  });
});

/** Open files of the supervisor. */
const files = () => readdirSync(`/proc/${program.process?.pid}/fd`).length;

test('many silent connections are bounded, and HAProxy is heard and answered', async () => {
  const before = files();
  const sockets = Array.from({ length: 2_000 }, () =>
    net.connect(program.runtimePort, '127.0.0.1').on('error', () => {}),
  );
  await Promise.all(sockets.map((socket) => once(socket, 'connect')));
  expect(await ask()).toBe('up');
  expect(files() - before).toBeLessThan(200);
  for (const socket of sockets) socket.destroy();
});

const GARBAGE = 'x'.repeat(64_000);
const endless: [name: string, begin: string][] = [
  ['a line without end', 'GET /'],
  ['a header without end', 'GET /metrics HTTP/1.1\r\nX-A: '],
  ['headers without end', 'GET /metrics HTTP/1.1\r\nX-A: b\r\n'],
  ['a verb without end', 'corelane-agent '],
  ['more behind a question', 'corelane-agent 1\n'],
  ['more behind a request', 'GET /metrics HTTP/1.1\r\n\r\n'],
];
test.each(endless)('%s ends the connection, and not the worker', async (_name, begin) => {
  // It is closed for its bytes, and not for its time.
  const silent = net.connect(program.runtimePort, '127.0.0.1').on('error', () => {});
  await once(silent, 'connect');
  await talk(begin, GARBAGE, GARBAGE);
  expect(silent.closed).toBe(false);
  silent.destroy();
  expect(await ask()).toBe('up');
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

const SENSELESS = [
  'corelane-worker wrong 1 1\n',
  'corelane-worker\n',
  'corelane-watch wrong 1\n',
  'corelane-bulk wrong 1\n',
  'corelane-guarded-not\n',
  'corelane-agent 1000000000\n',
  'corelane-agent 0.5\n',
  'corelane-agent Infinity\n',
  'GET\n\n',
  'GET // HTTP/1.1\r\n\r\n',
  'GET /begun/%ff?ms=1e999 HTTP/1.1\r\n\r\n',
  'POST /heap HTTP/1.1\r\n\r\n',
  '\0\xff\n',
];
test('what makes no sense, or comes without the token, changes nothing', async () => {
  const before = pid();
  await talk('corelane-agent 1\n');
  for (const bytes of SENSELESS) await talk(bytes);
  const { body } = await get(program.runtimePort, '/metrics');
  expect(await ask()).toBe('up');
  expect(body).toContain('corelane_worker_concurrency_limit{worker="0"} 1\n');
  expect(pid()).toBe(before);
});
