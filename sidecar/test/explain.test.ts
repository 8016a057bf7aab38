/** What `corelane explain` reads of a real pod, and names; and what a worker says that it renders. */
import { ANY_URL_KEEPS, Pod } from '../../e2e/harness/engine/pod.ts';
import { readNow } from '../../operator/live/source.ts';
import { look, runtimePage, says } from './explain.ts';

describe('a pod', () => {
  let pod: Pod;
  beforeAll(async () => {
    pod = await Pod.start({
      ...{ workersPerPod: 2, queue: { maxLength: 2 }, ...ANY_URL_KEEPS },
      watchdog: { stallTimeout: '30s', ...ANY_URL_KEEPS.watchdog },
      pooling: { enabled: false },
    });
  });
  afterAll(() => pod?.stop());

  test('saturated: all workers busy, two wait, one is refused; what each renders', async () => {
    const before = await look(pod);
    const busy = [0, 1].map((n) => pod.get(`/busy?hold=block&id=busy-${n}`, { headers: { 'X-Request-ID': `b-${n}` } }));
    const events = await Promise.all([pod.begun('busy-0'), pod.begun('busy-1')]);
    const waiting = [0, 1].map(() => pod.get('/?ms=1'));
    await pod.queued(2);
    const { worker } = events[0] as { worker: number };
    // Its event loop stands still: a thread answers.
    const [request] = readNow(await runtimePage(pod, worker, '/now'));
    expect(request).toEqual({ id: 'b-0', what: 'GET /busy', ms: expect.any(Number) });
    expect((await pod.get('/?id=refused')).headers['x-corelane-error']).toBe('queue-full');
    pod.release('busy-0', 'busy-1');
    await Promise.all([...busy, ...waiting]);
    // The counters have seen it, though nobody waits any more.
    await says(/; .* % failed: queue-full 1\n(.*\n)?Now: \d of 2 workers are busy, 1 were refused$/m, before, pod);
    expect(readNow(await runtimePage(pod, worker, '/now'))).toEqual([]);
    // A shorter one in the same place.
    const short = pod.get('/?hold=1&id=s', { headers: { 'X-Request-ID': 's' } });
    const next = await pod.begun('s');
    expect(readNow(await runtimePage(pod, next.worker, '/now'))).toMatchObject([{ id: 's', what: 'GET /' }]);
    pod.release('s');
    await short;
  });
});
