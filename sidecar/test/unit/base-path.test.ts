/** When a worker says that basePath is missing, and when it does not. */
import { EventEmitter } from 'node:events';
import { createRequire } from 'node:module';
import { jest } from '@jest/globals';

const require = createRequire(import.meta.url);
const MODULE = require.resolve('../../runtime/base-path.cjs');
const [PAGE, SCRIPT] = ['text/html', 'application/javascript; charset=UTF-8'];

/** Gives what is said when a new worker has answered so, 60 times each file. */
function said(answers: [path: string, type: string, status?: number][]): string[] {
  delete require.cache[MODULE];
  const { watchBasePath } = require(MODULE) as { watchBasePath(request: object, response: object): void };
  const write = jest.spyOn(process.stderr, 'write').mockReturnValue(true);
  for (const [url, type, status = 200] of answers)
    for (let count = 0; count < (type === SCRIPT ? 60 : 1); count += 1) {
      const _header = `HTTP/1.1 ${status} X\r\nContent-Type: ${type}\r\n\r\n`;
      const response = Object.assign(new EventEmitter(), { _header });
      watchBasePath({ url }, response);
      response.emit('finish');
    }
  const lines = write.mock.calls.map(([text]) => String(text));
  write.mockRestore();
  return lines;
}

test('once, with the path, for a program that answers below one path alone', () => {
  const lines = said([
    ['/', PAGE, 404],
    ['/shop/about', PAGE],
    ['/shop/_next/static/a.js', SCRIPT],
    ['/shop/_next/static/b.js?dpl=1', SCRIPT],
  ]);
  expect(lines).toEqual([expect.stringContaining('set basePath: /shop beside framework')]);
});

test.each<[string, [string, string, number?][]]>([
  [
    'a program without a base path',
    [
      ['/', PAGE],
      ['/_next/static/a.js', SCRIPT],
    ],
  ],
  [
    'one that passes on what another program has',
    [
      ['/blog/x', PAGE],
      ['/', PAGE],
      ['/blog/_next/static/a.js', SCRIPT],
    ],
  ],
  [
    'one whose pages are elsewhere',
    [
      ['/cdn/_next/static/a.css', PAGE],
      ['/a', PAGE],
      ['/cdn/_next/static/a.js', SCRIPT],
    ],
  ],
  ['a page for every path', Array.from({ length: 60 }, (_, index) => [`/shop/_next/static/${index}.js`, PAGE])],
  ['files that are not there', [['/shop/_next/static/a.js', SCRIPT, 404]]],
  ['other scripts', [['/shop/assets/a.js', SCRIPT]]],
])('nothing for %s', (...[, answers]) => {
  expect(said(answers)).toEqual([]);
});
