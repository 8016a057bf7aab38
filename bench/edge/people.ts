/** People beside crawlers: three times the load, two thirds of it crawlers. */
import { arrivals } from '../fleet/arrivals.ts';
import type { Group } from '../lib/load.ts';
import { Corelane } from '../systems/corelane.ts';
import { startNginx } from '../systems/nginx.ts';
import { failedOf, p99Of, requestsOf } from './compute.ts';
import { load, type Reachable, untilServes, withSystem } from './parts.ts';
import type { Result, Row, Scenario } from './scenario.ts';

const WORKERS = 8;
const PEOPLE_LOAD = 0.4;
const SECONDS = 10;
/** Renders of 50 ms. */
const SCALE = 0.5;
const SEED = 5;
const PEOPLE = { 'User-Agent': 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/142.0.0.0 Safari/537.36' };
const CRAWLERS = { 'User-Agent': 'Googlebot/2.1 (+http://www.google.com/bot.html)' };

function group(name: string, load_: number, seed: number, headers: Group['headers']): Group {
  return { name, headers, requests: requestsOf(arrivals(WORKERS, load_, SECONDS / SCALE, seed), SCALE) };
}

/** The same people both times: the same arrivals, the same renders. */
async function measure(name: string, start: Promise<Reachable & { stop(): Promise<void> }>): Promise<Row> {
  return withSystem(start, async (system) => {
    await untilServes(system);
    const people = (phase: string) => group(phase, PEOPLE_LOAD, SEED, PEOPLE);
    const crawlers = group('crawlers', 2 * PEOPLE_LOAD, SEED + 1, CRAWLERS);
    const warmUp = {
      name: 'warm-up',
      concurrency: WORKERS,
      count: 400,
      seconds: 2,
      requests: [{ path: '/?id=a&steps=b5' }],
    };
    const records = await load(system, [[warmUp], [people('alone')], [people('beside'), crawlers]]);
    const [alone, beside] = [p99Of(records, 'alone'), p99Of(records, 'beside')];
    const requests = records.filter(({ group: own }) => own === 'beside').length;
    const failed = failedOf(records, 'alone') + failedOf(records, 'beside');
    const refused = failedOf(records, 'crawlers');
    return { system: name, values: { requests, alone, beside, ratio: beside / alone, failed, refused } };
  });
}

async function run(): Promise<Result> {
  const rows = [
    await measure('Corelane, priority: {}', Corelane.start({ workersPerPod: WORKERS, priority: {} })),
    await measure('Corelane without it', Corelane.start({ workersPerPod: WORKERS })),
    await measure('plain Node behind nginx', startNginx(WORKERS)),
  ];
  const { ratio, failed } = (rows[0] as Row).values;
  return { rows, figures: { people_p99_ratio: Number(ratio) }, failed: Number(failed) };
}

export const people: Scenario = {
  key: 'people',
  title: 'People beside crawlers',
  text: `${WORKERS} workers, renders of 50 ms on average (lognormal), people at a load of ${PEOPLE_LOAD}: alone for ${SECONDS} s, and then the same people (the same arrivals and renders) beside twice as many crawlers: ${(3 * PEOPLE_LOAD).toFixed(1)} of what the workers can do. Times of people in ms.`,
  columns: [
    { key: 'requests', head: 'people' },
    { key: 'alone', head: 'p99 alone' },
    { key: 'beside', head: 'p99 beside crawlers' },
    { key: 'ratio', head: 'ratio', digits: 2 },
    { key: 'failed', head: 'people failed' },
    { key: 'refused', head: 'crawlers refused' },
  ],
  drawn: 'beside',
  seconds: 75,
  run,
};
