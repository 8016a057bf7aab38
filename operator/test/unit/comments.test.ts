/**
 * Comments fit beside each other on a screen: 120 columns, as the formatter has it for code. Long texts for users stay
 * whole.
 */
import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const COLUMNS_MAX = 120;
const COMMENT = /^\s*(\/\/|\/?\*|-- |#)/;

const files = globSync('{operator,sidecar,e2e,bench,examples,.ci}/**/*.{ts,mjs,cjs,lua,c,h,sh}', {
  cwd: ROOT,
  exclude: (path) => /node_modules|(^|\/)dist(\/|$)/.test(path),
});

test('no comment is wider than the screen', () => {
  const wide = files.flatMap((file) =>
    readFileSync(`${ROOT}/${file}`, 'utf8')
      .split('\n')
      .flatMap((line, index) => (COMMENT.test(line) && line.length > COLUMNS_MAX ? [`${file}:${index + 1}`] : [])),
  );
  expect(files.length).toBeGreaterThan(300);
  expect(wide).toEqual([]);
});
