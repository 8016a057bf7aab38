/**
 * The examples of docs/frameworks, each as its Dockerfile and its RenderService have it, behind the real proxies:
 * `make test-frameworks`.
 */
import { rmSync } from 'node:fs';
import { jest } from '@jest/globals';
import { docker } from '../../../e2e/harness/engine/docker.ts';
import { batch, exampleWorker, specOf } from '../../../e2e/harness/engine/examples.ts';
import { type Pod, until } from '../../../e2e/harness/engine/pod.ts';
import { PORTS } from '../../../operator/src/api/names.ts';
import { begin, type Framework, testFrameworks } from './suite.ts';

jest.setTimeout(900_000);

/** What the first page of an example has. */
interface Page {
  /** Where the source of a stuck render is said to be; Angular's maps have paths from the root of the project. */
  source?: string;
  /** Addresses of its files. */
  files?: RegExp;
  /** Text that is there before the reviews are. */
  before?: string;
}

const PAGES: Record<string, Page> = {
  next: { files: /\/_next\/static\/[^"\\ ]+/g, before: 'reviews are on their way' },
  nuxt: { files: /\/_nuxt\/[^"\\ ]+/g },
  sveltekit: { files: /_app\/immutable\/[^"\\ ]+/g, before: 'reviews are on their way' },
  'react-router': { files: /\/assets\/[^"\\ ]+/g, before: 'reviews are on their way' },
  astro: { files: /\/_astro\/[^"\\ ]+/g, before: 'likes' },
  angular: { source: '/app/dist/shop/server/work.mjs', files: /(?:main|chunk|styles)-[A-Z0-9]{8}\.(?:js|css)/g },
  hypernova: {},
};
const RENDERS = 'corelane_worker_requests_total';

/** `FRAMEWORKS=next,nuxt make test-frameworks` tries these. */
const wanted = process.env.FRAMEWORKS?.split(',') ?? Object.keys(PAGES);

const frameworks = Object.fromEntries(
  wanted.map((name): [string, Framework] => {
    const { template: _template, replicas: _replicas, ...spec } = specOf(name);
    const worker = () => exampleWorker(name, { WAITS_FOR: '/events/lines.released' });
    const own = name === 'hypernova' ? ({ ask: batch, lacks: 'HEAD and streams' } as const) : {};
    return [name, { spec, worker, source: PAGES[name]?.source ?? '/app/work.mjs', ...own }];
  }),
);

testFrameworks('3s', frameworks, (name, thePod) => {
  const { files, before } = PAGES[name] ?? {};
  const renders = () => thePod().runtimeMetric(0, RENDERS);

  test('nginx compresses, and the program does not', async () => {
    const [path, call] = frameworks[name]?.ask?.('page') ?? ['/', {}];
    const headers = { ...call.headers, 'Accept-Encoding': 'gzip, br' };
    const page = await thePod().get(path, { ...call, headers });
    expect(page).toMatchObject({ status: 200, headers: { 'content-encoding': 'gzip' } });
    const plain = await inside(thePod(), path, { ...call, headers });
    expect(plain).toEqual({ status: 200 });
  });

  if (name !== 'hypernova')
    test('an API route', async () => {
      const { status, body } = await thePod().get('/api/price');
      expect([status, JSON.parse(body)]).toEqual([200, { price: 42 }]);
    });

  if (before)
    test('what is there of a page comes before the rest of it', async () => {
      rmSync(`${thePod().notesFile}.released`);
      const page = await begin(thePod(), '/');
      await until('the first part is here', () => page.text().includes(before));
      expect(page.text()).not.toContain('three reviews');
      thePod().release('released');
      await page.ended;
      expect(page.text()).toContain('three reviews');
    });

  if (files)
    test('all files of a page come from nginx: it takes one slot', async () => {
      const before = await renders();
      const page = await thePod().get('/');
      const found = [...new Set(page.body.match(files))].map((path) => (path.startsWith('/') ? path : `/${path}`));
      expect(found.length).toBeGreaterThan(0);
      const answers = await Promise.all(found.map((path) => thePod().get(path)));
      for (const { status, headers } of answers) {
        expect([status, headers['server-timing']]).toEqual([200, undefined]);
        expect(headers['content-type']).toMatch(
          /^(text\/(javascript|css); charset=utf-8|application\/json|font\/|image\/)/,
        );
      }
      const mutable = found.filter((_path, index) => !/immutable/.test(answers[index]?.headers['cache-control'] ?? ''));
      expect(mutable.filter((path) => !path.includes('/builds/latest.json'))).toEqual([]);
      await until('the page is counted', async () => (await renders()) === before + 1);
    });

  if (name === 'next') testNext(thePod);
});

/** Sends a request to the worker past the proxies. */
async function inside(pod: Pod, path: string, call: object): Promise<object> {
  const send = `
    const { path, method = 'GET', headers, body } = JSON.parse(process.argv[1]);
    const options = { host: '127.0.0.1', port: process.env.PORT, path, method, headers };
    require('node:http').request(options, (response) => {
      console.log(JSON.stringify({ status: response.statusCode, encoding: response.headers['content-encoding'] }));
      response.resume();
    }).end(body);`;
  const asked = JSON.stringify({ path, ...call });
  return JSON.parse(await docker('exec', '--env', 'NODE_OPTIONS=', pod.workers[0] ?? '', 'node', '-e', send, asked));
}

function testNext(thePod: () => Pod): void {
  test('a server action that redirects is answered with the page, which Next asks its own port for', async () => {
    const form = await thePod().get('/action');
    const [, action = ''] = /\$ACTION_ID_([0-9a-f]+)/.exec(form.body) ?? [];
    expect(action).not.toBe('');
    const headers = { 'Next-Action': action, 'Content-Type': 'text/plain;charset=UTF-8', Accept: 'text/x-component' };
    const before = await thePod().runtimeMetric(0, 'corelane_worker_own_requests_total');
    const answer = await thePod().get('/action', { method: 'POST', headers, body: '[]' });
    expect([answer.status, answer.headers['x-action-redirect']]).toEqual([200, expect.stringContaining('/bought')]);
    expect(answer.body).toContain('bought');
    expect(await thePod().runtimeMetric(0, 'corelane_worker_own_requests_total')).toBeGreaterThan(before);
  });

  test('a redirect by the URL of the request stays on the site, with 6 kB of cookies', async () => {
    const go = await thePod().get('/go');
    expect([go.status, go.headers.location]).toEqual([302, '/']);
    const { status, headers } = await thePod().get('/auth/callback?code=1');
    expect([status, headers.location, headers['set-cookie']?.map(({ length }) => length > 3_000)]).toEqual([
      ...[303, '/member', [true, true]],
    ]);
  });

  test('revalidateTag purges the pages that have this tag', async () => {
    const get = async () => {
      const { headers, body } = await thePod().get('/prices');
      return [headers['cache-status'], /prices of (?:<!-- -->)?[^<]+/.exec(body)?.[0]];
    };
    const [, first] = await get();
    expect(await get()).toEqual(['Corelane; hit', first]);
    expect((await thePod().get('/api/prices/changed', { method: 'POST' })).status).toBe(200);
    const [, next] = await until('it is rendered again', async () => {
      const seen = await get();
      return seen[0] === 'Corelane; fwd=uri-miss' ? seen : undefined;
    });
    expect(next).not.toBe(first);
  });

  test('ISR: a page is kept, and rendered anew when its time is over', async () => {
    const first = await thePod().get('/revalidated');
    expect(first.headers['cache-control']).toContain('s-maxage=1');
    await until('another one', async () => (await thePod().get('/revalidated')).body !== first.body);
  });

  test('pictures of a page take no render slot, and those of a second browser no worker at all', async () => {
    const { body } = await thePod().get('/picture');
    const pictures = [...new Set(body.match(/\/_next\/image\?[^" ]+/g))].map((path) => path.replaceAll('&amp;', '&'));
    // For two densities.
    expect(pictures).toHaveLength(2);
    const Accept = 'image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8';
    const browse = (headers = {}) =>
      Promise.all(pictures.map((path) => thePod().get(path, { headers: { Accept, ...headers } })));
    // The only render slot is taken meanwhile.
    rmSync(`${thePod().notesFile}.released`);
    const page = await begin(thePod(), '/');
    for (const { status, headers } of await browse())
      expect([status, headers['content-type'], headers['cache-status']]).toEqual([
        ...[200, 'image/webp', 'Corelane; fwd=uri-miss'],
      ]);
    for (const { status, headers } of await browse({ Cookie: 'visitor=2' }))
      expect([status, headers['content-type'], headers['cache-status']]).toEqual([200, 'image/webp', 'Corelane; hit']);
    expect(page.text()).not.toContain('three reviews');
    thePod().release('released');
    await page.ended;
    const { body: metrics } = await thePod().get('/workers/0/metrics', { port: PORTS.stats });
    // Twice for the two: Next says `Vary: Accept` only when it has answered without it.
    expect(metrics).toContain('corelane_worker_class_requests_total{worker="0",class="image"} 4\n');
  });
}
