/**
 * The concurrency limiter after a time-out of renders, which must come while a render lasts; recycling, under load and
 * by the clock.
 */
import http from 'node:http';
import { docker } from '../../e2e/harness/engine/docker.ts';
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { figure } from '../../operator/test/support/figure.ts';
import { takeTurn } from './runtime.ts';

/** The tests before those of recycling stay far below it: nothing can be taken of a worker that is being replaced. */
const RECYCLE_REQUESTS = 200;

let pod: Pod;
beforeAll(async () => {
  pod = await Pod.start({
    workersPerPod: 2,
    timeouts: { render: '1s' },
    queue: { timeout: '60s' },
    warmup: { path: '/?id=warm', requests: 3 },
    runtime: { recycle: { requests: RECYCLE_REQUESTS } },
  });
});
afterAll(() => pod?.stop());
beforeEach(() => Promise.all([0, 1].map((worker) => until(`worker-${worker} is up`, () => pod.isUp(worker)))));

test('concurrency limiter: after a time-out of the proxy the next request waits until the old render has ended', async () => {
  const other = pod.get('/?id=other&ms=3500').catch(() => 0);
  const late = pod.get('/?id=late&ms=3500');
  const { worker } = await pod.begun('late');
  // One that comes all the same, past the proxy, waits in the process.
  const send = `const r=require('http').get({port:${PORTS.firstWorker + worker},host:'127.0.0.1',path:'/?id=inside'},(a)=>{a.resume();console.log(a.statusCode)})`;
  const inside = docker('exec', '--env', 'NODE_OPTIONS=', pod.workers[worker] ?? '', 'node', '-e', send);
  expect((await late).status).toBe(504);
  // The worker renders on, and says so: no request is given to it.
  await until('it says that it is busy', async () => !(await pod.isUp(worker)));
  expect(pod.events({ event: 'end', id: 'late' })).toEqual([]);
  expect(await inside).toBe('200');
  const [ended] = pod.events({ event: 'end', id: 'late' });
  const [began] = pod.events({ event: 'begin', id: 'inside' });
  expect(began?.inFlight).toBe(1);
  expect(began?.at).toBeGreaterThanOrEqual(ended?.at ?? Number.POSITIVE_INFINITY);
  expect(await pod.runtimeMetric(worker, 'corelane_worker_overlap_total')).toBe(1);
  await other;
});

test('concurrency limiter: a render that never ends takes no other request with it (I2)', async () => {
  let isOver = false;
  const hung = pod.get('/?id=hung&hold=1').finally(() => {
    isOver = true;
  });
  await pod.begun('hung');
  const answers: number[] = [];
  const client = async (name: number) => {
    for (let n = 0; !isOver || n < 20; n += 1)
      answers.push((await pod.get(`/?id=beside-${name}-${n}&ms=20`, { method: 'POST' })).status);
  };
  await Promise.all([0, 1, 2].map(client));
  expect((await hung).status).toBe(504);
  expect(new Set(answers)).toEqual(new Set([200]));
  pod.release('hung');
});

test('recycling: a worker that is due waits for its turn, and for the half of the pod', async () => {
  const other = await takeTurn(pod);
  const recycles = () => pod.runtimeMetric(0, 'corelane_worker_recycles_total');
  const before = await recycles();
  const many = `(async () => { for (let n = 0; n < ${1.25 * RECYCLE_REQUESTS}; n += 1) await (await fetch('http://127.0.0.1:${PORTS.firstWorker}/?id=due')).text(); })()`;
  await docker('exec', '--env', 'NODE_OPTIONS=', pod.workers[0] ?? '', 'node', '-e', many);
  // Longer than the time between two looks; what must not happen can only be waited for.
  await new Promise((resolve) => setTimeout(resolve, 2500));
  expect(await recycles()).toBe(before);
  await docker('pause', pod.workers[1] ?? '');
  await docker('rm', '--force', other);
  await new Promise((resolve) => setTimeout(resolve, 1500));
  expect(await recycles()).toBe(before);
  await docker('unpause', pod.workers[1] ?? '');
  await until('it is replaced', async () => (await recycles()) > before);
});

test('recycling: under load, one worker after the other, nothing is lost', async () => {
  const agent = new http.Agent({ keepAlive: true });
  const recycled = async () =>
    Promise.all([0, 1].map((worker) => pod.runtimeMetric(worker, 'corelane_worker_recycles_total')));
  const statuses: number[] = [];
  let done = false;
  const client = async (n: number) => {
    while (!done) statuses.push((await pod.get(`/?id=load-${n}&ms=20`, { method: 'POST', body: 'x', agent })).status);
  };
  const clients = [1, 2, 3, 4].map(client);
  // Twice each: at the end of one of them a worker may just be idle, and then nothing could be lost.
  const enough = (await recycled()).map((count) => count + 2);
  const isEnough = async () => (await recycled()).every((count, worker) => count >= (enough[worker] as number));
  await until('both have been replaced twice', isEnough, 120_000);
  done = true;
  await Promise.all(clients);
  agent.destroy();
  const failed = statuses.filter((status) => status !== 200);
  figure('requests lost while workers are recycled', failed.length, `of ${statuses.length}`, '0');
  expect(failed).toEqual([]);
  expect(Math.max(...pod.events({ event: 'begin' }).map(({ inFlight }) => inFlight ?? 0))).toBe(1);
  const spans = (await Promise.all([0, 1].map((worker) => pod.supervisorLog(worker)))).map((lines) =>
    lines.filter(({ event }) => event === 'recycle' || event === 'up').map(({ event, time }) => ({ event, time })),
  );
  // From its "recycle" to its next "up" a worker is away; the other one never at the same time.
  const away = spans.map((lines) =>
    lines.flatMap(({ event, time }, index) => (event === 'recycle' ? [[time, lines[index + 1]?.time ?? '9']] : [])),
  ) as [string, string][][];
  for (const [from, to] of away[0] ?? [])
    for (const [otherFrom, otherTo] of away[1] ?? []) expect(to < otherFrom || otherTo < from).toBe(true);
});
