/** The apps of examples/frameworks in a real Chromium, each as its RenderService has it: `make test-frameworks`. */
import { rmSync } from 'node:fs';
import { jest } from '@jest/globals';
import type { BrowserContext, Page, Response } from 'playwright-core';
import { PORTS } from '../../../operator/src/api/names.ts';
import { exampleWorker, specOf } from '../../harness/engine/examples.ts';
import { Pod, until } from '../../harness/engine/pod.ts';
import { startChromium } from '../chromium.ts';

jest.setTimeout(900_000);

/** What differs from one to the other; docs/frameworks/README.md has the reasons. */
interface Example {
  /** Whether a part of its page comes later. */
  streams?: boolean;
  /** What its router asks for at a click, if that takes no render slot. */
  data?: string;
  /** What makes the picture of `/about` smaller upon request, without a render slot. */
  optimizer?: string;
}

const EXAMPLES: Record<string, Example> = {
  next: { streams: true, optimizer: '/_next/image?' },
  nuxt: {},
  sveltekit: { streams: true, data: '/about/__data.json' },
  'react-router': { streams: true, data: '/about.data' },
  astro: { streams: true, optimizer: '/_image?' },
  angular: {},
};
/** Of Next. */
const PICTURES = 20;

/** `FRAMEWORKS=next,nuxt make test-frameworks` tries these. */
const wanted = (process.env.FRAMEWORKS?.split(',') ?? Object.keys(EXAMPLES)).filter((name) => name in EXAMPLES);

let chromium: Awaited<ReturnType<typeof startChromium>>;
let pod: Pod | undefined;
let contexts: BrowserContext[] = [];
/** What the browser has complained about, requests that failed, and redirects to another site. */
let complaints: string[] = [];

beforeAll(async () => {
  chromium = await startChromium();
});
afterAll(() => chromium?.close());
afterEach(async () => {
  for (const context of contexts) await context.close();
  contexts = [];
  // A test that fails before it lets a page end must not hold up those behind it.
  pod?.release('released');
  const said = complaints;
  complaints = [];
  expect(said).toEqual([]);
});

function thePod(): Pod {
  if (!pod) throw new Error('the pod has not started');
  return pod;
}

/** By this name Chromium keeps cookies with `Secure` of a page without TLS, such as that of draft mode. */
const site = () => `http://localhost:${thePod().port(PORTS.http)}`;

/** A browser of its own, which has been nowhere. */
async function newBrowser(): Promise<Page> {
  const context = await chromium.browser.newContext();
  contexts.push(context);
  const page = await context.newPage();
  const own = site();
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('requestfailed', (request) => {
    const why = request.failure()?.errorText;
    // The browser itself gives up a prefetch when it leaves the page.
    if (why !== 'net::ERR_ABORTED') complaints.push(`${request.method()} ${request.url()}: ${why}`);
  });
  page.on('response', (response) => {
    const { location } = response.headers();
    if (response.status() >= 400) complaints.push(`${response.url()}: status ${response.status()}`);
    if (location && new URL(location, response.url()).origin !== own)
      complaints.push(`${response.url()}: a redirect to ${location}`);
  });
  return page;
}

async function open(path: string): Promise<Page> {
  const page = await newBrowser();
  await page.goto(`${site()}${path}`);
  return page;
}

/** Waits until the scripts of the first page work. */
async function untilAlive(page: Page): Promise<void> {
  const button = page.getByRole('button', { name: 'likes' });
  await until('the button counts', async () => {
    await button.click();
    return /likes: [1-9]/.test(await button.innerText());
  });
}

/** By a click on the first page. */
async function clickToAbout(page: Page): Promise<void> {
  await untilAlive(page);
  await page.getByRole('link', { name: 'about' }).click();
  await page.getByText('about this shop').waitFor();
  await page.waitForURL(`${site()}/about`);
}

/** Widths of all pictures, when they are there. */
function widths(page: Page): Promise<number[]> {
  return page.locator('img').evaluateAll((all) =>
    Promise.all(
      (all as HTMLImageElement[]).map(async (picture) => {
        await picture.decode();
        return picture.naturalWidth;
      }),
    ),
  );
}

/** Classes of all requests whose URL begins so, that of a render is empty; once there are so many requests. */
function servedAs(begin: string, count = 1): Promise<unknown[]> {
  return until(`${count} requests that begin with ${begin}`, async () => {
    const lines = (await thePod().accessLog()).filter(({ uri }) => String(uri).startsWith(begin));
    return lines.length >= count ? lines.map((line) => line.servedAs) : undefined;
  });
}

