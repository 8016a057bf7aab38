/** One fault, and how long it takes until it is named. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Browser } from 'playwright-core';
import { Prometheus, type Series } from '../../e2e/alerts/fleet/prometheus.ts';
import { Dashboard, explained } from './commands.ts';
import { FAULTS } from './faults.ts';
import { nameOf } from './reader.ts';
import { Shop } from './shop.ts';

const NAMED_WITHIN_MS = 60_000;
/** All is well for so long before. */
const CALM_S = 12;
/** Somebody looks at the page so often; it has new words each two seconds. */
const LOOK_MS = 250;
/** Words that change at once are no answer: who watches waits until they have stood as long as `explain` looks. */
const STANDS_MS = 5_000;
/** An hour of the rules is a minute. */
const TIMES = 60;
const p99 = (what: string) =>
  `histogram_quantile(0.99, sum by (le) (rate(corelane_request_${what}duration_seconds_bucket[5s])))`;
/** The rows of the service dashboard that rule things out first, with a range that is as short as the trial. */
export const QUERIES: Record<string, string> = {
  'p99, s': p99(''),
  'p99 of the queue, s': p99('queue_'),
  'p99 of renders, s': p99('render_'),
  'failed share': 'sum(rate(corelane_requests_total{code="5xx"}[5s])) / sum(rate(corelane_requests_total[5s]))',
};

/** What a reader has said that was not "nothing limits it": at first, or of the page what has stood for a while. */
export interface Naming {
  /** null: nothing within a minute. */
  named: string | null;
  /** Since the fault began. */
  seconds: number;
  lines: string[];
}

export interface Trial {
  injected: string;
  /** Before the fault both say that nothing limits it. */
  calm: boolean;
  explain: Naming;
  dashboard: Naming;
  faultAtS: number;
  series: Record<string, Series['points']>;
}

/** @param injected of the faults; who reads is not told */
export async function tried(injected: string, browser: Browser): Promise<{ trial: Trial; picture: Buffer }> {
  const shop = await Shop.start();
  let prometheus: Prometheus | undefined;
  let dashboard: Dashboard | undefined;
  try {
    const targets = await Promise.all(
      shop.pods.map(async (pod, index) => ({ pod: `pod-${index}`, address: await pod.address() })),
    );
    prometheus = await Prometheus.start(shop.fleet.network, targets, '127.0.0.1', TIMES);
    dashboard = await Dashboard.open(browser);
    const page = dashboard;
    const beganS = Date.now() / 1000;
    const said = await explained();
    await sleep(Math.max(0, 1000 * (beganS + CALM_S) - Date.now()));
    const calm = nameOf(said) === undefined && nameOf(await page.lines()) === undefined;
    const faultMs = Date.now();
    await FAULTS[injected]?.(shop);
    const [explain, onPage] = await Promise.all([
      naming(faultMs, explained),
      naming(faultMs, () => sleep(LOOK_MS).then(() => page.lines()), STANDS_MS),
    ]);
    const picture = await page.picture();
    const faultAtS = faultMs / 1000 - beganS;
    const series = await seriesOf(prometheus, beganS);
    return { trial: { injected, calm, explain, dashboard: onPage, faultAtS, series }, picture };
  } finally {
    await dashboard?.close();
    await prometheus?.stop();
    await shop.stop();
  }
}

async function naming(faultMs: number, read: () => Promise<string[]>, standsMs = 0): Promise<Naming> {
  let [last, sinceMs]: [string | null, number] = [null, 0];
  for (;;) {
    const lines = await read();
    const named = nameOf(lines) ?? null;
    const nowMs = Date.now();
    if (named !== last) [last, sinceMs] = [named, nowMs];
    const isNamed = named !== null && nowMs - sinceMs >= standsMs;
    if (isNamed || nowMs - faultMs >= NAMED_WITHIN_MS) return { named, seconds: (nowMs - faultMs) / 1000, lines };
  }
}

async function seriesOf(prometheus: Prometheus, beganS: number): Promise<Trial['series']> {
  const series: Trial['series'] = {};
  for (const [name, query] of Object.entries(QUERIES)) {
    const [first] = await prometheus.range(query, beganS, Date.now() / 1000);
    series[name] = (first?.points ?? []).map(([atS, value]) => [atS - beganS, value]);
  }
  return series;
}
