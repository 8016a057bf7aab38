/** Pages beside files: ten times as many of these. */
import { APP_FILES, AppFiles } from '../../sidecar/test/app-files.ts';
import { arrivals } from '../fleet/arrivals.ts';
import type { Group } from '../lib/load.ts';
import { Corelane } from '../systems/corelane.ts';
import { startNginx } from '../systems/nginx.ts';
import { failedOf, p99Of } from './compute.ts';
import { load, type Reachable, untilServes, withSystem } from './parts.ts';
import type { Result, Row, Scenario } from './scenario.ts';

const WORKERS = 4;
const PAGE_MS = 50;
const PAGE_LOAD = 0.4;
/** In a second; ten times as many then. */
const FILES_PER_SECOND = 40;
const SECONDS = 12;
const SEED = 7;
const BYTES = 20_000;
const MS_PER_SECOND = 1_000;

/** Poisson arrivals of pages that all take the same: what they wait for is seen in them. */
function pages(name: string): Group {
  // arrivals.ts has renders of 100 ms: at half the load there come as many as wanted here.
  const work = arrivals(WORKERS, (PAGE_LOAD * 100) / PAGE_MS, SECONDS, SEED);
  return { name, requests: work.map(({ at }) => ({ path: `/?id={id}&steps=b${PAGE_MS}`, atMs: at })) };
}

function files(name: string, times: number): Group {
  const everyMs = MS_PER_SECOND / (FILES_PER_SECOND * times);
  const count = Math.floor((SECONDS * MS_PER_SECOND) / everyMs);
  const requests = Array.from({ length: count }, (_unused, n) => ({ path: `/files/${n % 25}.js`, atMs: n * everyMs }));
  return { name, requests };
}

async function measure(name: string, start: Promise<Reachable & { stop(): Promise<void> }>): Promise<Row> {
  return withSystem(start, async (system) => {
    await untilServes(system);
    const warmUp = {
      name: 'warm-up',
      concurrency: WORKERS,
      count: 300,
      seconds: 2,
      requests: [{ path: '/?id=a&steps=b5' }],
    };
    const phases = [[warmUp], [pages('once'), files('files', 1)], [pages('ten'), files('files', 10)]];
    const records = await load(system, phases);
    const [once, ten] = [p99Of(records, 'once'), p99Of(records, 'ten')];
    const failed = ['once', 'ten', 'files'].reduce((sum, group) => sum + failedOf(records, group), 0);
    return { system: name, values: { once, ten, ratio: ten / once, files: p99Of(records, 'files'), failed } };
  });
}

async function run(): Promise<Result> {
  const script = 'x'.repeat(BYTES);
  const app = new AppFiles(Object.fromEntries(Array.from({ length: 25 }, (_unused, n) => [`files/${n}.js`, script])));
  const { options } = app;
  const assets = [{ path: '/files/', from: `${APP_FILES}/files`, immutable: true }];
  try {
    const rows = [
      await measure('Corelane', Corelane.start({ workersPerPod: WORKERS, assets }, 'corelane', { options })),
      await measure('plain Node behind nginx', startNginx(WORKERS, { options })),
    ];
    const { ratio, failed } = (rows[0] as Row).values;
    return { rows, figures: { html_p99_ratio: Number(ratio) }, failed: Number(failed) };
  } finally {
    app.remove();
  }
}

export const filesBeside: Scenario = {
  key: 'files',
  title: 'Pages beside files',
  text: `${WORKERS} workers, pages of ${PAGE_MS} ms at a load of ${PAGE_LOAD}, for ${SECONDS} s each: beside ${FILES_PER_SECOND} files of ${BYTES / 1_000} kB a second, and beside ${10 * FILES_PER_SECOND}. p99 in ms.`,
  columns: [
    { key: 'once', head: 'pages, p99' },
    { key: 'ten', head: 'pages, p99, ten times the files' },
    { key: 'ratio', head: 'ratio', digits: 2 },
    { key: 'files', head: 'files, p99', digits: 1 },
    { key: 'failed', head: 'failed' },
  ],
  drawn: 'ten',
  seconds: 65,
  run,
};
