/**
 * What `corelane explain` names as the cause, from percentiles, shares of time and time-outs of real pods. Here for
 * those.
 */
import { Fleet } from '../../e2e/harness/engine/fleet.ts';
import { ANY_URL_KEEPS, Pod, until } from '../../e2e/harness/engine/pod.ts';
import { explain } from '../../operator/live/explain.ts';
import { readStalls } from '../../operator/live/source.ts';
import { windowOf } from '../../operator/live/window.ts';
import { look, runtimePage, says } from './explain.ts';

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
    await says(/^Now: renders end by time-out.*: 1 render had no answer in time \([^)]+\)$/m, before, pod);
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
