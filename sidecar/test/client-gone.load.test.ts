/**
 * Clients that leave under overload: workers work for those that are there. A load test: it compares the clocks of a
 * worker and of the test, and counts what happens by chance.
 */
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { figure } from '../../operator/test/support/figure.ts';

let pod: Pod;
beforeAll(async () => {
  pod = await Pod.start({ workersPerPod: 2, timeouts: { render: '5m' }, queue: { maxLength: 200, timeout: '60s' } });
});
afterAll(() => pod?.stop());

const begun = (prefix: string) => pod.events({ event: 'begin' }).filter(({ id }) => id?.startsWith(prefix));

test('one client after the other leaves a render that waits, and the next visitor waits for none of them', async () => {
  const ids = Array.from({ length: 24 }, (_unused, n) => `waits-${n}`);
  for (const id of ids) {
    const leave = new AbortController();
    const left = pod.get(`/?hold=1&id=${id}`, { signal: leave.signal }).catch(() => 'gone');
    await pod.begun(id);
    leave.abort();
    expect(await left).toBe('gone');
  }
  const began = performance.now();
  expect((await pod.get('/?ms=20&id=after-them')).status).toBe(200);
  figure('wait behind 24 clients that have left', performance.now() - began, 'ms', '< 5 s');
  expect(performance.now() - began).toBeLessThan(5_000);
  pod.release(...ids);
  for (const id of ids) await until('it has ended', () => pod.events({ event: 'end', id })[0]);
});

test('under overload, with a third of all clients leaving at any time, workers work for those that are there', async () => {
  const leftAt = new Map<string, number>();
  const call = async (n: number) => {
    await new Promise((resolve) => setTimeout(resolve, n * 15));
    // Spread over all phases: before, in and after the queue.
    const signal = n % 3 === 0 ? AbortSignal.timeout(1 + ((n * 37) % 1500)) : undefined;
    return pod.get(`/?ms=80&id=random-${n}`, { signal }).then(
      ({ status }) => status,
      () => leftAt.set(`random-${n}`, Date.now()) && 'gone',
    );
  };
  const results = await Promise.all(Array.from({ length: 150 }, (_unused, n) => call(n)));
  expect(results.filter((_unused, n) => n % 3 !== 0)).toEqual(Array(100).fill(200));
  await until('all renders end', () => {
    const ended = pod.events({ event: 'end' }).filter(({ id }) => id?.startsWith('random-')).length;
    return ended === begun('random-').length;
  });
  expect(Math.max(...pod.events({ event: 'begin' }).map(({ inFlight }) => inFlight ?? 0))).toBe(1);
  // One that stands between an abandoned render and its worker cannot be called back: few, never one after the other.
  const inVain = begun('random-').filter(({ id, at }) => (leftAt.get(id ?? '') ?? Number.POSITIVE_INFINITY) < at - 100);
  figure('clients that left before their answer', leftAt.size, 'of 150', '> 10');
  figure('renders begun for clients that had left', inVain.length, `of ${leftAt.size}`, '< 25 %');
  expect(leftAt.size).toBeGreaterThan(10);
  expect(inVain.length).toBeLessThan(leftAt.size / 4);
});
