/**
 * Something that renders need hangs: the workers are busy, not down (I6). Here because time-outs of 1 and 2 s must
 * outlast what the tests look at meanwhile.
 */
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { error, stopWatching, watchReadiness } from './hanging.ts';

const QUEUE_LENGTH = 3;

let pod: Pod;
beforeAll(async () => {
  pod = await Pod.start({
    workersPerPod: 2,
    timeouts: { render: '2s' },
    queue: { maxLength: QUEUE_LENGTH, timeout: '1s' },
  });
});
afterAll(() => pod?.stop());
afterEach(stopWatching);
beforeEach(() => Promise.all([0, 1].map((worker) => until(`worker-${worker} is up`, () => pod.isUp(worker)))));

const noneIsUp = async () => !(await pod.isUp(0)) && !(await pod.isUp(1));

test('workers that all wait for a dependency are busy: the pod stays ready, queues, refuses with a true reason, and is back at once', async () => {
  const readiness = watchReadiness(pod);
  const hung = [0, 1].map((n) => pod.get(`/?until=dependency&id=hung-${n}`));
  await Promise.all([0, 1].map((n) => pod.begun(`hung-${n}`)));
  await until('no worker takes requests', noneIsUp);
  // Three wait, in the waiting room and in the queue; the fourth is refused.
  const waiting = Array.from({ length: QUEUE_LENGTH }, (_unused, n) => pod.get(`/?id=in-vain-${n}`));
  const inWaitingRoom = 'haproxy_frontend_current_sessions{proxy="waiting-room"}';
  await until('two are in the waiting room', async () => (await pod.metric(inWaitingRoom)) === 2);
  await pod.queued(1);
  expect(error(await pod.get('/?id=one-too-many'))).toEqual([503, 'queue-full', '1']);
  for (const answer of await Promise.all(waiting)) expect(error(answer)).toEqual([503, 'queue-timeout', '1']);
  for (const answer of await Promise.all(hung)) expect(error(answer)).toEqual([504, 'render-timeout', undefined]);
  // The renders go on. Who waits when they end is served, within queue.timeout.
  expect(await noneIsUp()).toBe(true);
  const next = pod.get('/?id=next');
  await until('it waits', async () => (await pod.metric(inWaitingRoom)) === 1);
  pod.release('dependency');
  expect((await next).status).toBe(200);
  expect(await readiness()).toEqual(['200 ok']);
  expect(pod.events().filter(({ id }) => /in-vain|too-many/.test(id ?? ''))).toEqual([]);
});

test('with concurrency 2 the worker ends first what others wait for', async () => {
  const two = await Pod.start({ workersPerPod: 1, concurrency: 2, timeouts: { render: '1s' } });
  try {
    await until('it is up', () => two.events({ event: 'up' }).length > 0);
    const before = two.server(0);
    const hung = two.get('/?hold=1&id=hung');
    await two.begun('hung');
    const answers: number[] = [];
    const client = async (name: number) => {
      for (let n = 0; two.server(0) === before; n += 1)
        answers.push((await two.get(`/?ms=300&id=beside-${name}-${n}`, { method: 'POST' })).status);
    };
    await Promise.all([0, 1].map(client));
    expect((await hung).status).toBe(504);
    expect(new Set(answers)).toEqual(new Set([200]));
    expect((await two.supervisorLog(0)).find(({ event }) => event === 'kill')).toMatchObject({ reason: 'abandoned' });
    expect(Math.max(...two.events({ event: 'begin' }).map(({ inFlight }) => inFlight ?? 0))).toBe(2);
  } finally {
    await two.stop();
  }
});

test('no worker has ever had two requests at a time (I1)', () => {
  expect(Math.max(...pod.events({ event: 'begin' }).map(({ inFlight }) => inFlight ?? 0))).toBe(1);
});
