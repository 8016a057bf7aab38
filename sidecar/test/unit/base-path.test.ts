/** When a worker says that basePath is missing, and when it does not. */
import diagnostics from 'node:diagnostics_channel';
import { EventEmitter } from 'node:events';
import { createRequire } from 'node:module';
import { jest } from '@jest/globals';

const require = createRequire(import.meta.url);
const MODULE = require.resolve('../../runtime/base-path.cjs');
const [PAGE, SCRIPT] = ['text/html', 'application/javascript; charset=UTF-8'];

type Answer = [path: string, type: string, status?: number];
/** Scripts in this folder. */
const scripts = (folder: string, count = 5): Answer[] =>
  Array.from({ length: count }, (_unused, n) => [`${folder}${n}.js?dpl=1`, SCRIPT]);

/** Gives what is said when a new worker has answered so, after it has sent requests with these paths. */
function said(answers: Answer[], sent: string[] = [], channel = 'http.client.request.start'): string[] {
  jest.resetModules();
  const { watchBasePath } = require(MODULE) as { watchBasePath(request: object, response: object): void };
  const write = jest.spyOn(process.stderr, 'write').mockReturnValue(true);
  for (const path of sent) diagnostics.channel(channel).publish({ request: { path } });
  for (const [url, type, status = 200] of answers) {
    const _header = `HTTP/1.1 ${status} X\r\nContent-Type: ${type}\r\n\r\n`;
    const response = Object.assign(new EventEmitter(), { _header });
    watchBasePath({ url }, response);
    response.emit('finish');
  }
  const lines = write.mock.calls.map(([text]) => String(text));
  write.mockRestore();
  return lines;
}

const PAGE_AND_FILES: Answer[] = [['/shop/about', PAGE], ...scripts('/shop/_next/static/')];
const TOLD = [expect.stringContaining('set basePath: /shop beside framework')];

test.each<[string, Answer[]]>([
  ['a page and five files', PAGE_AND_FILES],
  ['once', [...PAGE_AND_FILES, ...PAGE_AND_FILES, ...scripts('/shop/_next/static/', 60)]],
  ['a page that ends behind its files', [...PAGE_AND_FILES.slice(1), ['/shop?a=/', PAGE]]],
  ['no page at the root', [['/', PAGE, 404], ['/', PAGE, 307], ...PAGE_AND_FILES]],
  [
    'probes and files of the root',
    [
      ...['/favicon.ico', '/robots.txt', '/sitemap.xml'].map((path): Answer => [path, PAGE]),
      ...['/health', '/healthz', '/readiness', '/api/health', '/ping'].map((path): Answer => [path, PAGE]),
      ['/api/items', 'application/json'],
      ...PAGE_AND_FILES,
    ],
  ],
])('the path, for a program that answers below one path alone: %s', (...[, answers]) => {
  expect(said(answers)).toEqual(TOLD);
  expect(said(answers, ['/api/items', '/shop/about'])).toEqual(TOLD);
});

test('several parts of a path', () => {
  const files = scripts('/eu/shop/_nuxt/');
  const expected = expect.stringContaining('serves the files of /eu/shop/_nuxt/ itself');
  expect(said([['/eu/shop/', PAGE], ['/eu/shop/a', PAGE], ...files])).toEqual([expected]);
  expect(said([['/eu/shop/', PAGE], ['/eu/help', PAGE], ...files])).toEqual([]);
});

test.each<[string, Answer[]]>([
  ['a program without a base path', [['/about', PAGE], ...scripts('/_next/static/')]],
  ['one that has files at the root as well', [...scripts('/_next/static/', 1), ...PAGE_AND_FILES]],
  ['a page elsewhere', [['/', PAGE], ...PAGE_AND_FILES]],
  ['an asset prefix, with the pages at the root', [...scripts('/shop/_next/static/', 60), ['/a', PAGE], ['/', PAGE]]],
  ['files without a page', scripts('/shop/_next/static/', 60)],
  ['one file again and again', [['/shop/about', PAGE], ...Array(60).fill(['/shop/_next/static/a.js', SCRIPT])]],
  ['four files', PAGE_AND_FILES.slice(0, 5)],
  ['files of several paths', [...scripts('/blog/_next/static/', 1), ...PAGE_AND_FILES]],
  ['a page for every path', Array.from({ length: 60 }, (_, index) => [`/shop/_next/static/${index}.js`, PAGE])],
  ['files that are not there', PAGE_AND_FILES.map(([path, type]) => [path, type, type === PAGE ? 200 : 404])],
  ['other scripts', [['/shop/about', PAGE], ...scripts('/shop/assets/')]],
])('nothing for %s', (...[, answers]) => {
  expect(said(answers)).toEqual([]);
});

test.each(['http.client.request.start', 'undici:request:create'])(
  'nothing for one that passes on what another program has: %s',
  (channel) => {
    expect(said(PAGE_AND_FILES, ['/shop/_next/static/0.js'], channel)).toEqual([]);
  },
);
