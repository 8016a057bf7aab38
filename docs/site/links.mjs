// links.mjs: links of the Markdown as GitHub reads it -> links of the site. One to another page leads to where the site has
// it; one to any other file of the repository (an example, a source) leads to a copy of it.
import { copyFileSync, existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname, join, posix, relative } from 'node:path';
import { pages, placeOf, ROOT } from './pages.mjs';

const COPIES = 'files';
/** Files that some page links to. */
const linked = new Set();

/** Plugin of markdown-it. */
export function links(md) {
  md.core.ruler.push('links-of-the-repository', ({ tokens, env }) => {
    const page = relative(ROOT, env.realPath ?? env.path);
    for (const token of tokens.flatMap(({ children }) => children ?? [])) {
      const href = token.type === 'link_open' ? token.attrGet('href') : undefined;
      if (href && !/^([a-z]+:|#)/.test(href)) token.attrSet('href', placed(page, href, token));
    }
  });
}

function placed(page, href, token) {
  const [path, anchor] = href.split('#');
  const target = posix.join(dirname(page), decodeURI(path));
  const index = pages.includes(target) ? target : posix.join(target, 'README.md');
  if (pages.includes(index)) return `/${placeOf(index)}${anchor ? `#${anchor}` : ''}`;
  if (!existsSync(join(ROOT, target)) || statSync(join(ROOT, target)).isDirectory()) {
    throw new Error(`${page}: dead link ${href} (a folder needs a README.md to be linked to)`);
  }
  linked.add(target);
  // VitePress leaves links with a target of their own as they are.
  token.attrSet('target', '_self');
  return `${process.env.DOCS_BASE ?? '/'}${COPIES}/${target}`;
}

/** Copies the files that pages link to into the site. */
export function copyLinked({ outDir }) {
  for (const file of linked) {
    const copy = join(outDir, COPIES, file);
    mkdirSync(dirname(copy), { recursive: true });
    copyFileSync(join(ROOT, file), copy);
  }
}
