/**
 * A canary when things fail under load: pods of a side die, freeze or are full, and no request is lost. A load test: it
 * counts shares and times, with clients that ask all the time.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { docker, logs } from '../../e2e/harness/engine/docker.ts';
import { type Answer, type Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import type { RenderServiceSpecInput } from '../../operator/src/api/spec.ts';
import { figure } from '../../operator/test/support/figure.ts';
import { statuses } from './cache.ts';
import { CanaryFleet, canaryAt, fallbacks, IN_QUEUE, most } from './canary.ts';

const SPEC: Partial<RenderServiceSpecInput> = { workersPerPod: 1, queue: { maxLength: 100, timeout: '30s' } };

let all: CanaryFleet;
let stable: Pod;
let canary: Pod;
async function start(stablePods = 1, canaryPods = 1, input = SPEC): Promise<void> {
  all = await CanaryFleet.start(stablePods, canaryPods, input);
  [stable, canary] = [all.stable[0] as Pod, all.canary[0] as Pod];
  await all.untilSidesKnown();
}
afterEach(() => all?.stop());

/** Requests all the time, until it is told to end. */
function load(pods: Pod[], { clients = 4, path = '/?ms=5&id=load', method = 'GET' } = {}) {
  const answers: Answer[] = [];
  let isOver = false;
  const client = async (number: number) => {
    for (let n = number; !isOver; n += 1) answers.push(await (pods[n % pods.length] as Pod).get(path, { method }));
  };
  const ended = Promise.all(Array.from({ length: clients }, (_unused, number) => client(number)));
  return {
    answers,
    async end() {
      isOver = true;
      await ended;
      return answers;
    },
  };
}

test.each(['removed', 'frozen'] as const)(
  'the only pod of the canary is %s under load: nothing is lost',
  async (how) => {
    await start();
    await all.set(canaryAt(5_000));
    const running = load([stable], { path: '/?ms=20&id=load' });
    await until('both render', () => all.begun('load').canary > 20 && all.begun('load').stable > 20);
    if (how === 'removed')
      await docker('rm', '--force', ...canary.workers, canary.nginx, canary.haproxy, canary.holder);
    else await Promise.all([canary.haproxy, ...canary.workers].map((container) => docker('pause', container)));
    const before = running.answers.length;
    try {
      await until('it goes on without it', () => running.answers.length > before + 100);
      expect(statuses(await running.end())).toEqual([200]);
      expect(await until('it is told', () => fallbacks(stable, 'canary'))).toBeGreaterThan(0);
      // Who does not answer is left alone: nobody waits for it.
      const answers = await all.send(20, () => ['/?id=after'], { pods: [stable], at: 1 });
      const slowestMs = Math.max(...answers.map(({ elapsedMs }) => elapsedMs));
      figure(`slowest of 20 requests after the only canary pod is ${how}`, slowestMs, 'ms', '< 1000 ms');
      expect(slowestMs).toBeLessThan(1_000);
    } finally {
      if (how === 'frozen')
        await Promise.all([canary.haproxy, ...canary.workers].map((container) => docker('unpause', container)));
    }
  },
  120_000,
);

test('the HAProxy of a pod of the canary dies under load of what may be rendered once', async () => {
  await start();
  await all.set(canaryAt(5_000));
  const running = load([stable], { path: '/?ms=5&id=load', method: 'POST' });
  await until('both render', () => all.begun('load').canary > 20);
  await canary.killProxy(canary.haproxy, 'haproxy', { withChildren: true });
  const before = all.begun('load').canary;
  await until('it is back', () => all.begun('load').canary > before + 50);
  const answers = await running.end();
  const failed = answers.filter(({ status }) => status !== 200);
  figure('POSTs lost when HAProxy of a canary pod dies', failed.length, `of ${answers.length}`, '<= 4');
  // In a worker of the pod when it died: nobody knows whether it had begun.
  expect(failed.length).toBeLessThanOrEqual(4);
  for (const { headers } of failed) expect(headers['x-corelane-error']).toBe('worker-died');
});

