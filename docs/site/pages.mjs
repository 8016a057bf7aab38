// pages.mjs: what the site is made of, in the order of its sidebar: every Markdown file of the repository. A new one that
// no group names comes last.
import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** Folders without pages; patterns of the glob. */
export const WITHOUT_PAGES = ['**/node_modules/**', '**/dist/**', '**/.*/**'];

/** Every page, as a path from the root of the repository. */
export const pages = globSync('**/*.md', { cwd: ROOT, exclude: WITHOUT_PAGES }).sort();

const HOW_TO = 'docs/how-to/README.md';
const FRAMEWORKS = 'docs/frameworks/README.md';

/** Groups of pages; those that a pattern names come in alphabetical order. */
const GROUPS = [
  ['Start', ['README.md', 'docs/tutorial.md', 'docs/run.md', 'examples/README.md', 'examples/storefront/README.md']],
  ['By problem', [HOW_TO, /^docs\/how-to\//]],
  ['By framework', [FRAMEWORKS, /^docs\/frameworks\//]],
  [
    'How-to',
    [
      'docs/install.md',
      'docs/upgrades.md',
      'docs/rollouts.md',
      'docs/canary.md',
      'docs/convert.md',
      'docs/check.md',
      'charts/corelane/README.md',
      'docs/sizing.md',
      'docs/scale.md',
      'docs/scaling.md',
      'docs/keda.md',
      'docs/look.md',
      'docs/access-log.md',
      'docs/gateways.md',
      'docs/meshes.md',
      'docs/gitops.md',
      'docs/network-policy.md',
      'docs/pod-template.md',
      'docs/pooling.md',
      'docs/cache.md',
      'docs/overload.md',
      'docs/classes.md',
      'docs/concurrency.md',
      'docs/objectives.md',
    ],
  ],
  [
    'Reference',
    [
      'docs/reference.md',
      'docs/bad-resources.md',
      'docs/why-no-pods.md',
      'docs/metrics.md',
      'docs/alerts.md',
      'docs/dashboards.md',
      'docs/faults.md',
      'docs/versions.md',
      'operator/cli/README.md',
    ],
  ],
  ['Runbooks', ['docs/runbooks/README.md', /^docs\/runbooks\//]],
  [
    'Explanation',
    [
      'docs/runtime.md',
      'docs/edge.md',
      'docs/streaming.md',
      'sidecar/README.md',
      'docs/protocol.md',
      'docs/security.md',
      'docs/supply-chain.md',
      'docs/testing.md',
    ],
  ],
  ['Measurements', ['docs/benchmarks/README.md', /^docs\/benchmarks\//]],
  ['Decisions', [/^docs\/adr\//]],
  ['Project', ['docs/README.md', 'CONTRIBUTING.md', 'CHANGELOG.md', /./]],
];

/** Long, and read one page at a time. */
const COLLAPSED = ['Runbooks', 'Measurements', 'Decisions'];

/** Where a page is on the site: docs/scaling.md is /scaling, a README is its folder. */
export function placeOf(page) {
  return page
    .replace(/^docs\/README\.md$/, 'map.md')
    .replace(/^docs\//, '')
    .replace(/(^|\/)README\.md$/, '$1index.md');
}

/** The first heading of a page. */
export function titleOf(page) {
  const [, title] = /^# (.*)$/m.exec(readFileSync(`${ROOT}/${page}`, 'utf8')) ?? [];
  if (!title) throw new Error(`${page} has no heading of the first level: its title in the sidebar comes from it`);
  return title.replaceAll('`', '');
}

/** The sidebar as VitePress has it. */
export function sidebar() {
  const left = new Set(pages);
  return GROUPS.map(([text, members]) => ({
    text,
    collapsed: COLLAPSED.includes(text) ? true : undefined,
    items: members
      .flatMap((member) => (typeof member === 'string' ? [member] : [...left].filter((page) => member.test(page))))
      .filter((page) => left.delete(page))
      .map((page) => ({ text: titleOf(page), link: `/${placeOf(page).replace(/(index)?\.md$/, '')}` })),
  }));
}
