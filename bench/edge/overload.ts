/** Three times as many browsers as can be served. */
import { arrivals } from '../fleet/arrivals.ts';
import { Corelane } from '../systems/corelane.ts';
import { startNginx } from '../systems/nginx.ts';
import { p99Of, requestsOf, seenBy } from './compute.ts';
import { load, type Reachable } from './parts.ts';
import type { Result, Row, Scenario } from './scenario.ts';
import { inTurn, turn } from './turns.ts';

const WORKERS = 4;
const LOAD = 3;
const SECONDS = 6;
/** Renders of 50 ms: half of what fleet/arrivals.ts has. */
const SCALE = 0.5;
/** A person's patience. */
const PATIENCE_MS = 5_000;
const SEED = 3;
const SHELL = '<!doctype html><title>shop</title><p>Many people want this page just now.</p>';
const BROWSER = {
  Accept: 'text/html,application/xhtml+xml',
  'Sec-Fetch-Mode': 'navigate',
  'User-Agent': 'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36',
};

async function measure(system: string, running: Reachable): Promise<Row> {
  const requests = requestsOf(arrivals(WORKERS, LOAD, SECONDS / SCALE, SEED), SCALE);
  const group = { name: 'browsers', headers: BROWSER, keeps: ['content-type', 'x-corelane-error'], requests };
  const records = await load(running, [[group]], { timeoutMs: PATIENCE_MS });
  return { system, values: { ...seenBy(records), p99: p99Of(records, 'browsers') } };
}

async function run(): Promise<Result> {
  const fallback = { html: SHELL };
  const rows = await inTurn(
    turn(Corelane.start({ workersPerPod: WORKERS, fallback }), (system) => measure('Corelane', system)),
    turn(startNginx(WORKERS), (system) => measure('plain Node behind nginx', system)),
  );
  const { json, errors, nothing } = (rows[0] as Row).values;
  return {
    rows,
    figures: { browsers_with_json: Number(json) },
    failed: Number(json) + Number(errors) + Number(nothing),
  };
}

export const overload: Scenario = {
  key: 'overload',
  title: 'Three times as much as can be done',
  text: `${WORKERS} workers, renders of 50 ms on average (lognormal), ${LOAD} times as many browsers as can be served, for ${SECONDS} s; each leaves after ${PATIENCE_MS / 1_000} s. Corelane with \`fallback\`, all else as it is unless given. p99 of the pages that were rendered.`,
  columns: [
    { key: 'requests', head: 'requests' },
    { key: 'pages', head: 'pages' },
    { key: 'shells', head: "app's own shell" },
    { key: 'json', head: 'JSON' },
    { key: 'errors', head: 'error pages' },
    { key: 'nothing', head: 'nothing' },
    { key: 'p99', head: 'p99, ms' },
  ],
  drawn: 'pages',
  seconds: 30,
  run,
};
