/**
 * What the worker runtime does beside the watchdog: concurrency limiter, warm-up, recycling, metrics, profiles, flags.
 */
import http from 'node:http';
import { docker, logs, NODE_IMAGE, start } from '../../e2e/harness/engine/docker.ts';
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';

/** The tests before those of recycling stay far below it: nothing can be taken of a worker that is being replaced. */
const RECYCLE_REQUESTS = 200;

let pod: Pod;
beforeAll(async () => {
  pod = await Pod.start(
    {
      workersPerPod: 2,
      timeouts: { render: '1s' },
      queue: { timeout: '60s' },
      warmup: { path: '/?id=warm', requests: 3 },
      runtime: { recycle: { requests: RECYCLE_REQUESTS }, nodeFlags: ['--stack-trace-limit=33', '--no-such-flag'] },
    },
    { env: { NODE_OPTIONS: '--max-http-header-size=9000' } },
  );
});
afterAll(() => pod?.stop());
beforeEach(() => Promise.all([0, 1].map((worker) => until(`worker-${worker} is up`, () => pod.isUp(worker)))));

/** A page of a supervisor, asked for inside the pod as a port-forward would. */
const page = (worker: number, path: string) =>
  docker(
    ...['exec', '--env', 'NODE_OPTIONS=', pod.workers[worker] ?? '', 'node', '-e'],
    `fetch('http://127.0.0.1:${PORTS.firstWorkerRuntime + worker}${path}', { headers: { 'X-Corelane-Runtime': 'true' } }).then(async (r) => console.log(r.status + ' ' + await r.text()))`,
  );

test('a worker takes requests when it has rendered warmup.path so many times', () => {
  for (const worker of [0, 1]) {
    const events = pod.events({ worker });
    expect(events.filter(({ id }) => id === 'warm').map(({ event }) => event)).toEqual(
      Array(3).fill(['begin', 'end']).flat(),
    );
  }
});

test('flags: those that Node.js allows, before the ones of the user', async () => {
  const [, warned] = await Promise.all([0, pod.supervisorLog(0)]);
  expect(warned.find(({ event }) => event === 'flags')).toMatchObject({ refused: ['--no-such-flag'] });
  const environment = await docker(
    'exec',
    pod.workers[0] ?? '',
    'sh',
    '-c',
    'cat /proc/[0-9]*/environ | tr "\\0" "\\n"',
  );
  expect(environment).toContain(
    'NODE_OPTIONS=--require=/corelane/supervisor.cjs --stack-trace-limit=33 --max-http-header-size=9000',
  );
});

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

test('concurrency limiter: HEAD and large answers pass', async () => {
  expect((await pod.get('/?id=head', { method: 'HEAD' })).status).toBe(200);
  const sizes = await Promise.all([1, 2, 3, 4].map((n) => pod.get(`/?id=large-${n}&size=3000000`)));
  expect(sizes.map(({ body }) => body.length)).toEqual(Array(4).fill(3_000_000));
});

test('metrics count what a worker does', async () => {
  expect((await pod.get('/?id=metrics')).status).toBe(200);
  const { worker } = await pod.begun('metrics');
  const { body } = await pod.get(`/workers/${worker}/metrics`, { port: PORTS.stats });
  expect(body).toMatch(/corelane_worker_heap_space_used_bytes\{worker="[01]",space="old"\} [1-9]/);
  expect(body).toMatch(/corelane_worker_render_duration_seconds_count\{worker="[01]",concurrency="1"\} [1-9]/);
  expect(body).toMatch(/corelane_worker_gc_seconds_total\{worker="[01]",kind="minor"\} /);
  expect(body).toMatch(/corelane_worker_concurrency_limit\{worker="[01]"\} 1\n/);
});

