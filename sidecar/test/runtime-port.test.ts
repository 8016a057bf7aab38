/**
 * The runtime port of a supervisor, as bytes: what somebody gets who can only make the program fetch a URL, what
 * endless requests do, and that whoever takes something of the worker gives it back.
 */
import { once } from 'node:events';
import net from 'node:net';
import { until } from '../../e2e/harness/engine/pod.ts';
import { get } from './program.ts';
import { MEANT, RuntimePort } from './runtime-port.ts';

// The watchdog is not what this is about.
const port = new RuntimePort(30_000);
const { program } = port;
beforeAll(() => port.start());
beforeEach(() => port.untilUp());
afterAll(() => program.stop());

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
  ['stacks, paths and ids', [`GET /stalls HTTP/1.1\r\n${LOCAL}\r\n`]],
  ['them by a longer way', [`GET /stalls/summary/.. HTTP/1.1\r\n${LOCAL}\r\n`]],
  ['what a request died of', [`GET /why/a HTTP/1.1\r\n${LOCAL}\r\n`]],
  ['a new process', [`GET /recycle HTTP/1.1\r\n${LOCAL}\r\n`]],
];
test.each(refused)(
  'a page that costs or tells something is not for who cannot set a header: %s',
  async (_name, bytes) => {
    const answer = await port.talk(...bytes);
    expect(answer).toMatch(/^HTTP\/1\.1 403 /);
    expect(answer).toMatch(
      /curl -H 'X-Corelane-Runtime: true' http:\/\/127\.0\.0\.1:[0-9]+\/(heap|profile|recycle|now|stalls\/?|begun\/a|why\/a);/,
    );
    expect(await port.ask()).toBe('up');
  },
);

test('no heap snapshot for line breaks in a URL that end the request', async () => {
  expect(await port.talk(`${GET_HEAP}${LOCAL}${HEADER}\r\n HTTP/1.1\r\n${LOCAL}\r\n`)).toBe('');
  expect(await port.ask()).toBe('up');
});

test('whoever sets the header gets them; the others need none', async () => {
  const { status, body } = await get(program.runtimePort, '/profile?seconds=0.1', MEANT);
  expect([status, Object.keys(JSON.parse(body))]).toEqual([200, expect.arrayContaining(['nodes'])]);
  const statuses = ['/metrics', '/stalls/summary', '/healthz', '/none'].map(
    async (path) => (await get(program.runtimePort, path)).status,
  );
  expect(await Promise.all(statuses)).toEqual([200, 200, 200, 403]);
  const meant = ['/stalls', '/why/a', '/none'].map(
    async (path) => (await get(program.runtimePort, path, MEANT)).status,
  );
  expect(await Promise.all(meant)).toEqual([200, 404, 404]);
});

test('a heap snapshot whose client leaves before the worker is free: up again', async () => {
  const render = get(program.port, '/?id=busy&hold=1');
  await until('it renders', () => program.events('begin').find(({ id }) => id === 'busy'));
  const socket = port.client('/heap');
  await until('it is down', async () => (await port.ask()) === 'down #draining');
  socket.destroy();
  await until('it is up again', () => port.isUp());
  program.release('busy');
  expect((await render).status).toBe(200);
  // Nobody takes anything any more.
  expect((await get(program.runtimePort, '/profile?seconds=0.1', MEANT)).status).toBe(200);
});

test('a profile whose client leaves is over', async () => {
  const socket = port.client('/profile?seconds=60');
  await until('it is being taken', async () => {
    return (await get(program.runtimePort, '/profile?seconds=0.1', MEANT)).status === 409;
  });
  socket.destroy();
  await until('another one may come', async () => {
    return (await get(program.runtimePort, '/profile?seconds=0.1', MEANT)).status === 200;
  });
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
  await port.talk(begin, GARBAGE, GARBAGE);
  expect(silent.closed).toBe(false);
  silent.destroy();
  expect(await port.ask()).toBe('up');
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
  const before = port.pid();
  await port.talk('corelane-agent 1\n');
  for (const bytes of SENSELESS) await port.talk(bytes);
  const { body } = await get(program.runtimePort, '/metrics');
  expect(await port.ask()).toBe('up');
  expect(body).toContain('corelane_worker_concurrency_limit{worker="0"} 1\n');
  expect(port.pid()).toBe(before);
});
