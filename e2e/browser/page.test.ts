/** The page of `corelane dashboard` in a real Chromium: what it shows, keys, hostile texts, other pages, many pods. */

import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import type { BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { Listener } from '../../operator/cli/dashboard/listener.ts';
import { pageFiles } from '../../operator/cli/dashboard/page-files.ts';
import { ROOT } from '../harness/cluster/shell.ts';
import { startChromium } from './chromium.ts';
import { type SceneOptions, scene } from './scene.ts';

const HOSTILE =
  '/<img src=x onerror=document.title="owned">"\'&</script><script>document.title="owned"</script>\u202e\u0000';
/** Looks after which all of the scene has happened. */
const LOOKS = 95;
/** Of the worker that stands still, at the last of them. */
const LAST_STATE = 'silent for 42 s';
const VIEW = { width: 1180, height: 880 };

let chromium: Awaited<ReturnType<typeof startChromium>>;
let listener: Listener | undefined;
let context: BrowserContext | undefined;
/** What the browser has complained about: errors of the page, and of its Content-Security-Policy. */
let complaints: string[];

beforeAll(async () => {
  chromium = await startChromium();
});
afterAll(async () => chromium?.close());
beforeEach(() => {
  complaints = [];
});
afterEach(async () => {
  await context?.close();
  listener?.close();
});

async function serve(options: Partial<SceneOptions> = {}, intervalMs = 20): Promise<string> {
  const source = scene({ pods: 12, workers: 3, ...options });
  listener = await Listener.start({ source, files: await pageFiles(), intervalMs, askedMax: 200, port: 0 });
  return listener.url;
}

async function open(url: string, options: BrowserContextOptions = {}): Promise<Page> {
  context = await chromium.browser.newContext({ viewport: VIEW, locale: 'en-GB', timezoneId: 'UTC', ...options });
  const page = await context.newPage();
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  await page.goto(url);
  await page.locator('[role=option]').first().waitFor();
  return page;
}

const option = (page: Page, text: string) => page.locator('[role=option]', { hasText: text });
const text = (page: Page, selector: string) => page.locator(selector).innerText();

test('what limits the service, each worker, the queue, hand-overs, and what happened with its reason', async () => {
  const page = await open(await serve());
  await page.getByText('Now: an event loop stands still').waitFor();
  expect(await page.title()).toBe('storefront - corelane');
  expect(await text(page, 'h1')).toBe('shop/storefront');
  // The one that stands still is the first of the lanes.
  await page.locator('#lane-0', { hasText: /silent for \d+ s/ }).waitFor();
  expect(await text(page, '#lane-0')).toMatch(/storefront-7f9c-3\s+1\s+silent for \d+ s\s+\d+(\.\d)? s\s.*GET \/cart/s);
  // The dot of a row follows its worker: full for one that renders.
  const dots = () =>
    page
      .locator('.row.level-1 .dot')
      .evaluateAll((all) => [...new Set(all.map((one) => getComputedStyle(one).backgroundColor))].join());
  await becomes(page, dots, 'rgb(9, 105, 218)');
  await page.getByText('scaled 9 -> 12').first().waitFor();
  expect(await text(page, '.kind-scaling')).toContain('AboveThreshold: CPU of 97 % over 30 s, threshold 70 %');
  expect(await text(page, '.kind-stuck')).toContain(
    'worker-1 of storefront-7f9c-3 got stuck in priceOf /app/src/price.ts:41',
  );
  expect(await page.locator('p.rollout').innerText()).toMatch(
    /^Rollout: 7f9c 10 of 10 pods ready · 5b4d 1 of 2 pods ready$/,
  );
  expect(await page.locator('.pods canvas').getAttribute('aria-label')).toMatch(/^12 pods, 11 ready; /);
  await page.locator('.pods canvas').hover({ position: { x: 20, y: 20 } });
  expect(await page.locator('.pods canvas').getAttribute('title')).toMatch(/2\.0\/s are rendered by other pods/);
  expect(await page.locator('.curves canvas').count()).toBe(2);
  expect(complaints).toEqual([]);
});

test('what a pod gives, takes and lets wait stays in its block', async () => {
  const page = await open(await serve({ from: 40, looks: 42 }));
  const gaps = () => page.locator('.pods canvas').evaluate(drawnBetweenBlocks);
  await page.getByText('p99 of the queue').first().waitFor();
  expect(await gaps()).toEqual({ blocks: true, gaps: false });
});

test('the keys that the page names', async () => {
  const page = await open(await serve({}, 200));
  const chosen = () => page.locator('[aria-selected=true]').getAttribute('id');
  expect(await chosen()).toBe('lane-0');
  await page.keyboard.press('o');
  for (let times = 0; times < 4; times += 1) await page.keyboard.press('o');
  await becomes(page, () => page.locator('select').inputValue(), 'name');
  await page.keyboard.press('j');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('k');
  await becomes(page, chosen, 'lane-1');
  await page.keyboard.press('End');
  await becomes(page, chosen, 'lane-26');
  expect(await page.locator('#lanes').getAttribute('aria-activedescendant')).toBe('lane-26');
  await page.keyboard.press('/');
  await page.keyboard.type('c-3');
  await becomes(page, () => page.locator('[role=option]').count(), 3);
  await page.keyboard.press('Escape');
  await becomes(page, () => page.locator('#filter').inputValue(), '');
  // Whoever uses the keyboard sees where he is.
  expect(await page.locator('#lanes').evaluate((element) => getComputedStyle(element).outlineStyle)).toBe('solid');
  await page.keyboard.press('?');
  const dialog = page.getByRole('dialog');
  await dialog.waitFor();
  const named = (await dialog.locator('kbd').allInnerTexts()).join(' ');
  for (const key of ['j', 'k', 'arrows', 'Page Up', 'End', 'o', '/', 'p', 's', '?']) expect(named).toContain(key);
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'hidden' });
  expect(complaints).toEqual([]);
});

