/** Pages beside files: ten times as many of these. */
import { APP_FILES, AppFiles } from '../../e2e/harness/engine/app-files.ts';
import { arrivals } from '../fleet/arrivals.ts';
import type { Group } from '../lib/load.ts';
import { Corelane } from '../systems/corelane.ts';
import { startNginx } from '../systems/nginx.ts';
import { failedOf, p99Of } from './compute.ts';
import { load, type Reachable, warmUp } from './parts.ts';
import type { Result, Row, Scenario } from './scenario.ts';
import { inTurn, turn } from './turns.ts';

const WORKERS = 4;
const PAGE_MS = 50;
const PAGE_LOAD = 0.4;
const MS_PER_SECOND = 1_000;
const PAGES_PER_SECOND = (PAGE_LOAD * WORKERS * MS_PER_SECOND) / PAGE_MS;
/** As many files as pages, and so many times as many. */
const TIMES = 10;
const SECONDS = 8;
const SEED = 7;
const BYTES = 20_000;
const FILES = 25;

/** Poisson arrivals of pages that all take the same: what they wait for is seen in them. */
function pages(name: string): Group {
  // arrivals.ts has renders of 100 ms: at half the load there come as many as wanted here.
  const work = arrivals(WORKERS, (PAGE_LOAD * 100) / PAGE_MS, SECONDS, SEED);
  const requests = work.map(({ at }) => ({ path: `/?id={id}&steps=b${PAGE_MS}`, atMs: at }));
  return { name, keepAlive: true, requests };
}

/**
 * At a rate that the client keeps, over kept connections as browsers have them: what is asked for here is what files do
 * to pages, not how many connections this machine can open.
 */
function files(name: string, times: number): Group {
  const everyMs = MS_PER_SECOND / (PAGES_PER_SECOND * times);
  const count = Math.floor((SECONDS * MS_PER_SECOND) / everyMs);
  const requests = Array.from({ length: count }, (_unused, n) => ({
    path: `/files/${n % FILES}.js`,
    atMs: n * everyMs,
  }));
  return { name, keepAlive: true, requests };
}

async function measure(system: string, running: Reachable): Promise<Row> {
  const phases = [[warmUp(WORKERS)], [pages('once'), files('files', 1)], [pages('ten'), files('ten files', TIMES)]];
  const records = await load(running, phases);
  const [once, ten] = [p99Of(records, 'once'), p99Of(records, 'ten')];
  const failed = ['once', 'ten', 'files', 'ten files'].reduce((sum, group) => sum + failedOf(records, group), 0);
  return { system, values: { once, ten, ratio: ten / once, files: p99Of(records, 'ten files'), failed } };
}

async function run(): Promise<Result> {
  const script = 'x'.repeat(BYTES);
  const app = new AppFiles(
    Object.fromEntries(Array.from({ length: FILES }, (_unused, n) => [`files/${n}.js`, script])),
  );
  const { options } = app;
  const assets = [{ path: '/files/', from: `${APP_FILES}/files`, immutable: true }];
  try {
    const corelane = Corelane.start({ workersPerPod: WORKERS, assets }, 'corelane', { options });
    const rows = await inTurn(
      turn(corelane, (system) => measure('Corelane', system)),
      turn(startNginx(WORKERS, { options }), (system) => measure('plain Node behind nginx', system)),
    );
    const { ratio, failed } = (rows[0] as Row).values;
    return { rows, figures: { html_p99_ratio: Number(ratio) }, failed: Number(failed) };
  } finally {
    app.remove();
  }
}

export const filesBeside: Scenario = {
  key: 'files',
  title: 'Pages beside files',
  text: `${WORKERS} workers, pages of ${PAGE_MS} ms at a load of ${PAGE_LOAD}, ${PAGES_PER_SECOND} a second, for ${SECONDS} s each: beside as many files of ${BYTES / 1_000} kB, and beside ${TIMES} times as many, over kept connections. p99 in ms; of files beside the pages where they are many.`,
  columns: [
    { key: 'once', head: 'pages, p99' },
    { key: 'ten', head: 'pages, p99, ten times the files' },
    { key: 'ratio', head: 'ratio', digits: 2 },
    { key: 'files', head: 'files, p99', digits: 1 },
    { key: 'failed', head: 'failed' },
  ],
  drawn: 'ten',
  seconds: 44,
  run,
};
