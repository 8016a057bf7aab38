/**
 * Requests that are no renders: what their times end, workers that are stuck or die at any moment, and what a drain
 * ends. A load test: times of the product, bursts of CPU, and outcomes by chance.
 */
import { docker } from '../../e2e/harness/engine/docker.ts';
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import { figure } from '../../operator/test/support/figure.ts';
import { EVENTS, FEW_PLACES, openEvents, overlap, reason, startMortal, untilMortalUp } from './classes.ts';
import { STREAMS } from './stream.ts';

let pod: Pod;
const stop = () => pod?.stop();

describe('an API beside renders', () => {
  beforeAll(async () => {
    pod = await Pod.start({
      workersPerPod: 2,
      classes: [{ name: 'api', match: [{ pathPrefix: '/api/' }], concurrency: 4 }],
    });
  });
  afterAll(stop);

  test('what is done after a response is counted', async () => {
    const seconds = async () =>
      (await Promise.all([0, 1].map((n) => pod.runtimeMetric(n, 'corelane_worker_background_seconds_total')))).reduce(
        (sum, one) => sum + one,
      );
    const before = await seconds();
    for (let n = 0; n < 4; n += 1) expect((await pod.get(`/?after-spin=500&id=after-${n}`)).status).toBe(200);
    await until('it is counted', async () => (await seconds()) - before > 1.6);
    // A render is none, however long it takes.
    const between = await seconds();
    expect((await pod.get('/?spin=1500&id=spins')).status).toBe(200);
    const counted = (await seconds()) - between;
    figure('background time counted for a render that computes for 1.5 s', counted, 's', '< 1 s');
    expect(counted).toBeLessThan(1);
  });
});

describe('a class with few places', () => {
  beforeAll(async () => {
    pod = await Pod.start({
      workersPerPod: 1,
      // Shorter than what a class may take.
      timeouts: { render: '2s' },
      classes: [
        FEW_PLACES,
        {
          name: 'brief',
          match: [{ pathPrefix: '/brief' }],
          concurrency: 1,
          queue: { timeout: '500ms' },
          timeouts: { idle: '3s' },
        },
      ],
    });
  });
  afterAll(stop);

  test('it may take longer than a render, and is neither given up nor killed for that', async () => {
    const [pid, id] = [pod.server(0), 'long'];
    const long = pod.get(`/api?hold=1&id=${id}`);
    await pod.begun(id);
    const began = performance.now();
    // timeouts.render, what the proxy waits longer, and what the runtime waits to be sure.
    await until('a render would be overdue', () => performance.now() - began > 6_000);
    expect((await pod.get('/?id=meanwhile')).status).toBe(200);
    expect([pod.server(0), await pod.isUp(0)]).toEqual([pid, true]);
    pod.release(id);
    expect((await long).status).toBe(200);
  });

  test('who waits too long for a place, or for an answer, is told so; what was begun keeps its place', async () => {
    const first = pod.get('/brief?hold=1&id=brief-1');
    await pod.begun('brief-1');
    expect(reason(await pod.get('/brief?id=brief-2'))).toEqual([503, 'class-queue-timeout']);
    expect(reason(await first)).toEqual([504, 'class-timeout']);
    // HAProxy has a place again, the worker has not.
    const next = pod.get('/brief?id=brief-3');
    const waited = () =>
      pod
        .get('/corelane/metrics?detail=1', { port: PORTS.stats })
        .then(({ body }) => /class_overlap_total{[^}]*"brief"} 1/.test(body));
    await until('it waits in the worker', waited);
    expect(pod.events({ id: 'brief-3' })).toEqual([]);
    expect((await pod.get('/?id=beside-brief')).status).toBe(200);
    pod.release('brief-1');
    expect((await next).status).toBe(200);
  });
});

