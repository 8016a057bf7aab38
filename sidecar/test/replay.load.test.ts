/**
 * `replay` with the other policies, methods and bodies, which the gate has no time for; and where clocks of several
 * processes are compared, or a process stands still for so long.
 */
import { docker } from '../../e2e/harness/engine/docker.ts';
import { KEEPS_LONG, Pod, type PodOptions, until } from '../../e2e/harness/engine/pod.ts';
import { figure } from '../../operator/test/support/figure.ts';
import { expected, expectKept, expectOutcome, idleOf, LARGE_BODY, outcomeOf, type Policy, SESSIONS } from './replay.ts';

/** With `Safe`. */
const IN_GATE = ['GET', 'POST'];

describe.each(Object.entries(expected))('replay: %s', (replay, methods) => {
  let pod: Pod;
  beforeAll(async () => {
    pod = await Pod.start({ workersPerPod: 2, replay: replay as Policy }, KEEPS_LONG);
  });
  afterAll(() => pod?.stop());

  const isSafe = replay === 'Safe';
  const others = Object.entries(methods).filter(([method]) => !isSafe || !IN_GATE.includes(method));
  test.each(others)('kill -9 of the worker that renders a %s', (method, outcome) =>
    expectOutcome(pod, replay, method, outcome),
  );

  test('kill -9 of the worker that renders a HEAD of a sign-in', () =>
    expectOutcome(pod, replay, 'HEAD', expected.Never.GET, '/auth/github'));

  if (isSafe) return;

  test('a request that kills every worker it gets has at most two, and the pod serves on', async () => {
    const id = `${replay}-poison`;
    const { status, headers } = await pod.get(`/?die=1&id=${id}`);
    expect([status, headers['x-corelane-error']]).toEqual([502, 'worker-died']);
    expect(pod.events({ event: 'begin', id })).toHaveLength(replay === 'Never' ? 1 : 2);
    for (const worker of [0, 1]) await until('the worker is back', () => pod.isUp(worker));
    expect((await pod.get('/?id=after')).status).toBe(200);
  });
});

/**
 * Whether a request was begun does not depend on the policy, and what follows from it is above: one policy is enough.
 */
describe('replay: Safe', () => {
  let pod: Pod;
  beforeAll(async () => {
    pod = await Pod.start({ workersPerPod: 2, replay: 'Safe' }, KEEPS_LONG);
  });
  afterAll(() => pod?.stop());

  test.each([
    [LARGE_BODY.length, 'a new'],
    [LARGE_BODY.length, 'a kept'],
  ])('a POST of %i bytes that its worker has not begun is not lost over %s connection', (bytes, connection) =>
    expectKept(pod, 'Safe', bytes, connection),
  );

  test('a POST that was not begun is not lost although the supervisor gets no CPU for half a second', async () => {
    const supervisor = Number(await docker('inspect', '--format', '{{.State.Pid}}', pod.workers[0] ?? ''));
    const frozen = pod.server(0);
    await pod.kill(0, frozen, 'STOP');
    const ids = ['one', 'other'].map((name) => `Safe-slow-supervisor-${name}`);
    const answers = ids.map((id) => pod.get(`/?id=${id}`, { method: 'POST' }));
    expect((await Promise.race(answers)).status).toBe(200);
    await until('it has been sent the other one', async () => (await pod.metric(SESSIONS)) === 1);
    process.kill(supervisor, 'SIGSTOP');
    await pod.kill(0, frozen, 'KILL');
    // Not a wait for something: this is the stall.
    await new Promise((resolve) => setTimeout(resolve, 500));
    process.kill(supervisor, 'SIGCONT');
    for (const answer of answers) expect(outcomeOf(await answer)).toBe('200');
    for (const id of ids) expect(pod.events({ event: 'begin', id })).toHaveLength(1);
    await until('the worker is back', () => pod.isUp(0));
  });

  test('a POST that was begun by a process that is killed is not begun again', async () => {
    // Three times: a supervisor that has no time to answer would hide that its answer is misread.
    for (const round of [1, 2, 3]) {
      const id = `Safe-begun-${round}`;
      const answered = pod.get(`/?hold=block&id=${id}`, { method: 'POST', body: LARGE_BODY });
      const { worker, pid } = await pod.begun(id);
      await pod.kill(worker, pid, 'KILL');
      pod.release(id);
      const { status, headers } = await answered;
      const begun = pod.events({ event: 'begin', id });
      expect([status, headers['x-corelane-error'], begun.length]).toEqual(expected.Safe.POST);
      await until('the worker is back', () => pod.isUp(worker));
    }
  });

  test('a POST that was begun before a container is not begun again, although HAProxy has stood still', async () => {
    const id = `Safe-before`;
    const sentAt = performance.now();
    const answered = pod.get(`/?hold=1&id=${id}`, { method: 'POST', body: 'x' });
    const { worker } = await pod.begun(id);
    await docker('pause', pod.haproxy);
    const knownMs = performance.now() - sentAt;
    try {
      const starts = pod.events({ event: 'up', worker }).length;
      await docker('kill', '--signal', 'KILL', pod.workers[worker] ?? '');
      await docker('start', pod.workers[worker] ?? '');
      await until('the next one listens', () => pod.events({ event: 'up', worker }).length > starts);
      const upAt = performance.now();
      await until('it is older than what HAProxy knows', () => performance.now() - upAt > knownMs + 500);
    } finally {
      await docker('unpause', pod.haproxy);
    }
    pod.release(id);
    const { status, headers } = await answered;
    const begun = pod.events({ event: 'begin', id });
    expect([status, headers['x-corelane-error'], begun.length]).toEqual(expected.Safe.POST);
    await until('the worker is back', () => pod.isUp(worker));
  });
});

