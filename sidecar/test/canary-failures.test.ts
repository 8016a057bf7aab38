/** A canary when things fail: pods of a side are dead, frozen or full, and every request is served all the same. */
import { setTimeout as sleep } from 'node:timers/promises';
import { docker, logs } from '../../e2e/harness/engine/docker.ts';
import { type Answer, type Pod, until } from '../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../operator/src/api/names.ts';
import type { RenderServiceSpecInput } from '../../operator/src/api/spec.ts';
import { CanaryFleet, canaryAt, type Side, sideMetric } from './canary.ts';

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

const statuses = (answers: Answer[]) => [...new Set(answers.map(({ status }) => status))];
const fallbacks = (pod: Pod, side: Side) => sideMetric(pod, 'fallbacks', side).then((value) => value || 0);
const most = (pod: Pod) => Math.max(...pod.events({ event: 'begin' }).map(({ inFlight = 0 }) => inFlight));

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
      expect(Math.max(...answers.map(({ elapsedMs }) => elapsedMs))).toBeLessThan(1_000);
    } finally {
      if (how === 'frozen')
        await Promise.all([canary.haproxy, ...canary.workers].map((container) => docker('unpause', container)));
    }
  },
  120_000,
);

test('a pod that has not heard that a canary is over sends nobody there', async () => {
  await start();
  await all.set(canaryAt(10_000));
  const get = async () => all.renderedBy(await stable.get('/?id=cut-off'));
  await until('it is sent to the canary', async () => (await get()) === 'canary');
  await all.set(canaryAt(0), [canary]);
  const answers = await all.send(40, (n) => [`/?id=over-${n}`], { pods: [stable] });
  expect(statuses(answers)).toEqual([200]);
  expect(all.begun('over-')).toEqual({ canary: 0, stable: 40 });
});

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
  // In a worker of the pod when it died: nobody knows whether it had begun.
  expect(failed.length).toBeLessThanOrEqual(4);
  for (const { headers } of failed) expect(headers['x-corelane-error']).toBe('worker-died');
});

test('no worker of the canary is up: its requests are served by the stable side, wherever they come in', async () => {
  await start();
  await all.set(canaryAt(10_000));
  await Promise.all(canary.workers.map((worker) => docker('rm', '--force', worker)));
  // Who comes before that waits for a worker, as in any pod whose workers are being started again.
  await until('it is known', async () => !(await canary.isUp(0)) && !(await canary.isUp(0, 'workers-alive')));
  const answers = await all.send(40, () => ['/?id=down']);
  expect(statuses(answers)).toEqual([200]);
  expect(all.begun('down')).toEqual({ canary: 0, stable: 40 });
});

test('a full canary: what finds no place in its queue stays, and no queue is longer than it may be', async () => {
  await start(1, 1, { workersPerPod: 1, queue: { maxLength: 3, timeout: '30s' } });
  await all.set(canaryAt(10_000));
  const ids = Array.from({ length: 4 }, (_unused, n) => `full-${n}`);
  const held = ids.map((id) => stable.get(`/?hold=1&id=${id}`));
  const waiting = 'haproxy_server_current_queue{proxy="line",server="slots"}';
  await until('one is rendered and three wait', async () => (await canary.metric(waiting)) === 3);
  const before = await fallbacks(stable, 'canary');
  // The stable side has a worker.
  expect((await stable.get('/?id=stays')).status).toBe(200);
  expect(all.sideOf('stays')).toBe('stable');
  await until('it is counted', async () => (await fallbacks(stable, 'canary')) === before + 1);
  expect(await canary.metric(waiting)).toBe(3);
  // So it is for its own clients.
  expect((await canary.get('/?id=moves')).status).toBe(200);
  expect(all.sideOf('moves')).toBe('stable');
  expect(await (await canary.get('/corelane/metrics', { port: 8999 })).body).toContain('\ncorelane_queue_length 3\n');
  for (const pod of all.pods) pod.release(...ids);
  expect(statuses(await Promise.all(held))).toEqual([200]);
  expect(most(canary)).toBe(1);
});

test('a full canary stays ready: that the stable side has room helps nobody who is on this one', async () => {
  await start(1, 1, { workersPerPod: 1, queue: { maxLength: 3, timeout: '60s' } });
  await all.set(canaryAt(10_000));
  const ids = Array.from({ length: 4 }, (_unused, n) => `shed-${n}`);
  const held = ids.map((id) => stable.get(`/?hold=1&id=${id}`));
  const waiting = 'haproxy_server_current_queue{proxy="line",server="slots"}';
  await until('one is rendered and three wait', async () => (await canary.metric(waiting)) === 3);
  const endsAt = performance.now() + 6_000;
  while (performance.now() < endsAt) {
    expect((await canary.get('/readyz', { port: PORTS.health })).body).toBe('ok');
    await sleep(200);
  }
  for (const pod of all.pods) pod.release(...ids);
  expect(statuses(await Promise.all(held))).toEqual([200]);
}, 60_000);

test('who goes while he waits in a pod of the other side is not rendered', async () => {
  await start();
  await all.set(canaryAt(10_000));
  const held = stable.get('/?hold=1&id=held');
  await canary.begun('held');
  const gone = new AbortController();
  const leaves = stable.get('/?id=leaves', { signal: gone.signal }).catch(() => 'gone');
  const waiting = 'haproxy_server_current_queue{proxy="line",server="slots"}';
  await until('it waits', async () => (await canary.metric(waiting)) === 1);
  gone.abort();
  expect(await leaves).toBe('gone');
  await until('it has left', async () => (await canary.metric(waiting)) === 0);
  canary.release('held');
  expect((await held).status).toBe(200);
  expect((await stable.get('/?id=next')).status).toBe(200);
  expect(all.begun('leaves')).toEqual({ canary: 0, stable: 0 });
});

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
  expect(Math.abs(all.begun('back').canary - 250)).toBeLessThanOrEqual(5);
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