test('one page has the metrics of all workers, told apart by a label; one whose container is gone is missing', async () => {
  const all = async () => {
    const { body } = await pod.get('/corelane/metrics?detail=1', { port: PORTS.stats });
    return body.trimEnd().split('\n');
  };
  const lines = await all();
  const families = lines.filter((line) => line.startsWith('# TYPE ')).map((line) => line.split(' ')[2] ?? '');
  expect(new Set(families).size).toBe(families.length);
  expect(families).toContain('corelane_worker_render_duration_seconds');
  for (const worker of [0, 1]) {
    const own = (await pod.get(`/workers/${worker}/metrics`, { port: PORTS.stats })).body.split('\n');
    const names = own.filter((line) => line && !line.startsWith('#')).map((line) => line.replace(/ \S+$/, ''));
    for (const name of names) expect(lines.some((line) => line.startsWith(`${name} `))).toBe(true);
  }
  await docker('pause', pod.workers[1] ?? '');
  const rest = await until('a page without worker-1', async () => {
    const now = await all();
    return now.includes('corelane_workers{state="watched"} 1') ? now : undefined;
  }).finally(() => docker('unpause', pod.workers[1] ?? ''));
  expect(rest).toContain('corelane_worker_up{worker="0"} 1');
  expect(rest.filter((line) => line.includes('worker="1"'))).toEqual([]);
});

test('a CPU profile of one worker while it serves; not two at a time', async () => {
  const both = [page(0, '/profile?seconds=3'), page(0, '/profile?seconds=3')];
  let isTaken = false;
  const render = async () => {
    for (let n = 0; !isTaken; n += 1) await pod.get(`/?id=profiled-${n}&block=50`);
  };
  const renders = render();
  const answers = (await Promise.all(both)).sort();
  isTaken = true;
  await renders;
  const [answer = '', refused] = answers;
  expect(refused).toMatch(/^409 /);
  expect(answer.slice(0, 4)).toBe('200 ');
  const names = JSON.parse(answer.slice(4)).nodes.map(
    ({ callFrame }: { callFrame: { functionName: string } }) => callFrame.functionName,
  );
  expect(names).toContain('render');
  expect(await page(0, '/profile?seconds=61')).toMatch(/^400 /);
});

test('a program that fetches what its clients name gets nothing of a worker, whatever headers it passes on', async () => {
  for (const path of ['/heap', '/profile?seconds=1']) {
    const target = encodeURIComponent(`http://127.0.0.1:${PORTS.firstWorkerRuntime}${path}`);
    const { body } = await pod.get(`/?id=ssrf&fetch=${target}`, { headers: { 'X-Corelane-Runtime': 'true' } });
    expect(body).toMatch(/^403 .* wants a header that no URL can set/);
  }
  expect(await pod.isUp(0)).toBe(true);
});

test('a heap snapshot costs no request', async () => {
  const snapshot = page(1, '/heap');
  const answers = await Promise.all(Array.from({ length: 10 }, (_unused, n) => pod.get(`/?id=heap-${n}&ms=50`)));
  expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200));
  const answer = await snapshot;
  expect(Object.keys(JSON.parse(answer.slice(4)))).toContain('snapshot');
  expect(await pod.runtimeMetric(1, 'corelane_worker_stalls_total')).toBe(0);
});

/** A container that listens where a worker does while it is replaced; a worker may be at it just now. */
async function takeTurn(): Promise<string> {
  const take = `const take = () => require('node:net').createServer().on('error', () => setTimeout(take, 10)).listen(${PORTS.firstWorkerRuntime + 99}, '127.0.0.1', () => console.log('taken')); take();`;
  const other = await start('--network', pod.network, '--entrypoint', 'node', NODE_IMAGE, '-e', take);
  await until('the turn is taken', async () => (await logs(other)).includes('taken'));
  return other;
}

test('recycling: a worker that is due waits for its turn, and for the half of the pod', async () => {
  const other = await takeTurn();
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

test('recycling that somebody asks for waits for its turn, too', async () => {
  const recycles = () => pod.runtimeMetric(0, 'corelane_worker_recycles_total');
  const before = await recycles();
  const other = await takeTurn();
  expect(await page(0, '/recycle')).toMatch(/^409 not now: the worker is up, another one is being replaced/);
  expect(await recycles()).toBe(before);
  await docker('rm', '--force', other);
  expect(await page(0, '/recycle')).toBe('200 recycled');
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
  expect(statuses.filter((status) => status !== 200)).toEqual([]);
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
