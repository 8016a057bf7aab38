/**
 * `make bench-browser`: how long the frames of the page of `corelane dashboard` take with 200 pods, in Debian's
 * Chromium. Beside it an empty page, which is the bound, and the same page with all rows as elements.
 */
import { writeFileSync } from 'node:fs';
import { cpus, loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { Browser, CDPSession, Page } from 'playwright-core';
import { startChromium } from '../e2e/browser/chromium.ts';
import { type Doing, frameTimes } from '../e2e/browser/frame-times.ts';
import { scene } from '../e2e/browser/scene.ts';
import { Listener } from '../operator/cli/dashboard/listener.ts';
import { pageFiles } from '../operator/cli/dashboard/page-files.ts';

const DOCS = fileURLToPath(new URL('../docs/benchmarks', import.meta.url));
const FLEET = { pods: 200, workers: 4, from: 60 };
const INTERVAL_MS = 1_000;
const MEASURED_MS = 15_000;
const VIEW = { width: 1280, height: 960 };
/** A frame of a screen that shows sixty in a second. */
const FRAME_MS = 1000 / 60;

const WHAT: Record<Doing, string> = {
  nothing: 'a look each second',
  scroll: 'a look each second, and somebody scrolls with each frame',
  keys: 'a look each second, and somebody holds `j`',
  'all rows': 'the same while somebody scrolls, with all 800 rows as elements',
};

interface Row {
  what: string;
  frames: number;
  p50: number;
  p99: number;
  max: number;
  late: number;
  /** Milliseconds of CPU in a second that the main thread of the page has taken, whatever else the machine did. */
  cpuMs: number;
}

async function measured(what: string, page: Page, doing: Doing): Promise<Row> {
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable', { timeDomain: 'threadTicks' });
  const before = await taskSeconds(session);
  const times = await frameTimes(page, doing, MEASURED_MS);
  return rowOf(what, times, (1e6 * ((await taskSeconds(session)) - before)) / MEASURED_MS);
}

async function taskSeconds(session: CDPSession): Promise<number> {
  const { metrics } = await session.send('Performance.getMetrics');
  return metrics.find(({ name }) => name === 'TaskDuration')?.value ?? Number.NaN;
}

function rowOf(what: string, times: number[], cpuMs: number): Row {
  const sorted = times.toSorted((one, other) => one - other);
  const at = (quantile: number) => sorted[Math.min(sorted.length - 1, Math.floor(quantile * sorted.length))] ?? 0;
  // Two frames of the screen, and none between.
  const late = times.filter((ms) => ms > 1.5 * FRAME_MS).length;
  return { what, frames: times.length, p50: at(0.5), p99: at(0.99), max: sorted.at(-1) ?? 0, late, cpuMs };
}

async function emptyPage(browser: Browser): Promise<Row> {
  const page = await browser.newPage({ viewport: VIEW });
  const row = await measured('an empty page (the bound)', page, 'nothing');
  await page.close();
  return row;
}

async function ourPage(browser: Browser, doing: Doing): Promise<Row> {
  const listener = await Listener.start({
    ...{ source: scene(FLEET), files: await pageFiles(), intervalMs: INTERVAL_MS, askedMax: 200, port: 0 },
  });
  const page = await browser.newPage({ viewport: VIEW });
  try {
    await page.goto(listener.url);
    await filled(page);
    return await measured(WHAT[doing], page, doing);
  } finally {
    await page.close();
    listener.close();
  }
}

async function filled(page: Page): Promise<void> {
  await page.getByText('800 of 800').waitFor();
  await page.locator('.curves canvas').nth(1).waitFor();
}

function markdown(rows: Row[], loadBefore: number): string {
  const cells = rows.map(({ what, frames, p50, p99, max, late, cpuMs }) =>
    ['', what, frames, ...[p50, p99, max].map((ms) => ms.toFixed(1)), late, Math.round(cpuMs), ''].join(' | ').trim(),
  );
  return `# The page of \`corelane dashboard\` with 200 pods

Made by \`make bench-browser\`: ${FLEET.pods} pods with ${FLEET.workers} workers each, a look each second, ${MEASURED_MS / 1000} s for each row, in Debian's Chromium without a screen or a graphics card (it draws with the CPU).
${cpus().length} cores, which the server of the page shares; load before: ${loadBefore.toFixed(1)}. Time from one frame to the next in ms; the screen would show one each 16.7 ms. *Late* are frames of more than 25 ms: one of the
screen was left out. *CPU* is what the main thread of the page took of a second, in ms: it does not depend on what else the machine does.

| | frames | p50 | p99 | longest | late | CPU |
|---|--:|--:|--:|--:|--:|--:|
${cells.join('\n')}
`;
}

const loadBefore = loadavg()[0] ?? 0;
const { browser, close } = await startChromium();
try {
  const rows = [await emptyPage(browser)];
  for (const doing of Object.keys(WHAT) as Doing[]) {
    rows.push(await ourPage(browser, doing));
    console.error(JSON.stringify(rows.at(-1)));
  }
  writeFileSync(`${DOCS}/browser.json`, `${JSON.stringify({ loadBefore, rows }, undefined, 2)}\n`);
  writeFileSync(`${DOCS}/browser.md`, markdown(rows, loadBefore));
  const scrolled = rows.find(({ what }) => what === WHAT.scroll);
  console.log(
    `bench-browser: p99_ms=${scrolled?.p99.toFixed(1)} longest_ms=${scrolled?.max.toFixed(1)} late=${scrolled?.late}`,
  );
} finally {
  await close();
}
