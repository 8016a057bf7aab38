#!/usr/bin/env node
// Entry point of `npx corelane`. The sources are TypeScript as they are: a Node that cannot read them hands over to the
// one that `npm ci` has installed.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const main = new URL('../cli/main.ts', import.meta.url);
if (process.features.typescript) {
  const { main: run } = await import(main);
  process.exitCode = await run(process.argv.slice(2));
} else {
  const node = fileURLToPath(new URL('../../node_modules/.bin/node', import.meta.url));
  const { status, error } = spawnSync(node, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], {
    stdio: 'inherit',
  });
  if (error) console.error(`corelane: needs Node 22.18 or newer; run "npm ci" first (${error.message})`);
  process.exitCode = status ?? 1;
}
