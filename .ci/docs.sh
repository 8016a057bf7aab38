#!/usr/bin/env bash
# docs.sh: builds the site of docs/site, and fails for a link or an anchor in it that leads nowhere.
source "$(dirname "${BASH_SOURCE[0]}")/../e2e/cluster/lib.sh"
cd "$CLONE_DIR"
node=node_modules/.bin/node
packages=docs/site/node_modules
site=docs/site/dist

step 'Building the site' docs-build "$node" "$packages/vitepress/bin/vitepress.js" build docs/site --logLevel warn
# Links to other hosts are not asked for: no build depends on them.
step 'Following its links' docs-links "$node" "$packages/linkinator/build/src/cli.js" "$site" \
  --recurse --check-fragments --verbosity error --skip '^https?://(?!localhost|127\.)'
say "$site has $(find "$site" -name '*.html' | wc -l) pages; make docs-serve shows them on http://localhost:5173"