test('the last stack, and a flame graph in a page of its own, which draws itself', async () => {
  const page = await open(await serve({ functionName: '<img src=x>' }));
  await page.keyboard.press('s');
  await page.locator('pre', { hasText: 'at priceOf /app/src/price.ts:41' }).waitFor();
  await page.keyboard.press('p');
  const link = page.getByRole('link', { name: /^Flame graph of worker-/ });
  await link.waitFor();
  const [graph] = await Promise.all([(context as BrowserContext).waitForEvent('page'), link.click()]);
  await graph.locator('#graph div', { hasText: '<img src=x>' }).waitFor();
  // An origin of its own: what runs there cannot ask the listener.
  expect(await graph.evaluate(() => self.origin)).toBe('null');
  expect(await graph.locator('img').count()).toBe(0);
  expect(complaints).toEqual([]);
});

test('what hostile clients ask for is text', async () => {
  const page = await open(await serve({ path: () => HOSTILE }));
  await option(page, '<img src=x onerror').first().waitFor();
  await page.locator('.requests li', { hasText: '<script>document.title="owned"</script>' }).first().waitFor();
  expect(await page.locator('img').count()).toBe(0);
  expect(await page.title()).toBe('storefront - corelane');
  expect(await page.locator('body').innerText()).not.toMatch(/\u202e/);
  expect(complaints).toEqual([]);
});

test('light and dark, as the system is', async () => {
  const page = await open(await serve());
  const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  await page.emulateMedia({ colorScheme: 'light' });
  expect(await back()).toBe('rgb(255, 255, 255)');
  await page.emulateMedia({ colorScheme: 'dark' });
  expect(await back()).toBe('rgb(13, 17, 23)');
  expect(complaints).toEqual([]);
});

test('of 200 pods only the rows in sight are there, and all of them are in reach', async () => {
  const page = await open(await serve({ pods: 200, workers: 4 }, 100));
  await page.getByText('800 of 800').waitFor();
  // In another order they move.
  await page.locator('select').selectOption('name');
  const rows = () => page.locator('[role=option]').count();
  expect(await rows()).toBeLessThan(60);
  await page.locator('#lanes').focus();
  await page.keyboard.press('End');
  await page.locator('#lane-799[aria-selected=true]').waitFor();
  expect(await page.locator('#lane-799').getAttribute('aria-setsize')).toBe('800');
  expect(await rows()).toBeLessThan(60);
  await page.keyboard.press('Home');
  await page.locator('#lane-0[aria-selected=true]').waitFor();
  expect(complaints).toEqual([]);
});

test('when corelane has been ended the page says so', async () => {
  const page = await open(await serve());
  listener?.close();
  await page.getByText('corelane does not answer: was it ended?').waitFor();
});

