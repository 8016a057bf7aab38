/**
 * Connections to workers are kept only where the runtime sees to the length of responses. Whatever else serves may send
 * more than it has announced, and the next client's answer is its own all the same (I5).
 */
import { writeFileSync } from 'node:fs';
import { ANY_URL_KEEPS, Pod, until, type WorkerOptions } from '../../e2e/harness/engine/pod.ts';

let pod: Pod;
afterEach(() => pod?.stop());

const start = (options: WorkerOptions) =>
  Pod.start(
    { workersPerPod: 1, ...ANY_URL_KEEPS, pooling: { enabled: false }, webSockets: { enabled: true } },
    options,
  );
const isGuarded = async () =>
  (await pod.metric('haproxy_server_status{proxy="workers-guarded",server="worker-0",state="UP"}')) === 1;

const FORGED = encodeURIComponent('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged');

/** One answer that has more than it says, and another client's request that has waited for the worker: its answer. */
async function behindTooLong(name: string, headers: Record<string, string> = {}): Promise<string> {
  const [first, second] = await Promise.all([
    pod.get(`/?id=${name}&ms=300&length=10&more=${FORGED}`, { headers }),
    pod.begun(name).then(() => pod.get(`/?id=behind-${name}&ms=300`)),
  ]);
  expect([first.status, first.body]).toEqual([200, 'x'.repeat(10)]);
  return JSON.parse(second.body).id;
}

/** The connections, by the port of their other end, over which these requests came. */
async function connections(name: string, count: number): Promise<number> {
  const ids = Array.from({ length: count }, (_unused, n) => `${name}-${n}`);
  for (const id of ids) expect(JSON.parse((await pod.get(`/?id=${id}`)).body).id).toBe(id);
  return new Set(ids.map((id) => pod.events({ event: 'begin', id })[0]?.port)).size;
}

const UPGRADE = { Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==' };
test.each([
  ['a server without node:http', ['node', '/app/plain.cjs']],
  ['an image without Node.js', ['perl', '/app/plain.pl']],
  ['a process that has lost NODE_OPTIONS', ['env', '-u', 'NODE_OPTIONS', 'node', '/app/plain.cjs']],
])('%s: what it sends beyond its Content-Length is never the answer to the next request', async (_name, command) => {
  pod = await start({ command });
  expect(await connections('one', 5)).toBe(5);
  expect(await behindTooLong('too-long')).toBe('behind-too-long');
  expect(await behindTooLong('upgraded', UPGRADE)).toBe('behind-upgraded');
  expect(await isGuarded()).toBe(false);
});

test('a program that comes back without node:http: the guard of the one before does not count', async () => {
  pod = await start({ command: ['node', '/app/plain.cjs'], env: { HTTP_FIRST: '1' } });
  await until('it is guarded', isGuarded);
  expect(await connections('guarded', 5)).toBeLessThan(5);
  writeFileSync(`${pod.notesFile}.plain`, '');
  const first = pod.server(0);
  await pod.kill(0, first, 'KILL');
  // It waits in the pod for the next process.
  expect(await behindTooLong('at-once')).toBe('behind-at-once');
  expect(pod.server(0)).not.toBe(first);
  expect(await connections('plain', 5)).toBe(5);
});

test('a program that uses cluster is guarded when all its processes are', async () => {
  pod = await start({ command: ['node', '/app/plain.cjs'], env: { HTTP_FIRST: '1', CLUSTER: '2' } });
  await until('it is guarded', isGuarded);
  expect(await behindTooLong('in-cluster')).toBe('behind-in-cluster');
});
