/** The page as a browser gets it: one script, one style sheet, and an empty document that names both. */
import { existsSync, readFileSync } from 'node:fs';

export interface PageFiles {
  html: string;
  script: Buffer;
  style: Buffer;
}

/** Nothing is written in line: the Content-Security-Policy knows no exception. */
const HTML = `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<meta name="color-scheme" content="light dark">
<title>corelane</title>
<link rel="stylesheet" href="page.css">
<script type="module" src="page.js"></script>
<body>
<div id="page"></div>
<noscript>This page needs JavaScript; corelane top and corelane explain do not.</noscript>
</html>
`;

/** In the npm package they lie beside this; in a clone they are made of the source. */
export async function pageFiles(): Promise<PageFiles> {
  const [script, style] = [new URL('./page.js', import.meta.url), new URL('./page.css', import.meta.url)];
  if (existsSync(script)) return { html: HTML, script: readFileSync(script), style: readFileSync(style) };
  const { bundlePage } = await import('./bundle.ts');
  const { outputFiles } = await bundlePage();
  const file = (ending: string) => {
    const found = outputFiles.find(({ path }) => path.endsWith(ending));
    if (!found) throw new Error(`the page has no ${ending}`);
    return Buffer.from(found.contents);
  };
  return { html: HTML, script: file('.js'), style: file('.css') };
}