test('workers die one after the other: a second try waits until no more do', async () => {
  const pod = await Pod.start({ workersPerPod: 3, queue: { timeout: '60s' } });
  try {
    for (const worker of [0, 1, 2]) await until('up', () => pod.isUp(worker));
    const ids = ['first', 'later'];
    const answers = ids.map((id) => pod.get(`/?hold=1&die=once&id=${id}`));
    for (const id of ids) await pod.begun(id);
    // Some milliseconds lie between them; the third worker is free all the time.
    pod.release(...ids);
    for (const answer of answers) expect((await answer).status).toBe(200);
    const lastDeath = Math.max(...pod.events({ event: 'die' }).map(({ at }) => at));
    for (const id of ids) {
      const [, second] = pod.events({ event: 'begin', id });
      figure(`second try of ${id}: wait after the last death`, (second?.at ?? Number.NaN) - lastDeath, 'ms', '> 95 ms');
      // 0.1 s as HAProxy's clock has it, which counts whole milliseconds.
      expect(second?.at).toBeGreaterThan(lastDeath + 95);
    }
  } finally {
    await pod.stop();
  }
});

/** Nor does a check take out a worker whose port is closed: the request that it refuses does. */
const CHECKS_PATIENTLY: PodOptions = {
  edit: (file, text) =>
    (KEEPS_LONG.edit?.(file, text) ?? text).replace('fall 2 rise 1 observe', 'fall 100 rise 1 observe'),
};

test('a POST that one worker refuses and another one dies with: the other one is asked whether it was begun', async () => {
  const pod = await Pod.start({ workersPerPod: 2, queue: { timeout: '60s' } }, CHECKS_PATIENTLY);
  try {
    const post = (id: string, query: string) => pod.get(`/?id=${id}&${query}`, { method: 'POST' });
    const idle = () => Promise.all([0, 1].map((worker) => pod.metric(idleOf(worker))));
    await until('one connection of each is kept', async () => {
      await Promise.all(['one', 'other'].map((id) => post(id, 'ms=50')));
      return (await idle()).every((count) => count > 0);
    });
    const before = post('before', 'hold=1');
    const { worker: busy, port, pid } = await pod.begun('before');
    const refusing = 1 - busy;
    const supervisor = Number(await docker('inspect', '--format', '{{.State.Pid}}', pod.workers[refusing] ?? ''));
    process.kill(supervisor, 'SIGSTOP');
    await pod.kill(refusing, pod.server(refusing), 'KILL');
    // Over a kept connection it would be lost, and the supervisor cannot say that it was not begun.
    await until('nothing of it is left', async () => (await pod.metric(idleOf(refusing))) === 0);
    const answered = post('begun', 'hold=block');
    await until('it is refused', async () => !(await pod.isUp(refusing)));
    process.kill(supervisor, 'SIGCONT');
    // The end of a new connection HAProxy would see itself.
    pod.release('before');
    expect((await before).status).toBe(200);
    expect(await pod.begun('begun')).toMatchObject({ worker: busy, port });
    await until('the other one could have it', () => pod.isUp(refusing));
    await pod.kill(busy, pid, 'KILL');
    pod.release('begun');
    const { status, headers } = await answered;
    expect([status, headers['x-corelane-error']]).toEqual([502, 'worker-died']);
    expect(pod.events({ event: 'begin', id: 'begun' })).toHaveLength(1);
  } finally {
    await pod.stop();
  }
});
