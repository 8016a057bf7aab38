/**
 * Pages of yesterday: a browser has opened a page, the app is changed, and the page loads the rest of itself. What it
 * asks for has names that the new version does not know.
 */
import type { Browser } from 'playwright-core';
import { startChromium } from '../../e2e/browser/chromium.ts';
import type { Progress } from '../lib/progress.ts';
import { APPS, type App, buildApp, PARTS, PATH, VERSIONS, type Version } from './apps.ts';
import { SITES, type SiteKind } from './sites.ts';

export interface ChunksRow {
  system: string;
  app: string;
  rollouts: number;
  /** Parts that pages asked for after a change. */
  chunks: number;
  /** Of these, that the page did not get (`ChunkLoadError`, or what Vite has instead). */
  chunkErrors: number;
  /** Scripts that were answered with an error, or not at all, at least once: Next asks again. */
  scriptsMissing: number;
  /** How often each way in which a script did not come occurred. */
  failures: Record<string, number>;
}

/** What a page has seen. */
interface Seen {
  texts: string[];
  /** By address. */
  scriptsMissing: Map<string, string>;
}

const BUILD_SECONDS = 60;
const ROLLOUT_SECONDS = 15;
/** For a script. */
const WAIT_MS = 30_000;

export function chunksSeconds(rollouts: number): number {
  return APPS.length * (VERSIONS.length * BUILD_SECONDS + SITES.length * rollouts * ROLLOUT_SECONDS);
}

/** A page is opened, then `change` happens, and it loads the first half of its parts at once, and then the rest. */
async function visit(
  browser: Browser,
  port: number,
  version: Version,
  change: () => Promise<{ over: Promise<void> }>,
): Promise<Seen> {
  const context = await browser.newContext();
  try {
    const page = await context.newPage();
    await page.goto(`http://127.0.0.1:${port}${PATH}`);
    await page.locator('body[data-ready=yes]').waitFor({ timeout: WAIT_MS });
    const title = await page.locator('h1').innerText();
    if (title !== `version ${version}`) throw new Error(`a page of version ${version} says ${title}`);
    const scriptsMissing = new Map<string, string>();
    page.on('response', (response) => {
      const isScript = response.request().resourceType() === 'script';
      if (isScript && response.status() >= 400) scriptsMissing.set(response.url(), String(response.status()));
    });
    page.on('requestfailed', (asked) => {
      // Chromium gives up a script whose answer is an error: that was its reason.
      if (asked.resourceType() !== 'script' || scriptsMissing.has(asked.url())) return;
      scriptsMissing.set(asked.url(), asked.failure()?.errorText ?? 'failed');
    });
    const load = async (button: string, count: number) => {
      await page.locator(button).click();
      await page
        .locator('li')
        .nth(count - 1)
        .waitFor({ timeout: WAIT_MS });
    };
    const { over } = await change();
    // Nothing is left to handle where the page fails.
    over.catch(() => {});
    await load('#first', PARTS / 2);
    await over;
    await load('#rest', PARTS);
    return { texts: await page.locator('li').allInnerTexts(), scriptsMissing };
  } finally {
    await context.close();
  }
}

async function measure(
  browser: Browser,
  { title, start }: SiteKind,
  app: App,
  images: Record<Version, string>,
  rollouts: number,
): Promise<ChunksRow> {
  const row: ChunksRow = { system: title, app, rollouts, chunks: 0, chunkErrors: 0, scriptsMissing: 0, failures: {} };
  const site = await start(app, images);
  try {
    await (await site.rollOut('1')).over;
    for (let number = 0; number < rollouts; number += 1) {
      const [from, to] = number % 2 === 0 ? (['1', '2'] as const) : (['2', '1'] as const);
      const { texts, scriptsMissing } = await visit(browser, site.port, from, () => site.rollOut(to));
      row.chunks += texts.length;
      row.chunkErrors += failedIn(texts, from);
      row.scriptsMissing += scriptsMissing.size;
      for (const why of scriptsMissing.values()) row.failures[why] = (row.failures[why] ?? 0) + 1;
    }
  } finally {
    await site.stop();
  }
  return row;
}

/** Parts that are not those of the page's own version. */
export function failedIn(texts: string[], version: Version): number {
  return texts.filter((text, number) => text !== `part ${number} of version ${version}`).length;
}

export async function runChunks(progress: Progress, rollouts: number): Promise<ChunksRow[]> {
  const rows: ChunksRow[] = [];
  const { browser, close } = await startChromium();
  try {
    for (const app of APPS) {
      const images = await progress.step(`${app}: two versions`, VERSIONS.length * BUILD_SECONDS, async () => ({
        '1': await buildApp(app, '1'),
        '2': await buildApp(app, '2'),
      }));
      for (const kind of SITES)
        rows.push(
          await progress.step(
            `${app}, ${kind.title}: ${rollouts} rollouts`,
            rollouts * ROLLOUT_SECONDS,
            () => measure(browser, kind, app, images, rollouts),
            ({ chunks, chunkErrors, failures }) =>
              `${chunkErrors} of ${chunks} parts failed; scripts: ${JSON.stringify(failures)}`,
          ),
        );
    }
  } finally {
    await close();
  }
  return rows;
}
