#!/usr/bin/env bash
# docs.sh: builds the site of docs/site, and fails for a link or an anchor in it that leads nowhere. Two checks, which
# go to .state/results/docs.json for the summary.
source "$(dirname "${BASH_SOURCE[0]}")/../e2e/cluster/lib.sh"
cd "$CLONE_DIR"
state_dir
results=$STATE_DIR/results
mkdir -p "$results"
# A run that fails leaves none, which counts as a failure.
rm -f "$results/docs.json"
node=node_modules/.bin/node
packages=docs/site/node_modules
site=docs/site/dist

# Links to other hosts are not asked for: no build depends on them.
follow_links() {
  "$node" "$packages/linkinator/build/src/cli.js" "$site" --recurse --check-fragments --verbosity error --format json \
    --skip '^https?://(?!localhost|127\.)' >"$results/links.json" || "$node" .ci/dead-links.mjs "$results/links.json"
}

step 'Building the site' docs-build "$node" "$packages/vitepress/bin/vitepress.js" build docs/site --logLevel warn
step 'Following its links' docs-links follow_links
echo '{"name":"docs","passed":2,"failed":0}' >"$results/docs.json"
say "$site has $(find "$site" -name '*.html' | wc -l) pages; make docs-serve shows them on http://localhost:5173"
