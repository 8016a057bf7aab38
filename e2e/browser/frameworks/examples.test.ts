/** The apps of examples/frameworks in a real Chromium, each as its RenderService has it: `make test-frameworks`. */
import { rmSync } from 'node:fs';
import { jest } from '@jest/globals';
import type { BrowserContext, Page, Response } from 'playwright-core';
import { PORTS } from '../../../operator/src/api/names.ts';
import { exampleWorker, specOf } from '../../harness/engine/examples.ts';
import { Pod, until } from '../../harness/engine/pod.ts';
import { startChromium } from '../chromium.ts';

jest.setTimeout(900_000);

/** What differs from one to the other. */
interface Example {
  /** Whether a part of its page comes later. */
  streams?: boolean;
  /** The picture of `/about`; Next has pages with pictures of its own. */
  hasPicture?: boolean;
  /** What its router asks for at a click, if that takes no render slot. */
  data?: string;
}

const EXAMPLES: Record<string, Example> = {
  next: { streams: true },
  nuxt: { hasPicture: true },
  sveltekit: { streams: true, hasPicture: true, data: '/about/__data.json' },
  'react-router': { streams: true, hasPicture: true, data: '/about.data' },
  astro: { streams: true, hasPicture: true },
  angular: { hasPicture: true },
};
/** Of Next. */
const PICTURES = 20;

/** `FRAMEWORKS=next,nuxt make test-frameworks` tries these. */
const wanted = (process.env.FRAMEWORKS?.split(',') ?? Object.keys(EXAMPLES)).filter((name) => name in EXAMPLES);

let chromium: Awaited<ReturnType<typeof startChromium>>;
let pod: Pod | undefined;
let contexts: BrowserContext[] = [];
/** What the browser has complained about. */
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
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
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

/** Paths of requests that begin so, once there are so many of that class; of renders with an empty one. */
function logged(servedAs: string, count: number, begin = '/'): Promise<string[]> {
  return until(`${count} requests of class "${servedAs}"`, async () => {
    const lines = (await thePod().accessLog()).filter((line) => line.servedAs === servedAs);
    const paths = lines.map(({ uri }) => String(uri)).filter((uri) => uri.startsWith(begin));
    return paths.length >= count ? paths : undefined;
  });
}

test('the browser is there', () => {
  expect(chromium.browser.isConnected()).toBe(true);
});

for (const name of wanted)
  describe(name, () => {
    const { streams, hasPicture, data } = EXAMPLES[name] as Example;
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
      await untilAlive(page);
      await page.evaluate(() => Object.assign(window, { isKept: true }));
      await page.getByRole('link', { name: 'about' }).click();
      await page.getByText('about this shop').waitFor();
      await page.waitForURL(`${site()}/about`);
      expect(await page.evaluate(() => 'isKept' in window)).toBe(true);
      if (data) expect((await logged('data', 1))[0]).toMatch(data);
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
      const page = await open('/auth/callback?code=1');
      expect(page.url()).toBe(`${site()}/member`);
      await page.getByText('a session of 6000 bytes').waitFor();
      await page.reload();
      await page.getByText('a session of 6000 bytes').waitFor();
      // Every page of such a browser.
      await page.goto(`${site()}/`);
      await page.getByRole('heading', { name: 'A page by' }).waitFor();
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

    if (hasPicture)
      test('a picture', async () => {
        expect(await widths(await open('/about'))).toEqual([320]);
      });

    if (name === 'next') testNext();
  });

function testNext(): void {
  test('twenty pictures, and the page of them takes one render slot', async () => {
    const found = await widths(await open('/pictures'));
    expect(found).toHaveLength(PICTURES);
    expect(Math.min(...found)).toBeGreaterThan(0);
    const paths = await logged('image', PICTURES);
    expect(paths.filter((path) => !path.startsWith('/_next/image?'))).toEqual([]);
    expect(new Set(paths).size).toBe(PICTURES);
    expect(await logged('', 1, '/pictures')).toEqual(['/pictures']);
  });

  test('a redirect of a route handler stays on the site', async () => {
    expect((await open('/go')).url()).toBe(`${site()}/`);
  });

  test('draft mode: who has its cookie sees the draft, and nobody else does', async () => {
    const status = (response: Response | null) => response?.headers()['cache-status'];
    // From now on the page is kept.
    await (await open('/prices')).getByText('prices of').waitFor();
    const editor = await newBrowser();
    const draft = await editor.goto(`${site()}/draft`);
    await editor.getByText('a draft of them').waitFor();
    expect([editor.url(), status(draft)]).toEqual([`${site()}/prices`, 'Corelane; fwd=bypass; detail=cookie']);
    const guest = await newBrowser();
    const kept = await guest.goto(`${site()}/prices`);
    expect([status(kept), await guest.getByText('a draft of them').count()]).toEqual(['Corelane; hit', 0]);
  });
}
