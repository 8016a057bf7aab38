/** Errors as the operator's log has them. */
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { PooledKubeConfig } from '../../../src/kube/config.ts';
import { errorLine } from '../../../src/kube/error-line.ts';
import { ApiError, Rest } from '../../../src/kube/rest.ts';

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

function restOf(server: string): Rest {
  const config = new PooledKubeConfig();
  config.loadFromClusterAndUser({ name: 'test', server, skipTLSVerify: true }, { name: 'nobody' });
  open.push(() => config.close());
  return new Rest(config);
}

/** What a call says of an API server that does this with it. */
async function lineOf(answer: (response: ServerResponse) => void, timeoutMs?: number): Promise<string> {
  const server = createServer((_request, response) => answer(response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  open.push(
    () => server.close(),
    () => server.closeAllConnections(),
  );
  const rest = restOf(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  return await rest.request('GET', '/api/v1/pods', { timeoutMs }).then(() => 'no error', errorLine);
}

const SILENT = 'GET /api/v1/pods: no answer within 0.05 s; the API server is overloaded, or the network loses packets';

test('an API server that does not answer', async () => {
  expect(await lineOf(() => {}, 50)).toBe(SILENT);
});

test('one that stops in the middle of its answer', async () => {
  expect(await lineOf((response) => response.writeHead(200).write('{"items": ['), 50)).toBe(SILENT);
});

test('one that closes the connection', async () => {
  expect(await lineOf((response) => response.destroy())).toMatch(
    /^fetch failed: other side closed \(UND_ERR_SOCKET\); is the API server up, and does a NetworkPolicy let the operator/,
  );
});

test('one that is not there', async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  await new Promise((resolve) => server.close(resolve));
  const error = await restOf(`http://${address}`)
    .request('GET', '/')
    .catch((one: unknown) => one);
  expect(errorLine(error)).toBe(
    `fetch failed: connect ECONNREFUSED ${address}; is the API server up, and does a NetworkPolicy let the operator reach it?`,
  );
});

test.each<[string, unknown, string]>([
  [
    'a refusal',
    new ApiError(403, 'Forbidden', 'pods is forbidden: User "a" cannot list'),
    'pods is forbidden: User "a" cannot list (403 Forbidden); are the operator\'s Roles those of its version? Upgrade the chart together with the image',
  ],
  [
    'a kind that is not there',
    new ApiError(404, 'NotFound', 'the server could not find the requested resource'),
    'the server could not find the requested resource (404 NotFound); is the CRD there? kubectl apply --server-side -f crds/',
  ],
  [
    'an object that is not there',
    new ApiError(404, 'NotFound', 'pods "a" not found'),
    'pods "a" not found (404 NotFound)',
  ],
  ['lines', new ApiError(500, 'Unknown', 'one\n\ttwo'), 'one two (500 Unknown)'],
  ['a chain', new Error('a', { cause: new Error('b', { cause: 'c' }) }), 'a: b: c'],
  ['a cause that is in the message', new Error('it failed: b', { cause: new Error('b') }), 'it failed: b'],
  ['a time-out of fetch', new DOMException('timed out', 'TimeoutError'), 'timed out'],
  [
    'several addresses',
    Object.assign(new AggregateError([new Error('connect ECONNREFUSED ::1:1')], ''), { code: 'ECONNREFUSED' }),
    '(ECONNREFUSED): connect ECONNREFUSED ::1:1; is the API server up, and does a NetworkPolicy let the operator reach it?',
  ],
  ['no error', undefined, 'unknown error'],
  ['a word', 'broken', 'broken'],
])('%s', (_what, error, line) => {
  expect(errorLine(error)).toBe(line);
});

test('a chain that is a ring, and a message without an end', () => {
  const ring = new Error('ring');
  ring.cause = ring;
  expect(errorLine(ring)).toBe('ring');
  expect(errorLine(new Error('x'.repeat(1e6)))).toHaveLength(2_000);
});

test('of a mistake of ours it says where', () => {
  let error: unknown;
  try {
    (undefined as unknown as { a: () => void }).a();
  } catch (thrown) {
    error = thrown;
  }
  expect(errorLine(error)).toMatch(
    /^Cannot read properties of undefined \(reading 'a'\); at .*error-line\.test\.ts:\d+/,
  );
});
