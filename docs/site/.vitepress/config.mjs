// The site: docs/adr/0031-the-site.md has the reasons. The Markdown is that of the repository, as GitHub shows it.
import { slug } from 'github-slugger';
import { defineConfig } from 'vitepress';
import { code } from '../code.mjs';
import { diagrams } from '../diagrams.mjs';
import { copyLinked, links } from '../links.mjs';
import { pages, placeOf, ROOT, sidebar, WITHOUT_PAGES } from '../pages.mjs';

export default defineConfig({
  title: 'Corelane',
  description: 'Kubernetes operator for CPU-bound Node.js render services',
  base: process.env.DOCS_BASE ?? '/',
  srcDir: ROOT,
  srcExclude: WITHOUT_PAGES,
  outDir: 'dist',
  cacheDir: 'dist/.cache',
  rewrites: Object.fromEntries(pages.map((page) => [page, placeOf(page)])),
  lastUpdated: false,
  // No request for an icon that is not there.
  head: [['link', { rel: 'icon', href: 'data:,' }]],
  markdown: {
    // An address in a message is no link.
    linkify: false,
    // Anchors as GitHub makes them: links to them must lead somewhere on both.
    anchor: { slugify: slug },
    config: (md) => md.use(links).use(diagrams).use(code),
  },
  vite: { publicDir: false, build: { target: 'es2022' } },
  buildEnd: copyLinked,
  themeConfig: {
    search: { provider: 'local' },
    outline: [2, 3],
    nav: [
      { text: 'Tutorial', link: '/tutorial' },
      { text: 'By problem', link: '/how-to/' },
      { text: 'By framework', link: '/frameworks/' },
      { text: 'Reference', link: '/reference' },
      { text: 'Map', link: '/map' },
    ],
    sidebar: sidebar(),
  },
});
