/** `replay`: requests of workers that die. */
import { docker } from '../../e2e/harness/engine/docker.ts';
import { type Answer, type Pod, until } from '../../e2e/harness/engine/pod.ts';

/** Beyond what HAProxy and the socket hold (about 230 kB): nginx must send it anew from its own copy. */
export const LARGE_BODY = Buffer.alloc(300_000, 'x');
const REPLAYED = [200, undefined, 2];
const REFUSED = [502, 'worker-died', 1];
/** Requests that the first worker has. */
export const SESSIONS = 'haproxy_server_current_sessions{proxy="workers",server="worker-0"}';

const REUSED = 'haproxy_backend_connection_reuses_total{proxy="workers"}';
/** Kept connections to a worker that have no request. */
export const idleOf = (worker: number) =>
  `haproxy_server_idle_connections_current{proxy="workers",server="worker-${worker}"}`;

/** By policy and method: status, reason, and how often a worker has begun it. */
export const expected = {
  Safe: { GET: REPLAYED, OPTIONS: REPLAYED, POST: REFUSED, PUT: REFUSED, DELETE: REFUSED },
  Always: { GET: REPLAYED, OPTIONS: REPLAYED, POST: REPLAYED, PUT: REPLAYED, DELETE: REPLAYED },
  Never: { GET: REFUSED, OPTIONS: REFUSED, POST: REFUSED, PUT: REFUSED, DELETE: REFUSED },
} as const;

export type Policy = keyof typeof expected;

/** Starts the container of a worker again, and waits until it is back. */
async function revive(pod: Pod, worker: number): Promise<void> {
  const starts = pod.events({ event: 'up', worker }).length;
  await docker('start', pod.workers[worker] ?? '');
  // HAProxy may not have seen yet that it was away.
  await until('it listens', () => pod.events({ event: 'up', worker }).length > starts);
  const up = `haproxy_server_status{proxy="workers",server="worker-${worker}",state="UP"}`;
  await until('the worker is back', async () => (await pod.metric(up)) === 1);
}

/** With the reason if it was not served. */
export const outcomeOf = ({ status, headers }: Answer) =>
  [status, headers['x-corelane-error']].filter(Boolean).join(' ');

/** With it the connections of the process before go. */
async function renew(pod: Pod, worker: number): Promise<void> {
  const before = pod.server(worker);
  await pod.kill(worker, before, 'KILL');
  await until('there is another one', () => pod.server(worker) !== before);
  await until('it is back', () => pod.isUp(worker));
}

/** kill -9 of the worker that renders this, and what becomes of it. */
export async function expectOutcome(
  pod: Pod,
  replay: string,
  method: string,
  outcome: readonly unknown[],
  path = '/',
): Promise<void> {
  const id = [replay, method, ...(path.match(/\w+/g) ?? [])].join('-');
  const body = ['GET', 'HEAD', 'OPTIONS'].includes(method) ? undefined : LARGE_BODY;
  // Node.js says no length of a DELETE by itself.
  const headers = body && { 'content-length': String(body.length) };
  const answered = pod.get(`${path}${path.includes('?') ? '&' : '?'}hold=1&id=${id}`, { method, body, headers });
  const { worker } = await pod.begun(id);
  await docker('kill', '--signal', 'KILL', pod.workers[worker] ?? '');
  pod.release(id);
  const { status, headers: said, body: answer } = await answered;
  const begun = pod.events({ event: 'begin', id });
  expect([status, said['x-corelane-error'], begun.length]).toEqual(outcome);
  if (status === 200) {
    expect(begun[1]?.worker).toBe(1 - worker);
    expect(JSON.parse(answer)).toMatchObject({ method, bytes: body?.length ?? 0 });
  }
  await revive(pod, worker);
}

/** A frozen worker has a request that it has not begun, over a connection of that kind, when it is killed. */
export async function expectKept(
  pod: Pod,
  replay: string,
  bytes: number,
  connection: string,
  [method, path]: [method: string, path: string] = ['POST', '/'],
): Promise<void> {
  const ids = ['one', 'other'].map((name) =>
    `${replay}-unbegun-${method}-${name}-${bytes}-${connection}`.replaceAll(' ', '-'),
  );
  const idle = () => Promise.all([0, 1].map((worker) => pod.metric(idleOf(worker))));
  if (connection === 'a new') await Promise.all([renew(pod, 0), renew(pod, 1)]);
  else
    await until('one of each is kept', async () => {
      await Promise.all(ids.map((id) => pod.get(`/?ms=50&id=warm-${id}`, { method: 'POST' })));
      return (await idle()).every((count) => count > 0);
    });
  const frozen = pod.server(0);
  const reused = await pod.metric(REUSED);
  await pod.kill(0, frozen, 'STOP');
  // One for each worker: the kernel accepts it for the one that is frozen.
  const answers = ids.map((id) => pod.get(`${path}?id=${id}`, { method, body: LARGE_BODY.subarray(0, bytes) }));
  expect((await Promise.race(answers)).status).toBe(200);
  await until('it has been sent the other one', async () => (await pod.metric(SESSIONS)) === 1);
  expect((await pod.metric(REUSED)) - reused).toBe(connection === 'a new' ? 0 : 2);
  await pod.kill(0, frozen, 'KILL');
  for (const answer of answers) expect(outcomeOf(await answer)).toBe('200');
  for (const answer of answers) expect(JSON.parse((await answer).body)).toMatchObject({ method, bytes });
  for (const id of ids) expect(pod.events({ event: 'begin', id })).toHaveLength(1);
  await until('the worker is back', () => pod.isUp(0));
}
