/** A canary when things fail: its pods are full or without workers, and every request is served all the same. */
import { docker } from '../../e2e/harness/engine/docker.ts';
import { PATIENT_PEERS } from '../../e2e/harness/engine/haproxy-modules.ts';
import { type Pod, until } from '../../e2e/harness/engine/pod.ts';
import { statuses } from './cache.ts';
import { CanaryFleet, canaryAt, fallbacks, IN_QUEUE, most } from './canary.ts';

let all: CanaryFleet;
let stable: Pod;
let canary: Pod;
beforeAll(async () => {
  all = await CanaryFleet.start(1, 1, { workersPerPod: 1, queue: { maxLength: 3 } }, PATIENT_PEERS);
  [stable, canary] = [all.stable[0] as Pod, all.canary[0] as Pod];
  await all.untilSidesKnown();
});
afterAll(() => all?.stop());
beforeEach(async () => {
  await all.set(canaryAt(10_000));
  await until('it is sent to the canary', async () => all.renderedBy(await stable.get('/?id=probe')) === 'canary');
});
afterEach(() => all.set(undefined));

test('a pod that has not heard that a canary is over sends nobody there', async () => {
  await all.set(canaryAt(0), [canary]);
  const answers = await all.send(40, (n) => [`/?id=over-${n}`], { pods: [stable], at: 1 });
  expect(statuses(answers)).toEqual([200]);
  expect(all.begun('over-')).toEqual({ canary: 0, stable: 40 });
});

test('a full canary: what finds no place in its queue stays, and no queue is longer than it may be', async () => {
  const ids = Array.from({ length: 4 }, (_unused, n) => `full-${n}`);
  const held = ids.map((id) => stable.get(`/?hold=1&id=${id}`));
  await until('one is rendered and three wait', async () => (await canary.metric(IN_QUEUE)) === 3);
  const before = await fallbacks(stable, 'canary');
  // The stable side has a worker.
  expect((await stable.get('/?id=stays')).status).toBe(200);
  expect(all.sideOf('stays')).toBe('stable');
  await until('it is counted', async () => (await fallbacks(stable, 'canary')) === before + 1);
  expect(await canary.metric(IN_QUEUE)).toBe(3);
  // So it is for its own clients.
  expect((await canary.get('/?id=moves')).status).toBe(200);
  expect(all.sideOf('moves')).toBe('stable');
  expect(await (await canary.get('/corelane/metrics', { port: 8999 })).body).toContain('\ncorelane_queue_length 3\n');
  for (const pod of all.pods) pod.release(...ids);
  expect(statuses(await Promise.all(held))).toEqual([200]);
  expect(most(canary)).toBe(1);
});

test('who goes while he waits in a pod of the other side is not rendered', async () => {
  const held = stable.get('/?hold=1&id=held');
  await canary.begun('held');
  const gone = new AbortController();
  const leaves = stable.get('/?id=leaves', { signal: gone.signal }).catch(() => 'gone');
  await until('it waits', async () => (await canary.metric(IN_QUEUE)) === 1);
  gone.abort();
  expect(await leaves).toBe('gone');
  await until('it has left', async () => (await canary.metric(IN_QUEUE)) === 0);
  canary.release('held');
  expect((await held).status).toBe(200);
  expect((await stable.get('/?id=next')).status).toBe(200);
  expect(all.begun('leaves')).toEqual({ canary: 0, stable: 0 });
});

// The last one: its pod has no workers from then on.
test('no worker of the canary is up: its requests are served by the stable side, wherever they come in', async () => {
  await Promise.all(canary.workers.map((worker) => docker('rm', '--force', worker)));
  // Who comes before that waits for a worker, as in any pod whose workers are being started again.
  await until('it is known', async () => !(await canary.isUp(0)) && !(await canary.isUp(0, 'workers-alive')));
  const answers = await all.send(40, () => ['/?id=down'], { at: 2 });
  expect(statuses(answers)).toEqual([200]);
  expect(all.begun('down')).toEqual({ canary: 0, stable: 40 });
});
