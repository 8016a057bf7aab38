/**
 * `concurrency: Auto`: each worker finds how many requests it gets at a time, and never has more than that (I1 in its
 * general form).
 */
import { Pod, until } from '../../e2e/harness/engine/pod.ts';
import { budget } from '../../operator/src/render/model/budget.ts';
import { numbers } from './concurrency-auto.ts';

let pod: Pod;
const { limitOf, placesOf, inLine, mostInFlight } = numbers(() => pod);

test('a dependency that hangs opens no more than max; when it answers again all are answered', async () => {
  pod = await Pod.start({ workersPerPod: 1, concurrency: 'Auto', concurrencyRange: { max: 3 } });
  try {
    const ids = Array.from({ length: 20 }, (_unused, n) => `hang-${n}`);
    const answers = ids.map((id) => pod.get(`/?until=dependency&id=${id}`));
    await until('it has opened', async () => (await limitOf(0)) === 3);
    await until('all places are taken', () => mostInFlight() === 3);
    expect([await placesOf(0), await inLine()]).toEqual([3, 3]);
    pod.release('dependency');
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual(ids.map(() => 200));
    expect(mostInFlight()).toBe(3);
  } finally {
    await pod.stop();
  }
});

test('a new pod begins where the fleet is, and so does HAProxy', async () => {
  pod = await Pod.start({ workersPerPod: 2, concurrency: 'Auto', concurrencyRange: { max: 12 } }, { median: 9 });
  try {
    for (const worker of [0, 1]) await until('it is up', () => pod.isUp(worker));
    // Of a number in between it is the one below.
    expect([await limitOf(0), await limitOf(1)]).toEqual([8, 8]);
    await until('HAProxy knows', async () => (await inLine()) === 16);
    const [first] = (await pod.supervisorLog(0)).filter(({ event }) => event === 'concurrency');
    expect(first).toMatchObject({ from: 1, to: 8, because: 'about so many is the median of the fleet' });
    const ids = Array.from({ length: 16 }, (_unused, n) => `first-${n}`);
    const answers = ids.map((id) => pod.get(`/?until=go&id=${id}`));
    await Promise.all(ids.map((id) => pod.begun(id)));
    pod.release('go');
    expect((await Promise.all(answers)).map(({ status }) => status)).toEqual(ids.map(() => 200));
  } finally {
    await pod.stop();
  }
});

test('a number beyond the bounds is none: not 0, which HAProxy takes for no limit', async () => {
  pod = await Pod.start({ concurrency: 'Auto', concurrencyRange: { max: 5 } }, { workers: false });
  try {
    const say = (limit: number) => pod.runtimeApi(`set maxconn server workers/worker-0 ${limit}`);
    // So many may go on without a slot, and are requests to HAProxy.
    const most = 5 + budget(pod.spec).withoutSlot;
    await say(5);
    await until('it counts', async () => (await inLine()) === 6);
    for (const [nonsense, bound] of [
      [0, 1],
      [most + 1, most],
      [0, 1],
      [4_000_000_000, most],
    ] as const) {
      await say(nonsense);
      await until('it is the bound', async () => (await placesOf(0)) === bound && (await inLine()) === bound + 1);
    }
  } finally {
    await pod.stop();
  }
});
