#!/usr/bin/env node
// Entry point of the npm package, where it stands as operator/bin/corelane.mjs. Its syntax is one that old versions of
// Node.js read, too: they are to say that they are old. Below 22.19 the Kubernetes client fails with a message that
// tells nobody why.
const [major, minor] = process.versions.node.split('.').map(Number);
if (major < 22 || (major === 22 && minor < 19)) {
  console.error(
    `corelane: needs Node.js 22.19 or newer, this is ${process.versions.node}. Install a newer one ` +
      '(https://nodejs.org), or let npx bring it: npx -p node@24 -p corelane corelane ...',
  );
  process.exit(1);
}
import('../cli/main.mjs').then(async ({ main }) => {
  process.exitCode = await main(process.argv.slice(2));
});
