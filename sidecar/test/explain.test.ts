/** What `corelane explain` reads of real pods, and names; and what a worker says that it renders. */
import { Fleet } from '../../e2e/harness/engine/fleet.ts';
import { ANY_URL_KEEPS, Pod, until } from '../../e2e/harness/engine/pod.ts';
import { explain } from '../../operator/live/explain.ts';
import { readFigures } from '../../operator/live/figures.ts';
import type { Snapshot } from '../../operator/live/snapshot.ts';
import { readNow, readStalls } from '../../operator/live/source.ts';
import { windowOf } from '../../operator/live/window.ts';
import { PORTS, workerName } from '../../operator/src/api/names.ts';

/** As a source does it, with what the API server would say left out. */
async function look(...pods: Pod[]): Promise<Snapshot> {
  const now = pods.map(async (pod, index) => {
    const page = async (path: string) => {
      const { status, body } = await pod.get(path, { port: PORTS.stats });
      if (status !== 200) throw new Error(`${path}: ${status}`);
      return body;
    };
    const names = Array.from({ length: pod.spec.workersPerPod }, (_unused, worker) => workerName(worker));
    const figures = await readFigures(page, names, Date.now());
    return { name: `pod-${index}`, revision: 'r1', state: 'ready' as const, figures };
  });
  const { queue, pooling } = (pods[0] as Pod).spec;
  return {
    ...{ name: 'shop', atMs: Date.now(), status: {}, pods: await Promise.all(now), podsNotAsked: 0 },
    bounds: { queueLength: queue.maxLength, concurrency: 1, latencyMs: {}, ...(pooling.enabled && { peersMax: 64 }) },
  };
}

/** What is said once it is what a pattern has, of what came since `before`. */
function says(pattern: RegExp, before: Snapshot, ...pods: Pod[]): Promise<string> {
  return until(String(pattern), async () => {
    const now = await look(...pods);
    const text = explain(now, windowOf(now, before)).join('\n');
    return pattern.test(text) ? text : undefined;
  });
}

/** A page of a worker's supervisor, asked from within the pod. */
function runtimePage(pod: Pod, worker: number, path: string): Promise<string> {
  const ask = `
    const [port, path] = process.argv.slice(-2);
    require('node:http').get({ host: '127.0.0.1', port, path, headers: { 'X-Corelane-Runtime': 'true' } }, (response) => response.pipe(process.stdout));`;
  return pod.inWorker(worker, ask, String(PORTS.firstWorkerRuntime + worker), path);
}

