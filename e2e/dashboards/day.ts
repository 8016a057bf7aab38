/** A day of the shop, in minutes: all is well, and then one thing after the other is not. */
import { getStuck, killWorkers, takeAllWorkers } from '../alerts/fleet/harm.ts';
import { Visitors } from '../alerts/fleet/visitors.ts';
import { type Pod, until } from '../harness/engine/pod.ts';
import type { Shop } from './shop.ts';

/** When something began. */
export interface Mark {
  atS: number;
  what: string;
}

/** Each visit its own page, so that the cache has none of them, and some a page that it keeps. */
function visits(parameters: string): () => string {
  let count = 0;
  return () => {
    count += 1;
    return count % 4 === 0 ? '/?header=cache-control:max-age=1&id=kept' : `/?${parameters}&id=visit&n=${count}`;
  };
}

const now = () => Date.now() / 1000;

/** @returns what began when, as Prometheus counts time */
export async function liveThrough(shop: Shop): Promise<Mark[]> {
  const { fleet, prometheus } = shop;
  const marks: Mark[] = [];
  const begins = (what: string) => marks.push({ atS: now(), what });
  const value = async (query: string) => (await prometheus.query(query))[0] ?? 0;
  const others: Visitors[] = [];
  const come = (parameters: string) => others.push(Visitors.start(fleet, visits(parameters)));
  const go = () => Promise.all(others.splice(0).map((some) => some.stop()));

  begins('all is well');
  const visitors = Visitors.start(fleet, visits('ms=20'));
  try {
    await until('there are rates', () => value('renderservice:corelane_requests:rate5m'));
    await shop.scrapes(20);

    begins('pages become heavy');
    come('spin=250');
    come('spin=250');
    await shop.scrapes(20);
    await go();

    begins('a crowd, while all workers are taken');
    const release = await takeAllWorkers(fleet);
    for (let n = 0; n < 8; n += 1) come('ms=50');
    await shop.scrapes(3);
    await release();
    await until('the operator has added a pod', () => value('sum(corelane_scaling_decisions_total)'), 120_000);
    await go();

    begins('the program answers 500');
    come('status=500');
    await shop.scrapes(10);
    await go();

    begins('renders get stuck, workers are killed');
    await getStuck(fleet.pods[0] as Pod, 3);
    await killWorkers(fleet, 2);
    await shop.scrapes(5);

    begins('a rollout');
    await shop.beginRollout();
    come('ms=40');
    await shop.scrapes(15);

    begins('the API server is away, then another operator leads');
    await shop.interruptApi(() => shop.scrapes(6));
    await shop.scrapes(6);

    begins('a pod is gone');
    await shop.losePod();
    await until('its target is down', () => value('count(up{renderservice!=""} == 0)'));
    await shop.scrapes(8);
  } finally {
    await Promise.all([go(), visitors.stop()]);
  }
  return marks;
}
