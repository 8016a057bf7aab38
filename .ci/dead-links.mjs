/** Says in words what linkinator has found (its JSON), and ends with exit code 1: node dead-links.mjs FILE. */
import { readFileSync } from 'node:fs';

const text = readFileSync(process.argv[2] ?? '', 'utf8');
process.exitCode = 1;
if (!text.includes('{')) {
  console.log(`linkinator ended without a result: ${text}`);
} else {
  const { links } = JSON.parse(text.slice(text.indexOf('{')));
  const place = (url) => url.replace(/^https?:\/\/[^/]+/, '');
  const why = (url, status) => {
    if (status === 404) return 'there is no such page or file';
    if (url.includes('#') && status >= 200 && status < 300) return 'that page has no such heading';
    return `the request for it failed (status ${status})`;
  };
  for (const { url, status, state, parent = '' } of links)
    if (state === 'BROKEN') console.log(`Page ${place(parent)} links to ${place(url)}: ${why(url, status)}.`);
  console.log('Correct the link in the Markdown of the page, or the heading that it names. Then run `make docs`.');
}