test('a full canary stays ready: that the stable side has room helps nobody who is on this one', async () => {
  await start(1, 1, { workersPerPod: 1, queue: { maxLength: 3, timeout: '60s' } });
  await all.set(canaryAt(10_000));
  const ids = Array.from({ length: 4 }, (_unused, n) => `shed-${n}`);
  const held = ids.map((id) => stable.get(`/?hold=1&id=${id}`));
  await until('one is rendered and three wait', async () => (await canary.metric(IN_QUEUE)) === 3);
  const endsAt = performance.now() + 6_000;
  while (performance.now() < endsAt) {
    expect((await canary.get('/readyz', { port: PORTS.health })).body).toBe('ok');
    await sleep(200);
  }
  for (const pod of all.pods) pod.release(...ids);
  expect(statuses(await Promise.all(held))).toEqual([200]);
}, 60_000);

test('a second try is for the stable side, though the canary has another worker', async () => {
  await start(1, 1, { workersPerPod: 2 });
  await all.set(canaryAt(10_000));
  expect((await stable.get('/?die=1&id=twice')).status).toBe(502);
  expect(all.begun('twice')).toEqual({ canary: 1, stable: 1 });
});

test('hand-overs both ways at once: one request at a time in each worker, none lost, none rendered twice', async () => {
  await start(2, 2, {
    workersPerPod: 2,
    queue: { maxLength: 100, timeout: '30s' },
    pooling: { acrossRevisions: true },
  });
  await all.set(canaryAt(5_000));
  const answers = await all.send(2_000, (n) => [`/?ms=3&id=both-${n}`], { at: 40 });
  expect(statuses(answers)).toEqual([200]);
  const begun = all.pods.flatMap((pod) => pod.events({ event: 'begin' })).filter(({ id }) => id?.startsWith('both-'));
  expect(new Set(begun.map(({ id }) => id)).size).toBe(2_000);
  expect(begun).toHaveLength(2_000);
  for (const pod of all.pods) expect(most(pod)).toBe(1);
  // Pods that are busy do not undo what was decided; where the machine is, some questions are not answered in time.
  const off = Math.abs(all.begun('both-').canary - 1_000);
  const told = async () => {
    const counts = all.pods.flatMap((pod) => [fallbacks(pod, 'canary'), fallbacks(pod, 'stable')]);
    return off <= 20 + (await Promise.all(counts)).reduce((sum, count) => sum + count, 0);
  };
  figure('hand-overs both ways: requests off the canary share of 50 %', off, 'of 2000', '<= 20 plus fallbacks');
  await until('all that are on the other side are told', told);
});

test('a HAProxy that dies in a deciding pod comes back with the share', async () => {
  await start();
  await all.set(canaryAt(2_500));
  await stable.killProxy(stable.haproxy, 'haproxy', { withChildren: true });
  const answers = await all.send(20, () => ['/?id=first'], { pods: [stable] });
  expect(statuses(answers)).toEqual([200]);
  await until('it has found the canary again', async () => {
    await all.send(20, () => ['/?id=again'], { pods: [stable] });
    return all.begun('again').canary > 0;
  });
  await all.send(1_000, () => ['/?id=back'], { pods: [stable] });
  const off = Math.abs(all.begun('back').canary - 250);
  figure('HAProxy of the deciding pod restarts: requests off the canary share of 25 %', off, 'of 1000', '<= 5');
  expect(off).toBeLessThanOrEqual(5);
  expect(await logs(stable.haproxy)).not.toMatch(/runtime error|aborting/);
});

test('an abort at half of the requests under load: the canary begins none any more, and none is lost', async () => {
  await start(2, 1);
  await all.set(canaryAt(5_000));
  const running = load(all.pods, { clients: 6 });
  await until('both render', () => all.begun('load').canary > 100);
  await all.set(canaryAt(0));
  // What was on its way.
  await until(
    'its workers idle',
    async () => (await canary.metric('haproxy_backend_current_sessions{proxy="workers"}')) === 0,
  );
  const before = all.begun('load');
  await until('the others go on', () => all.begun('load').stable > before.stable + 300);
  expect(all.begun('load').canary).toBe(before.canary);
  // It is over, and its pods serve what comes to them.
  await all.set(canaryAt(5_000));
  await all.set(undefined);
  await until('all pods go on', () => all.begun('load').canary > before.canary + 100);
  expect(statuses(await running.end())).toEqual([200]);
});
