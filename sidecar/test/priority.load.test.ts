/** The order of classes between pods, which takes a fleet; and under more load than the workers can bear. */
import { Fleet } from '../../e2e/harness/engine/fleet.ts';
import { type Call, Pod, until } from '../../e2e/harness/engine/pod.ts';
import { figure } from '../../operator/test/support/figure.ts';
import { begun, CRAWLER, enqueue, FULL_TOTAL, keepBusy, PERSON, REFUSED_TOTAL } from './priority.ts';

test('what a pod hands over is the first in this order', async () => {
  const fleet = await Fleet.start(2, { workersPerPod: 1, queue: { timeout: '60s' }, priority: {} });
  try {
    const [home, other] = fleet.pods as [Pod, Pod];
    const busy = [await keepBusy(home)];
    // Not by the way through the first one.
    const there = await keepBusy(other);
    const answers = await enqueue(home, [
      ['crawls', CRAWLER],
      ['looks', PERSON],
    ]);
    await there.release();
    await other.begun('looks');
    await Promise.all([...busy.map(({ release }) => release()), ...answers]);
    expect([...begun(home, ['crawls']), ...begun(other, ['crawls'])]).toEqual(['crawls']);
  } finally {
    await fleet.stop();
  }
});

const sum = (counts: Record<number, number>) => Object.values(counts).reduce((all, one) => all + one, 0);

/** Requests of one kind, so many at a time, until `done`; how many got what. */
async function load(
  pod: Pod,
  call: Call,
  atOnce: number,
  total: number,
  done: () => boolean,
): Promise<Record<number, number>> {
  const counts: Record<number, number> = {};
  let left = total;
  const client = async () => {
    while (left > 0 && !done()) {
      left -= 1;
      // No URL twice: a new one that many ask for is held until one of them is answered.
      const { status } = await pod.get(`/?ms=20&n=${left}`, call);
      counts[status] = (counts[status] ?? 0) + 1;
    }
  };
  await Promise.all(Array.from({ length: atOnce }, client));
  return counts;
}

test('where there is more to do than can be done, crawlers are refused, and no person is', async () => {
  const queue = { maxLength: 10, timeout: '60s' };
  const pod = await Pod.start({ workersPerPod: 2, queue, priority: {} });
  try {
    let isOver = false;
    const crawlers = load(pod, CRAWLER, 30, 20_000, () => isOver);
    await until('crawlers are refused', async () => (await pod.metric(REFUSED_TOTAL('crawler'))) > 100);
    const people = await load(pod, PERSON, 6, 300, () => false);
    isOver = true;
    const counts = await crawlers;
    figure('requests of people that are not served under overload', 300 - (people[200] ?? 0), 'of 300', '0');
    figure('requests of crawlers that are refused under overload', counts[503] ?? 0, `of ${sum(counts)}`, '> 100');
    expect(people).toEqual({ 200: 300 });
    expect(counts[503]).toBeGreaterThan(100);
    expect(await pod.metric(FULL_TOTAL)).toBe(0);
  } finally {
    await pod.stop();
  }
});
