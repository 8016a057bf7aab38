/** The page for a service of `corelane run`: real workers, in a real browser. */
import type { Page } from 'playwright-core';
import { App, RunProcess, textOf } from '../harness/engine/run-process.ts';
import { startChromium } from './chromium.ts';

const PROGRAM = `
import http from 'node:http';
/** The event loop stands still for so long. */
export function spin(ms) { for (const end = Date.now() + ms; Date.now() < end; ); }
http.createServer((request, response) => {
  const { searchParams } = new URL(request.url, 'http://a');
  spin(Number(searchParams.get('spin') ?? 0));
  setTimeout(() => response.end('page'), Number(searchParams.get('wait') ?? 0));
}).listen(process.env.PORT);`;
const RESOURCE = `
apiVersion: corelane.dev/v1alpha1
kind: RenderService
metadata: { name: browsed }
spec:
  workersPerPod: 2
  watchdog: { stallTimeout: 5s }
  template: { spec: { containers: [{ name: worker, image: replaced }] } }`;

let chromium: Awaited<ReturnType<typeof startChromium>>;
let app: App;
beforeAll(async () => {
  chromium = await startChromium();
  app = new App({ 'server.mjs': PROGRAM, 'renderservice.yaml': RESOURCE });
});
afterAll(async () => {
  await RunProcess.endAll();
  app?.remove();
  await chromium?.close();
});

const lane = (page: Page, text: string | RegExp) => page.locator('[role=option]', { hasText: text });

test('what its workers render, a stuck one first and its source line, and a flame graph', async () => {
  const run = new RunProcess([app.folder, '--dashboard', '--pods', '2', '--quiet-logs']);
  const url = await run.url();
  const [, address = ''] = await run.says(/^dashboard: (http:\S+)$/m);
  const page = await (await chromium.browser.newContext({ locale: 'en-GB' })).newPage();
  await page.goto(address);
  await page.getByText('4 of 4').waitFor();

  const slow = textOf(`${url}/p/shoes?wait=6000`);
  await lane(page, /\d s.*GET \/p\/shoes\?wait=6000/s).waitFor();
  expect(await slow).toBe('200 page');

  const stuck = textOf(`${url}/cart?spin=60000`);
  await page.locator('#lane-0', { hasText: /silent for \d+ s/ }).waitFor();
  expect(await stuck).toMatch(/^502/);
  await page.locator('.kind-stuck', { hasText: /got stuck in spin \/app\/server\.mjs:4/ }).waitFor();
  await lane(page, /was stuck in spin/).click();
  await page.keyboard.press('s');
  await page.locator('pre', { hasText: 'at spin /app/server.mjs:4' }).waitFor();

  await lane(page, 'up').first().click();
  await page.keyboard.press('p');
  const link = page.getByRole('link', { name: /^Flame graph of worker-\d of browsed-\d$/ });
  const busy = textOf(`${url}/?spin=2000`);
  await link.waitFor({ timeout: 60_000 });
  await busy;
  const [graph] = await Promise.all([page.context().waitForEvent('page'), link.click()]);
  await graph.locator('h1', { hasText: /^worker-\d of browsed-\d$/ }).waitFor();
  await page.context().close();
  expect(await run.end('SIGTERM')).toBe(0);
  expect(await run.leftovers()).toEqual([]);
});
