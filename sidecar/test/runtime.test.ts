/**
 * What the worker runtime does beside the watchdog: warm-up, flags, metrics, profiles, recycling that somebody asks
 * for.
 */
import { docker } from '../../e2e/harness/engine/docker.ts';
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { page, takeTurn } from './runtime.ts';

let pod: Pod;
beforeAll(async () => {
  pod = await Pod.start(
    {
      workersPerPod: 2,
      queue: { timeout: '60s' },
      warmup: { path: '/?id=warm', requests: 3 },
      runtime: { nodeFlags: ['--stack-trace-limit=33', '--no-such-flag'] },
    },
    { env: { NODE_OPTIONS: '--max-http-header-size=9000' } },
  );
});
afterAll(() => pod?.stop());
beforeEach(() => Promise.all([0, 1].map((worker) => until(`worker-${worker} is up`, () => pod.isUp(worker)))));

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
  const both = [page(pod, 0, '/profile?seconds=3'), page(pod, 0, '/profile?seconds=3')];
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
  expect(await page(pod, 0, '/profile?seconds=61')).toMatch(/^400 /);
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
  const snapshot = page(pod, 1, '/heap');
  const answers = await Promise.all(Array.from({ length: 10 }, (_unused, n) => pod.get(`/?id=heap-${n}&ms=50`)));
  expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200));
  const answer = await snapshot;
  expect(Object.keys(JSON.parse(answer.slice(4)))).toContain('snapshot');
  expect(await pod.runtimeMetric(1, 'corelane_worker_stalls_total')).toBe(0);
});

test('recycling that somebody asks for waits for its turn, too', async () => {
  const recycles = () => pod.runtimeMetric(0, 'corelane_worker_recycles_total');
  const before = await recycles();
  const other = await takeTurn(pod);
  expect(await page(pod, 0, '/recycle')).toMatch(/^409 not now: the worker is up, another one is being replaced/);
  expect(await recycles()).toBe(before);
  await docker('rm', '--force', other);
  expect(await page(pod, 0, '/recycle')).toBe('200 recycled');
  await until('it is replaced', async () => (await recycles()) > before);
});
