/**
 * Clients that leave: who waited is not rendered (I2); who was being rendered keeps the worker until the end (I1),
 * unless the render only waits. The worker tells, not the proxy.
 */
import { Pod, until } from '../../e2e/harness/engine/pod.ts';

let pod: Pod;
beforeAll(async () => {
  pod = await Pod.start({ workersPerPod: 2, queue: { maxLength: 200 } });
});
afterAll(() => pod?.stop());

const inLine = () => pod.metric('haproxy_backend_current_sessions{proxy="line"}');

test('a queued request whose client has gone is not rendered, and makes room in the queue', async () => {
  const calls = [0, 1].map((n) => pod.get(`/?hold=1&id=busy-${n}`));
  await Promise.all([pod.begun('busy-0'), pod.begun('busy-1')]);
  const leave = new AbortController();
  const leaving = Array.from({ length: 20 }, (_unused, n) => {
    const post = { method: 'POST', body: 'x'.repeat(n * 500) };
    return pod.get(`/?id=gone-${n}`, { signal: leave.signal, ...(n % 2 === 0 ? post : {}) }).catch(() => 'gone');
  });
  await pod.queued(20);
  const staying = [1, 2, 3].map((n) => pod.get(`/?ms=20&id=stays-${n}`, { method: 'POST', body: 'x' }));
  await pod.queued(23);
  leave.abort();
  await pod.queued(3);
  expect(await Promise.all(leaving)).toEqual(Array(20).fill('gone'));
  pod.release('busy-0', 'busy-1');
  const answers = await Promise.all([...calls, ...staying]);
  expect(answers.map(({ status }) => status)).toEqual(Array(5).fill(200));
  expect(pod.events({ event: 'begin' }).filter(({ id }) => id?.startsWith('gone-'))).toEqual([]);
});

test('a body that was half-way in the proxy when its client left reaches no worker as a whole', async () => {
  const calls = [0, 1].map((n) => pod.get(`/?hold=1&id=half-busy-${n}`));
  await Promise.all([pod.begun('half-busy-0'), pod.begun('half-busy-1')]);
  const leave = new AbortController();
  const body = Buffer.alloc(1_000_000, 'x');
  const left = pod.get('/?id=half', { method: 'POST', body, signal: leave.signal }).catch(() => 'gone');
  await pod.queued(1);
  leave.abort();
  expect(await left).toBe('gone');
  await until('nginx has given it up', async () => (await pod.accessLog()).some(({ uri }) => uri === '/?id=half'));
  pod.release('half-busy-0', 'half-busy-1');
  await Promise.all(calls);
  await until('HAProxy has no request', async () => (await inLine()) === 0);
  expect((await pod.get('/?id=after-half')).status).toBe(200);
  expect(pod.events({ event: 'end', id: 'half' }).filter(({ bytes }) => bytes === body.length)).toEqual([]);
});

test('renders that wait and whose clients have gone give their slots to the next requests', async () => {
  const leave = new AbortController();
  const ids = ['waits-0', 'waits-1'];
  const ask = (id: string, method: string) => pod.get(`/?hold=1&id=${id}`, { method, signal: leave.signal });
  const left = [ask('waits-0', 'GET'), ask('waits-1', 'POST')].map((answer) => answer.catch(() => 'gone'));
  await Promise.all(ids.map((id) => pod.begun(id)));
  leave.abort();
  expect(await Promise.all(left)).toEqual(['gone', 'gone']);
  const next = await Promise.all([1, 2, 3].map((n) => pod.get(`/?ms=20&id=after-waits-${n}`, { method: 'POST' })));
  expect(next.map(({ status }) => status)).toEqual([200, 200, 200]);
  for (const id of ids) expect(pod.events({ event: 'end', id })).toEqual([]);
  pod.release(...ids);
  for (const id of ids) await until('it has ended', () => pod.events({ event: 'end', id })[0]);
  const places = (worker: number) =>
    pod.metric(`haproxy_server_limit_sessions{proxy="workers",server="worker-${worker}"}`);
  await until('each worker has one slot again', async () => (await places(0)) === 1 && (await places(1)) === 1);
});
