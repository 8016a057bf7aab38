/** People beside crawlers: three times the load, two thirds of it crawlers. */
import { arrivals } from '../fleet/arrivals.ts';
import type { Group } from '../lib/load.ts';
import { Corelane } from '../systems/corelane.ts';
import { startNginx } from '../systems/nginx.ts';
import { failedOf, p99Of, requestsOf } from './compute.ts';
import { load, type Reachable, warmUp } from './parts.ts';
import type { Result, Row, Scenario } from './scenario.ts';
import { inTurn, turn } from './turns.ts';

const WORKERS = 8;
const PEOPLE_LOAD = 0.4;
/** Alone; beside crawlers twice as long. */
const SECONDS = 10;
const TIMES_BESIDE = 2;
/** Renders of 50 ms. */
const SCALE = 0.5;
const SEED = 5;
const PEOPLE = { 'User-Agent': 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/142.0.0.0 Safari/537.36' };
const CRAWLERS = { 'User-Agent': 'Googlebot/2.1 (+http://www.google.com/bot.html)' };

const PEOPLE_WORK = requestsOf(arrivals(WORKERS, PEOPLE_LOAD, SECONDS / SCALE, SEED), SCALE);
const CRAWLERS_WORK = requestsOf(arrivals(WORKERS, 2 * PEOPLE_LOAD, (TIMES_BESIDE * SECONDS) / SCALE, SEED + 1), SCALE);

/** The same people so many times, one lot after the other: the same arrivals, the same renders. */
function peopleOf(name: string, times: number): Group {
  const lots = Array.from({ length: times }, (_unused, lot) =>
    PEOPLE_WORK.map((request) => ({ ...request, atMs: (request.atMs ?? 0) + lot * SECONDS * 1_000 })),
  );
  return { name, headers: PEOPLE, keepAlive: true, requests: lots.flat() };
}

async function measure(system: string, running: Reachable): Promise<Row> {
  const crawlers = { name: 'crawlers', headers: CRAWLERS, keepAlive: true, requests: CRAWLERS_WORK };
  const phases = [[warmUp(WORKERS)], [peopleOf('alone', 1)], [peopleOf('beside', TIMES_BESIDE), crawlers]];
  const records = await load(running, phases);
  const [alone, beside] = [p99Of(records, 'alone'), p99Of(records, 'beside')];
  const requests = records.filter(({ group }) => group === 'beside').length;
  const failed = failedOf(records, 'alone') + failedOf(records, 'beside');
  const refused = failedOf(records, 'crawlers');
  return { system, values: { requests, alone, beside, ratio: beside / alone, failed, refused } };
}

async function run(): Promise<Result> {
  const rows = await inTurn(
    turn(Corelane.start({ workersPerPod: WORKERS, priority: {} }), (system) =>
      measure('Corelane, priority: {}', system),
    ),
    turn(startNginx(WORKERS), (system) => measure('plain Node behind nginx', system)),
  );
  const { ratio, failed } = (rows[0] as Row).values;
  return { rows, figures: { people_p99_ratio: Number(ratio) }, failed: Number(failed) };
}

export const people: Scenario = {
  key: 'people',
  title: 'People beside crawlers',
  text: `${WORKERS} workers, renders of 50 ms on average (lognormal), people at a load of ${PEOPLE_LOAD}: alone for ${SECONDS} s, and then the same people (the same arrivals and renders, ${TIMES_BESIDE} times over) beside twice as many crawlers for ${TIMES_BESIDE * SECONDS} s: ${(3 * PEOPLE_LOAD).toFixed(1)} of what the workers can do. Times of people in ms.`,
  columns: [
    { key: 'requests', head: 'people' },
    { key: 'alone', head: 'p99 alone' },
    { key: 'beside', head: 'p99 beside crawlers' },
    { key: 'ratio', head: 'ratio', digits: 2 },
    { key: 'failed', head: 'people failed' },
    { key: 'refused', head: 'crawlers refused' },
  ],
  drawn: 'beside',
  seconds: 80,
  run,
};