/** Renders and calls, one of nine of which is given up. */
const KINDS = [
  (n: number) => `/?ms=${n % 30}&id=render-${n}`,
  (n: number) => `/api?ms=${(n * 7) % 60}&id=call-${n}`,
  (n: number) => `/api/../?ms=${n % 30}&id=render-odd-${n}`,
];
function mixed(n: number): Promise<number | string> {
  const signal = AbortSignal.timeout(n % 9 === 0 ? 10 : 60_000);
  const path = KINDS[n % KINDS.length]?.(n) ?? '/';
  return pod.get(path, { signal, method: n % 2 === 0 ? 'GET' : 'POST' }).then(
    ({ status }) => status,
    () => 'gone',
  );
}

describe('workers that die with requests of a class', () => {
  beforeAll(async () => {
    pod = await startMortal('6s');
  });
  afterAll(stop);
  beforeEach(() => untilMortalUp(pod));

  test('a render that gets its worker stuck is told apart from what goes on beside it', async () => {
    const beside = ['beside-1', 'beside-2'].map((id) => pod.get(`/api?hold=1&id=${id}`));
    const workers = await Promise.all(['beside-1', 'beside-2'].map((id) => pod.begun(id)));
    expect(new Set(workers.map(({ worker }) => worker)).size).toBe(2);
    expect(reason(await pod.get('/?loop=1&id=stuck'))).toEqual([502, 'worker-stuck']);
    await until('one of the two is begun again', () =>
      ['beside-1', 'beside-2'].some((id) => pod.events({ event: 'begin', id }).length === 2),
    );
    pod.release('beside-1', 'beside-2');
    expect((await Promise.all(beside)).map(({ status }) => status)).toEqual([200, 200]);
  });

  test('one render per worker at a time, and so many of the class, whatever happens', async () => {
    const outcomes = new Map<number | string, number>();
    let next = 0;
    const client = async () => {
      for (let n = next; next < 900; n = next) {
        next += 1;
        const outcome = await mixed(n);
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
        if (n === 300) await pod.kill(0, pod.server(0), 'KILL');
      }
    };
    await Promise.all(Array.from({ length: 24 }, client));
    figure('requests answered 200, while clients leave and a worker dies', outcomes.get(200) ?? 0, 'of 900', '> 700');
    figure('most API calls at once in a worker', overlap(pod, 'call-'), '', '> 1, <= 4');
    expect(outcomes.get(200)).toBeGreaterThan(700);
    expect([overlap(pod, 'render-'), overlap(pod, 'call-') <= 4, overlap(pod, 'call-') > 1]).toEqual([1, true, true]);
  });
});

describe('Server-Sent Events', () => {
  beforeAll(async () => {
    pod = await Pod.start({ ...EVENTS, drain: { delay: '0s', timeout: '60s' } }, STREAMS);
  });
  afterAll(stop);

  test('one that is silent for longer than clients and renders may be goes on', async () => {
    const stream = await openEvents(pod, 'silent', '&step=write:5');
    const began = performance.now();
    await until('a client would have been given up', () => performance.now() - began > 8_000);
    pod.release('end-silent');
    expect([await stream.ended, stream.bytes()]).toEqual([true, 12]);
  });

  test('at a drain they go on for a while, and are cut then', async () => {
    const [first, second] = [await openEvents(pod, 'drain-1', '&step=write:5'), await openEvents(pod, 'drain-2')];
    const hooks = [pod.haproxy, pod.nginx].map((container) => docker('exec', container, 'corelane-drain'));
    const waits = pod.drainHooks();
    const isRefused = () =>
      pod.get('/ping').then(
        () => false,
        () => true,
      );
    await until('nothing new is accepted', isRefused);
    // A quarter of their time.
    const since = performance.now();
    await until('they have gone on for a while', () => performance.now() - since > 500);
    pod.release('end-drain-1');
    expect([await first.ended, first.bytes()]).toEqual([true, 12]);
    expect([await second.ended, second.bytes()]).toEqual([false, 7]);
    expect(await waits).toEqual(['drained', 'drained']);
    await Promise.all(hooks);
  }, 50_000);
});
