/**
 * Something that renders need hangs: the workers are busy, not down (I6), and a render that was given up costs a
 * restart at most.
 */

import { type Answer, Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';

const QUEUE_LENGTH = 3;

let pod: Pod;
let stopWatching = () => {};
beforeAll(async () => {
  pod = await Pod.start({
    workersPerPod: 2,
    timeouts: { render: '2s' },
    queue: { maxLength: QUEUE_LENGTH, timeout: '1s' },
  });
});
afterAll(() => pod?.stop());
afterEach(() => stopWatching());
beforeEach(() => Promise.all([0, 1].map((worker) => until(`worker-${worker} is up`, () => pod.isUp(worker)))));

const error = ({ status, headers }: Answer) => [status, headers['x-corelane-error'], headers['retry-after']];
const noneIsUp = async () => !(await pod.isUp(0)) && !(await pod.isUp(1));

/** Asks for readiness again and again until it is stopped: all that it was told. */
function watchReadiness(there: Pod) {
  let goesOn = true;
  stopWatching = () => {
    goesOn = false;
  };
  const told = new Set<string>();
  const watching = (async () => {
    while (goesOn) {
      const { status, body } = await there.get('/readyz', { port: PORTS.health });
      told.add(`${status} ${body.trim()}`);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  })();
  return async () => {
    goesOn = false;
    await watching;
    return [...told];
  };
}

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

test('a render that was given up and never ends costs its worker a restart, and the pod stays ready', async () => {
  const readiness = watchReadiness(pod);
  const before = [0, 1].map((worker) => pod.server(worker));
  const hung = [0, 1].map((n) => pod.get(`/?hold=1&id=forever-${n}`, { headers: { 'X-Request-ID': `forever-${n}` } }));
  for (const answer of await Promise.all(hung)) expect(error(answer)).toEqual([504, 'render-timeout', undefined]);
  await until('both are replaced', () => [0, 1].every((worker) => pod.server(worker) !== before[worker]));
  expect((await pod.get('/?id=after')).status).toBe(200);
  expect(await readiness()).toEqual(['200 ok']);
  const logs = (await Promise.all([0, 1].map((worker) => pod.supervisorLog(worker)))).flat();
  const kills = logs.filter(({ event }) => event === 'kill');
  expect(kills.map(({ reason }) => reason)).toEqual(['abandoned', 'abandoned']);
  expect(kills.flatMap(({ requests }) => requests).sort()).toEqual(['forever-0', 'forever-1']);
  for (const worker of [0, 1])
    expect(await pod.runtimeMetric(worker, 'corelane_worker_restarts_total', 'abandoned')).toBe(1);
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