/** What the cache of the pod says of a page. */
function cacheStatus(response: Response | null): string | undefined {
  return response?.headers()['cache-status'];
}

test('the browser is there', () => {
  expect(chromium.browser.isConnected()).toBe(true);
});

for (const name of wanted)
  describe(name, () => {
    const { streams, data, optimizer } = EXAMPLES[name] as Example;
    beforeAll(async () => {
      const { template: _template, replicas: _replicas, ...spec } = specOf(name);
      pod = await Pod.start(spec, await exampleWorker(name, { WAITS_FOR: '/events/lines.released' }));
      // What a page waits for.
      pod.release('released');
    });
    afterAll(async () => {
      await pod?.stop();
      pod = undefined;
    });

    test('a page, and its scripts', async () => {
      const page = await open('/');
      await page.getByRole('heading', { name: 'A page by' }).waitFor();
      await untilAlive(page);
    });

    test('a link leads on without a new document', async () => {
      const page = await open('/');
      await page.evaluate(() => Object.assign(window, { isKept: true }));
      await clickToAbout(page);
      expect(await page.evaluate(() => 'isKept' in window)).toBe(true);
      if (data) expect(new Set(await servedAs(data))).toEqual(new Set(['data']));
    });

    test('a picture', async () => {
      const [width, ...others] = await widths(await open('/about'));
      // Next makes one of 384 where 320 are wanted.
      expect([320, 384]).toContain(width);
      expect(others).toEqual([]);
      if (optimizer) expect(new Set(await servedAs(optimizer))).toEqual(new Set(['image']));
    });

    test('a form', async () => {
      const page = await open('/order');
      await page.getByRole('textbox').fill('Ada');
      await page.getByRole('button', { name: 'order' }).click();
      await page.getByText('thanks, Ada').waitFor();
    });

    test('a stream, by a script', async () => {
      const page = await open('/');
      const text = await page.evaluate(async () => (await fetch('/stream')).text());
      expect(text).toMatch(/^in flight: [0-9]+\.{5}$/);
    });

    test('a sign-in that leaves 6 kB of cookies', async () => {
      const page = await newBrowser();
      const member = await page.goto(`${site()}/auth/callback?code=1`);
      const callback = await member?.request().redirectedFrom()?.response();
      expect([callback?.status(), page.url()]).toEqual([303, `${site()}/member`]);
      await page.getByText('a session of 6000 bytes').waitFor();
      await page.reload();
      await page.getByText('a session of 6000 bytes').waitFor();
      // Pages, files, data and pictures of such a browser.
      await page.goto(`${site()}/`);
      await clickToAbout(page);
    });

    test('draft mode: who has its cookie sees the draft, and nobody else does', async () => {
      // From now on the page is kept.
      await (await open('/prices')).getByText('prices of').waitFor();
      const editor = await newBrowser();
      const draft = await editor.goto(`${site()}/draft`);
      await editor.getByText('a draft of them').waitFor();
      expect([editor.url(), cacheStatus(draft)]).toEqual([`${site()}/prices`, 'Corelane; fwd=bypass; detail=cookie']);
      const guest = await newBrowser();
      const kept = await guest.goto(`${site()}/prices`);
      expect([cacheStatus(kept), await guest.getByText('a draft of them').count()]).toEqual(['Corelane; hit', 0]);
    });

    if (streams)
      test('what is there of a page is shown before the rest of it', async () => {
        rmSync(`${thePod().notesFile}.released`);
        const page = await newBrowser();
        await page.goto(`${site()}/`, { waitUntil: 'commit' });
        await page.getByRole('heading', { name: 'A page by' }).waitFor();
        expect(await page.getByText('three reviews').count()).toBe(0);
        thePod().release('released');
        await page.getByText('three reviews').waitFor();
      });

    if (name === 'next') testNext();
  });

function testNext(): void {
  test('twenty pictures, and the page of them takes one render slot', async () => {
    const found = await widths(await open('/pictures'));
    expect(found).toHaveLength(PICTURES);
    expect(Math.min(...found)).toBeGreaterThan(0);
    expect(await servedAs('/_next/image?url=%2Fpicture.png%3Fn', PICTURES)).toEqual(Array(PICTURES).fill('image'));
    expect(await servedAs('/pictures')).toEqual(['']);
  });

  test('a redirect of a route handler stays on the site', async () => {
    expect((await open('/go')).url()).toBe(`${site()}/`);
  });
}
