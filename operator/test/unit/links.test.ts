/** Relative links in the documentation lead somewhere: to a file, and to a heading where they name one. */
import { existsSync, globSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const pages = globSync('{*.md,docs/**/*.md,{charts,e2e,examples,sidecar}/**/*.md}', {
  cwd: root,
  exclude: (path) => path.includes('node_modules'),
}).sort();
const read = (page: string) => readFileSync(join(root, page), 'utf8').replaceAll(/^```.*?^```/gms, '');

/** Anchors as GitHub makes them. */
function anchors(page: string): string[] {
  const headings = read(page).matchAll(/^#+ (.*)$/gm);
  return [...headings].map(([, heading = '']) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

test.each(pages)('%s', (page) => {
  const dead = [...read(page).matchAll(/\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)/g)]
    .map(([link, path = '', anchor]) => ({ link, target: path ? join(dirname(page), path) : page, anchor }))
    .filter(({ target, anchor }) => {
      if (!existsSync(join(root, target))) return true;
      return anchor !== undefined && !statSync(join(root, target)).isDirectory() && !anchors(target).includes(anchor);
    })
    .map(({ link }) => link);
  expect(dead).toEqual([]);
});
