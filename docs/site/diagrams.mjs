// diagrams.mjs: blocks of Mermaid as pictures, made when the site is built: the site loads no program for them.
import { renderMermaidSVG } from 'beautiful-mermaid';

/** The library draws with two colours of the page; a picture has a page of its own, which is light or dark. */
const COLORS =
  'svg { --bg: #fff; --fg: #24292f } @media (prefers-color-scheme: dark) { svg { --bg: #1b1b1f; --fg: #e6edf3 } }';

/** Plugin of markdown-it. */
export function diagrams(md) {
  const { fence } = md.renderer.rules;
  md.renderer.rules.fence = (...args) => {
    const [tokens, index] = args;
    const { info, content } = tokens[index];
    return info.trim() === 'mermaid' ? picture(content) : fence(...args);
  };
}

function picture(source) {
  const svg = renderMermaidSVG(source, { bg: 'var(--bg)', fg: 'var(--fg)' })
    .replace(/style="--bg:[^"]*"/, 'style="background:var(--bg)"')
    // The library's font would be loaded from elsewhere.
    .replace(/@import url\([^)]*\);/, COLORS);
  const label = source.trim().split('\n')[0];
  return `<p><img class="diagram" alt="${label}" src="data:image/svg+xml;base64,${Buffer.from(svg).toString('base64')}"></p>\n`;
}
