/** `replay`: which request of a dead worker is given to another one, once, and which is answered 502 (I2). */
import { KEEPS_LONG, Pod, until } from '../../e2e/harness/engine/pod.ts';
import { expected, expectKept, expectOutcome } from './replay.ts';

describe('replay: Safe', () => {
  let pod: Pod;
  beforeAll(async () => {
    // No watchdog is to be faster with a frozen worker than the test.
    const watchdog = { stallTimeout: '29s' };
    pod = await Pod.start({ workersPerPod: 2, replay: 'Safe', replayExcept: ['/order/place'], watchdog }, KEEPS_LONG);
  });
  afterAll(() => pod?.stop());

  test.each(['GET', 'POST'] as const)('kill -9 of the worker that renders a %s', (method) =>
    expectOutcome(pod, 'Safe', method, expected.Safe[method]),
  );

  test.each([
    ['a sign-in, however it is spelled', '/shop/API//Login/%63allback/?code=1', expected.Safe.POST],
    ['a path of replayExcept', '/order/Place/7', expected.Safe.POST],
    ['a path that is nearly one', '/order/placed?next=/auth/callback', expected.Safe.GET],
  ])('kill -9 of the worker that renders a GET of %s', (_what, path, outcome) =>
    expectOutcome(pod, 'Safe', 'GET', outcome, path),
  );

  test('a GET of a sign-in that its worker has not begun is not lost', () =>
    expectKept(pod, 'Safe', 0, 'a new', ['GET', '/api/auth/callback']));

  test.each([
    [0, 'a new'],
    [0, 'a kept'],
  ])('a POST of %i bytes that its worker has not begun is not lost over %s connection', (bytes, connection) =>
    expectKept(pod, 'Safe', bytes, connection),
  );

  test('a request that kills every worker it gets has at most two, and the pod serves on', async () => {
    const id = 'Safe-poison';
    const { status, headers } = await pod.get(`/?die=1&id=${id}`);
    expect([status, headers['x-corelane-error']]).toEqual([502, 'worker-died']);
    expect(pod.events({ event: 'begin', id })).toHaveLength(2);
    for (const worker of [0, 1]) await until('the worker is back', () => pod.isUp(worker));
    expect((await pod.get('/?id=after')).status).toBe(200);
  });
});

test('a second try is first in the queue', async () => {
  const pod = await Pod.start({ workersPerPod: 1, queue: { timeout: '60s' } });
  try {
    await until('up', () => pod.isUp(0));
    const dying = pod.get('/?hold=1&die=once&id=dying');
    await pod.begun('dying');
    const others = ['a', 'b', 'c'];
    const queued = others.map((id) => pod.get(`/?hold=1&id=${id}`));
    await pod.queued(3);
    pod.release('dying');
    const begun = () => pod.events({ event: 'begin' }).map(({ id }) => id);
    await until('the one that was next has the worker', () => begun().length === 2);
    // Two of the others, and the second try.
    await pod.queued(3);
    pod.release(...others);
    for (const answer of [dying, ...queued]) expect((await answer).status).toBe(200);
    expect(begun().map((id) => id === 'dying')).toEqual([true, false, true, false, false]);
  } finally {
    await pod.stop();
  }
});