describe('a pod', () => {
  let pod: Pod;
  beforeAll(async () => {
    pod = await Pod.start({
      ...{ workersPerPod: 2, queue: { maxLength: 2, timeout: '20s' }, timeouts: { render: '9s' }, ...ANY_URL_KEEPS },
      watchdog: { stallTimeout: '8s', ...ANY_URL_KEEPS.watchdog },
      pooling: { enabled: false },
    });
  });
  beforeEach(async () => {
    for (const worker of [0, 1]) await until(`worker-${worker} is up`, () => pod.isUp(worker));
  });
  afterAll(() => pod?.stop());

  test('at peace', async () => {
    const before = await look(pod);
    for (let count = 0; count < 25; count += 1) await pod.get('/?ms=1');
    await says(
      /^shop: p99 [\d.]+ ms \(p99 of the queue .* ms, of renders .* ms\); .*\n.*\nNow: nothing limits it/,
      before,
      pod,
    );
  });

  test.each([
    [
      'ms=1500',
      'wait',
      /^Now: renders take long: .* \(they compute for \d+ % of that\), so they wait for something else/m,
    ],
    [
      'spin=1500',
      'compute',
      /^Now: renders take long: .* \(they compute for \d+ % of that\); next to nothing is queue$/m,
    ],
  ])('long renders (%s) that %s, of which no look sees one', async (long, _what, names) => {
    const before = await look(pod);
    for (let count = 0; count < 20; count += 1) await pod.get('/?ms=1');
    await Promise.all([0, 1].map(() => pod.get(`/?${long}`)));
    await says(names, before, pod);
  });

  test('saturated: all workers busy, two wait, one is refused; what each renders', async () => {
    const before = await look(pod);
    const busy = [0, 1].map((n) => pod.get(`/busy?block=1500&id=busy-${n}`, { headers: { 'X-Request-ID': `b-${n}` } }));
    const events = await Promise.all([pod.begun('busy-0'), pod.begun('busy-1')]);
    const waiting = [0, 1].map(() => pod.get('/?ms=1'));
    await pod.queued(2);
    const { worker } = events[0] as { worker: number };
    // Its event loop stands still: a thread answers.
    const [request] = readNow(await runtimePage(pod, worker, '/now'));
    expect(request).toEqual({ id: 'b-0', what: 'GET /busy?block=1500&id=busy-0', ms: expect.any(Number) });
    expect((await pod.get('/?id=refused')).headers['x-corelane-error']).toBe('queue-full');
    await Promise.all([...busy, ...waiting]);
    // The counters have seen it, though nobody waits any more.
    await says(/; .* % failed: queue-full 1\n(.*\n)?Now: \d of 2 workers are busy, 1 were refused$/m, before, pod);
    expect(readNow(await runtimePage(pod, worker, '/now'))).toEqual([]);
    // A shorter one in the same place.
    const short = pod.get('/?hold=1&id=s', { headers: { 'X-Request-ID': 's' } });
    const next = await pod.begun('s');
    expect(readNow(await runtimePage(pod, next.worker, '/now'))).toMatchObject([
      { id: 's', what: 'GET /?hold=1&id=s' },
    ]);
    pod.release('s');
    await short;
  });

  test('a dependency that does not answer', async () => {
    const before = await look(pod);
    const hung = pod.get('/?until=database&id=hung');
    await pod.begun('hung');
    await says(
      /^Now: renders end by time-out, .*: .*1 of 2 workers is taken by renders that were given up/m,
      before,
      pod,
    );
    expect((await hung).headers['x-corelane-error']).toBe('render-timeout');
    pod.release('database');
    await says(/^Now: renders end by time-out.*: 1 render had no answer within timeouts\.render$/m, before, pod);
  });

  test('a stuck render: at once that, and then which function', async () => {
    const before = await look(pod);
    const stuck = pod.get('/?loop=1&id=stuck', { method: 'POST' });
    const { worker } = await pod.begun('stuck');
    await says(new RegExp(`^Now: an event loop stands still, worker-${worker} of pod-0 for \\d+ s$`, 'm'), before, pod);
    await stuck;
    const text = await says(
      /^Now: renders get stuck: 1 worker in the last 10 minutes, .* in render \/app\/worker\.mjs:\d+/m,
      before,
      pod,
    );
    expect(text).toMatch(/^Next: mend render \/app\/worker\.mjs:\d+;/m);
    const [stall] = readStalls(await runtimePage(pod, worker, '/stalls'));
    expect(stall?.stack[0]).toMatch(/^render \/app\/worker\.mjs:\d+$/);
  });
});

test('a worker that ends again and again', async () => {
  const pod = await Pod.start({ workersPerPod: 2, ...ANY_URL_KEEPS });
  try {
    const before = await look(pod);
    const ups = () => pod.events({ event: 'up', worker: 0 });
    const ending = async () => {
      const seen = ups().length;
      await pod.kill(0, ups().at(-1)?.pid ?? 0, 'KILL').catch(() => {});
      await until('it is started again', () => ups().length > seen);
      const now = await look(pod);
      const text = explain(now, windowOf(now, before)).join('\n');
      return /^Now: worker-0 of pod-0 restarts in a loop: exit code 137, \d+ s between two tries$/m.test(text);
    };
    await until('it says so', ending);
  } finally {
    await pod.stop();
  }
});

test('a pod without the key of the others works alone', async () => {
  const fleet = await Fleet.start(2, { workersPerPod: 1 });
  try {
    const before = await look(...fleet.pods);
    await says(/^Now: nothing limits it/m, before, ...fleet.pods);
    await fleet.add({ workersPerPod: 1 }, { key: null });
    await says(/^Now: 1 of 3 pods know less than half of the others \(pod-2: 0 of 2\)/m, before, ...fleet.pods);
  } finally {
    await fleet.stop();
  }
});