/** Another program of this machine, which has a page that knows even the key. */
async function strangers(): Promise<{ url: string; close: () => void }> {
  const server = http.createServer((_request, response) => {
    response.writeHead(200, { 'Content-Type': 'text/html' }).end('<!doctype html><title>stranger</title>');
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const close = () => {
    server.close();
    server.closeAllConnections();
  };
  return { url: `http://127.0.0.1:${port}/`, close };
}

test('a page of somebody else can neither read, watch, run nor frame it, nor have a profile taken', async () => {
  const url = await serve();
  const stranger = await strangers();
  try {
    context = await chromium.browser.newContext();
    const page = await context.newPage();
    await page.goto(stranger.url);
    const got = await page.evaluate(async (target) => {
      const loads = (element: HTMLScriptElement | HTMLIFrameElement | HTMLImageElement) =>
        new Promise((resolve) => {
          element.onload = () => resolve('loaded');
          element.onerror = () => resolve('refused');
          document.body.append(element);
        });
      const reads = (path: string, options?: RequestInit) =>
        fetch(target + path, options).then(
          async (response) => `${response.type} ${response.status} ${(await response.text()).length}`,
          () => 'refused',
        );
      const watches = new Promise((resolve) => {
        const told = new EventSource(`${target}told`);
        told.onerror = () => resolve('refused');
        told.onopen = () => resolve('open');
      });
      return {
        fetch: await reads(''),
        opaque: await reads('told', { mode: 'no-cors' }),
        post: await reads('profiles?pod=storefront-7f9c-0&worker=0', { method: 'POST', mode: 'no-cors' }),
        events: await watches,
        script: await loads(Object.assign(document.createElement('script'), { src: `${target}page.js` })),
        image: await loads(Object.assign(document.createElement('img'), { src: `${target}page.css` })),
      };
    }, url);
    expect(got).toEqual({
      ...{ fetch: 'refused', opaque: 'refused', post: 'refused', events: 'refused' },
      ...{ script: 'refused', image: 'refused' },
    });
    await page.evaluate((target) => {
      const frame = document.createElement('iframe');
      frame.src = target;
      document.body.append(frame);
      return new Promise((resolve) => {
        frame.onload = resolve;
      });
    }, url);
    const [, frame] = page.frames();
    expect(await frame?.locator('#page').count()).toBe(0);
    // The whole window may go there: so does the file that --open gives to a browser.
    await page.evaluate((target) => {
      location.href = target;
    }, url);
    await page.locator('[role=option]').first().waitFor();
  } finally {
    stranger.close();
  }
});

test('a name of somebody else that leads to this machine (DNS rebinding) gets nothing', async () => {
  const url = new URL(await serve());
  context = await chromium.browser.newContext();
  const page = await context.newPage();
  url.hostname = 'rebound.example';
  const answer = await page.goto(String(url));
  expect(answer?.status()).toBe(421);
  expect(await page.locator('#page').count()).toBe(0);
  // The same in the words of this machine.
  url.hostname = 'localhost';
  expect((await page.goto(String(url)))?.status()).toBe(200);
});

test.each(['light', 'dark'] as const)('pictures for the docs: %s', async (colorScheme) => {
  const page = await open(await serve({ looks: LOOKS }), { colorScheme });
  await page.locator('#lane-0', { hasText: LAST_STATE }).waitFor();
  const picture = await page.screenshot({ animations: 'disabled', fullPage: colorScheme === 'light' });
  const folder = process.env.UPDATE_PICTURES ? join(ROOT, 'docs') : join(ROOT, '.state/browser');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, `live-${colorScheme}.png`), picture);
  expect(picture.length).toBeGreaterThan(20_000);
});

/** Waits until something is as it should be: what a key does is drawn with the next frame of the screen. */
async function becomes<T>(page: Page, value: () => Promise<T>, wanted: T): Promise<void> {
  for (let tries = 0; tries < 200; tries += 1) {
    if ((await value()) === wanted) return;
    await page.evaluate(() => new Promise(requestAnimationFrame));
  }
  expect(await value()).toBe(wanted);
}

/** Runs in the page: whether there is anything in the blocks of pods, and between those of the first row. */
function drawnBetweenBlocks(element: Element): { blocks: boolean; gaps: boolean } {
  const canvas = element as HTMLCanvasElement;
  const scale = canvas.width / canvas.clientWidth;
  const context = canvas.getContext('2d') as CanvasRenderingContext2D;
  const isDrawn = (x: number, width: number) =>
    context.getImageData(x * scale, 0, width * scale, 46 * scale).data.some((value) => value > 0);
  const columns = Math.floor(canvas.clientWidth / 114);
  const all = Array.from({ length: columns }, (_unused, column) => column * 114);
  return { blocks: all.every((x) => isDrawn(x, 108)), gaps: all.some((x) => isDrawn(x + 109, 4)) };
}
